"""ClusterSpec: which chips, how many, in what shape."""

from math import prod
from typing import Self

from pydantic import Field, model_validator

from projector.specs.record import Record


class ClusterSpec(Record):
    """Chips of one kind. `topology` is the torus shape of one slice; `slices` counts slices joined by DCN."""

    chip: str = Field(description="catalogue id or alias of the chip")
    chips: int = Field(ge=1, description="chips in all, over all slices")
    topology: tuple[int, ...] | None = Field(None, description="torus shape of one slice, e.g. [16, 16]")
    slices: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _shape_matches_count(self) -> Self:
        if self.topology is not None:
            if any(size < 1 for size in self.topology):
                raise ValueError(f"topology {list(self.topology)} has a size below 1")
            if prod(self.topology) * self.slices != self.chips:
                raise ValueError(
                    f"topology {list(self.topology)} x {self.slices} slices is "
                    f"{prod(self.topology) * self.slices} chips, not {self.chips}"
                )
        elif self.chips % self.slices:
            raise ValueError(f"{self.slices} slices do not divide {self.chips} chips")
        return self
