"""What a lever is: a family of plan fields, the causes it relieves, and the inequality that decides if it helps."""

from typing import Literal

from pydantic import Field

from projector.specs.bottleneck import Cause
from projector.specs.plan import Phase
from projector.specs.record import Record

Effort = Literal["flag", "config", "relaunch", "code"]


class Lever(Record):
    """One change to a plan.

    `effort` is what adopting it takes: flag (a switch of a running configuration), config (a value), relaunch (another
    layout, checkpoints resharded), code. `numerics`: results change beyond the order of sums.
    """

    name: str
    relieves: tuple[Cause, ...]
    phases: tuple[Phase, ...]
    fields: tuple[str, ...] = Field(description="plan fields it sets")
    watched: tuple[str, ...] = Field((), description="plan attributes that tell whether it moved; (): its fields")
    numerics: bool = False
    effort: Effort
    summary: str
    mechanism: str = Field(description="one sentence that ends in the inequality that decides")

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes of a plan whose change means this lever was moved."""
        return self.watched or self.fields
