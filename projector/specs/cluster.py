"""ClusterSpec: which chips, how many, in what shape."""

from math import prod
from typing import Self

from pydantic import Field, model_validator

from projector.specs.record import MOST_DEVICES, Record


class ClusterSpec(Record):
    """Chips of one kind. `topology` is the torus shape of one slice; `slices` counts slices joined by DCN."""

    chip: str = Field(description="catalogue id or alias of the chip")
    chips: int = Field(ge=1, le=MOST_DEVICES, description="chips in all, over all slices")
    topology: tuple[int, ...] | None = Field(
        None, min_length=1, max_length=4, description="torus shape of one slice, e.g. [16, 16]"
    )
    slices: int = Field(1, ge=1, le=MOST_DEVICES)

    @model_validator(mode="after")
    def _shape_matches_count(self) -> Self:
        if self.topology is not None:
            if any(not 1 <= size <= MOST_DEVICES for size in self.topology):
                raise ValueError(f"topology {list(self.topology)} has a size outside 1 to {MOST_DEVICES}")
            if prod(self.topology) * self.slices != self.chips:
                raise ValueError(
                    f"topology {list(self.topology)} x {self.slices} slices is "
                    f"{prod(self.topology) * self.slices} chips, not {self.chips}"
                )
        elif self.chips % self.slices:
            raise ValueError(f"{self.slices} slices do not divide {self.chips} chips")
        return self
