"""MeasuredStep: one measured step of a known plan, as far as it is known."""

from typing import Literal, Self

from pydantic import Field, model_validator

from projector.breakdown import TimeBreakdown
from projector.specs.record import Record

LinkTier = Literal["inside", "across"]


class LinkRatio(Record):
    """Bandwidth of the links of one tier: measured over what the projector takes for them.

    inside: a tightly coupled domain (NVLink, a torus slice); across: the network between domains.
    """

    tier: LinkTier
    ratio: float = Field(gt=0)
    collectives: int = Field(ge=1, description="messages it was measured on")


class IdleShares(Record):
    """Shares of the idle time whose cause is known; the three sum to 1.

    launches: the host was issuing work, one launch after another; pauses: it did something else, or loaded input;
    waiting: the next work was queued and waited for another stream or device.
    """

    launches: float = Field(ge=0, le=1)
    pauses: float = Field(ge=0, le=1)
    waiting: float = Field(ge=0, le=1)

    @model_validator(mode="after")
    def _sum(self) -> Self:
        if abs(self.launches + self.pauses + self.waiting - 1) > 1e-6:
            raise ValueError("shares of idle time must sum to 1")
        return self


class MeasuredStep(Record):
    """One optimizer step, seconds. breakdown None: nothing but its length is known.

    deviation_s: sample standard deviation between steps, None where there is only one.
    idle: None where the trace does not show why the device was idle.
    """

    total_s: float = Field(gt=0)
    breakdown: TimeBreakdown | None = None
    steps: int = Field(1, ge=1, description="steps it is the mean of")
    deviation_s: float | None = Field(None, ge=0)
    idle: IdleShares | None = None
    links: tuple[LinkRatio, ...] = ()

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if self.breakdown is not None and abs(self.breakdown.total_s - self.total_s) > 1e-6 * self.total_s:
            raise ValueError(f"the parts last {self.breakdown.total_s} s, the step {self.total_s} s")
        return self
