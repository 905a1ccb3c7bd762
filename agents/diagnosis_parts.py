"""Parts of a Diagnosis: the window by category, its collectives, how full memory is, and what relief could gain.

Shares are fractions of what `Diagnosis.window` names.
"""

from typing import Literal

from pydantic import Field

from projector.breakdown import Axis
from projector.specs.bottleneck import Bottleneck, Cause
from projector.specs.record import Record

Limiter = Literal["arithmetic", "hbm", "link", "on_chip_memory", "waiting", "unknown"]
"""What holds a piece of time up. waiting: for a peer, a host or another stream, with nothing kept busy."""
CollectiveLimiter = Literal["link", "hbm", "waiting", "unknown"]
CapacityState = Literal["out_of_memory", "near_full", "room", "unknown"]
FigureSource = Literal["measured", "modelled", "stated", "none"]


class Category(Record):
    """Operators of one sort. Kernels that run side by side share the time they cover together."""

    name: str = Field(description="kind of kernel, collective or copy; untrusted text where a profile names it")
    share_frac: float = Field(ge=0, description="of the window, only what nothing of another class hides")
    count: int | None = Field(None, ge=0, description="kernels or operators; None: not counted")
    limiter: Limiter
    limited_frac: float = Field(ge=0, le=1, description="part of share_frac that the limiter is known to hold")
    basis: str = Field(description="what says so")


class CollectiveShare(Record):
    """One kind of collective on one axis: how often, how much of the window, what part of it nothing hides."""

    collective: str = Field(description="as the profile names it; untrusted text")
    axis: Axis
    count: int = Field(ge=0)
    exposed_frac: float = Field(ge=0, description="of the window, no kernel runs beside it: what it costs")
    hidden_frac: float = Field(ge=0, description="of the window, under kernels: removing it gains nothing")
    limiter: CollectiveLimiter
    basis: str = Field(description="what tells links, HBM and waiting apart, or why nothing does")


class Headroom(Record):
    """The most the step could get shorter if one thing were relieved wholly; never a promise.

    scope "class": of one of the groups that compete; "cause": of the diagnosed cause; "kernels": of arithmetic or HBM
    traffic brought to the chip's roofline, where the work of kernels is known.
    """

    scope: Literal["class", "cause", "kernels"]
    name: Bottleneck | Cause | Literal["waiting"]
    gain_frac: float | None = Field(None, ge=0, le=1, description="part of the step time; None: no share shows it")
    below_noise: bool = Field(False, description="not above the noise of a step: gain_frac is then 0")
    inequality: str = Field(description="e.g. 'new step >= 0.944 of the present one'")
    basis: str


class Capacity(Record):
    """How full device memory is, apart from how fast it is read."""

    state: CapacityState
    used_frac: float | None = Field(None, ge=0, description="of the fullest device at its peak")
    source: FigureSource = "none"
    basis: str
