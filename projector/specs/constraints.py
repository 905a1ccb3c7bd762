"""Constraints: what the user fixes, bounds or forbids."""

from typing import Self

from pydantic import Field, field_validator, model_validator

from projector.errors import UnknownName
from projector.specs.plan import ParallelismPlan
from projector.specs.record import MOST_DEVICES, MOST_TOKENS, Record

Value = int | bool | str


class Bounds(Record):
    """Inclusive limits of one plan field."""

    low: int | None = Field(None, ge=0, le=MOST_TOKENS)
    high: int | None = Field(None, ge=0, le=MOST_TOKENS)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low} > high {self.high}")
        return self


class Constraints(Record):
    """Limits every proposal keeps; the device count of the cluster is one by itself."""

    fixed: dict[str, Value] = Field(default_factory=dict, description="plan field -> the only value allowed")
    bounds: dict[str, Bounds] = Field(default_factory=dict, description="plan field -> inclusive limits")
    max_chips: int | None = Field(None, ge=1, le=MOST_DEVICES)
    max_memory_gb: float | None = Field(
        None, gt=0, description="memory of a chip that plans may take (1e9 bytes); None, or beyond its own: all of it"
    )
    allow_numerics_changes: bool = Field(False, description="whether precision and KV dtype may change")

    @field_validator("fixed", "bounds")
    @classmethod
    def _known_fields(cls, value: dict[str, object]) -> dict[str, object]:
        for name in value:
            if name not in ParallelismPlan.model_fields:
                raise UnknownName("plan field", name, ParallelismPlan.model_fields)
        return value

    @field_validator("fixed")
    @classmethod
    def _within_reach(cls, value: dict[str, Value]) -> dict[str, Value]:
        for name, fixed in value.items():
            if isinstance(fixed, int) and not 0 <= fixed <= MOST_TOKENS:
                raise ValueError(f"{name} {fixed} lies outside 0 to {MOST_TOKENS}")
        return value
