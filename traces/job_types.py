"""What several ranks show together: who is there, whose clock is off, who waits for whom, which link is slow."""

from typing import Literal

from pydantic import Field

from projector.breakdown import Axis
from projector.specs.record import Record

Tier = Literal["scale_up", "scale_out", "unknown"]


class JobRanks(Record):
    """Which ranks of the job the files hold."""

    expected: int | None = Field(None, description="world size; None where no file states it")
    present: tuple[int, ...] = ()
    missing_count: int = Field(0, ge=0)
    missing: tuple[int, ...] = Field((), description="the first of them where there are many")
    duplicated: tuple[int, ...] = Field((), description="ranks that more than one file claims")
    unnumbered: int = Field(0, ge=0, description="files or devices that do not state their rank")


class ClockOffset(Record):
    """How far one rank's clock runs ahead of the job's; spread is what the estimate is good to."""

    rank: int
    offset_ns: int
    spread_ns: int = Field(ge=0, description="median distance of single collectives from the estimate")
    matches: int = Field(ge=1)


class GroupSkew(Record):
    """Collectives of one process group that were found on all of its recorded ranks, clocks aligned.

    waiting   from a rank's own start to the start of the last one: the imbalance of what ran before
    transfer  from the last start to the end: what the link and the algorithm take
    """

    group: str
    axis: Axis
    ranks: tuple[int, ...]
    matched: int = Field(ge=1, description="collectives compared")
    waiting_ns: int = Field(ge=0, description="sum over ranks and collectives")
    transfer_ns: int = Field(ge=0, description="sum over collectives, of one rank")
    largest_wait_ns: int = Field(ge=0)
    exposed_waiting_ns: int = Field(
        0, ge=0, description="the most of waiting_ns that no compute on the waiting rank hid"
    )


class RankLateness(Record):
    """One rank in the collectives it shares with others."""

    rank: int
    matched: int
    last_count: int = Field(description="collectives this rank entered last, by more than the clock spread")
    late_ns: int = Field(ge=0, description="sum of how much later than the second last it came, where it came last")
    waited_ns: int = Field(ge=0, description="sum of its waiting for others")
    straggler: bool = False
    why: str = ""


class LinkRate(Record):
    """Bus bandwidth of one process group and what it should reach.

    Bus bytes follow nccl-tests: algorithm bytes times 2(n-1)/n for an all-reduce, (n-1)/n for all-gather,
    reduce-scatter and all-to-all, 1 for the others; decimal bytes. They are over transfer time where waiting could be
    told apart, otherwise over durations, and then a lower bound.
    """

    group: str
    axis: Axis
    ranks: tuple[int, ...] = ()
    group_size: int
    tier: Tier = "unknown"
    kinds: tuple[str, ...] = Field((), description="the collectives it was measured on")
    collectives: int = Field(ge=1, description="messages large enough to fill a link")
    bus_bytes: int | None = Field(None, description="what the link carries for the median message")
    bus_bytes_per_s: float = Field(gt=0, description="median")
    best_bus_bytes_per_s: float = Field(gt=0)
    waiting_removed: bool
    alone: bool = Field(True, description="False: other collectives ran on the same ranks beside each of them")
    peak_bytes_per_s: float | None = Field(None, description="one-way peak of the link, where the hardware is known")
    peak_frac: float | None = None
    degraded: bool = False
    why: str = ""
