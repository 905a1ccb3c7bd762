"""Objective: one figure that can be optimised."""

from typing import Literal

from pydantic import Field

from projector.specs.plan import Phase
from projector.specs.record import Record

Direction = Literal["maximise", "minimise"]


class Objective(Record):
    """One figure to optimise, with its unit and direction.

    `per_gpu` and `per_chip` in a name both mean a chip, which may hold several devices.
    """

    name: str
    unit: str
    direction: Direction
    phases: tuple[Phase, ...]
    meaning: str
    formula: str = Field("", description="how it follows from the model's terms; empty where the meaning says it")
    aliases: tuple[str, ...] = Field((), description="other names that are understood as this one")
