"""Logs of a few collectives written down by hand. Times are microseconds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from projector.breakdown import Axis
from traces.collectives import Communication
from traces.cross_rank.clocks import Clocks, align
from traces.cross_rank.log import CollectiveLog, collective_log
from traces.cross_rank.matching import match_ranks
from traces.intervals import EMPTY, merge
from traces.shares import Cover
from traces.trace import ABSENT, Category, CollectiveArgs, Metadata, Trace

US = 1_000


@dataclass(frozen=True)
class One:
    """One collective, its size in bytes. members: size of a group that does not list its ranks."""

    start: float
    end: float
    kind: str = "all_reduce"
    group: str = "g"
    ranks: tuple[int, ...] = (0, 1)
    size: int | None = 8 << 20
    number: int | None = None
    source: int | None = None
    target: int | None = None
    uneven: bool | None = False
    members: int | None = None


def log_of(
    *ones: One,
    compute: Sequence[tuple[float, float]] = (),
    window: tuple[float, float] | None = None,
    axis: Axis = "unknown",
    base_ns: int = 0,
) -> CollectiveLog:
    """The log of these collectives; `window` is their extent where not given."""
    start = np.array([round(one.start * US) for one in ones], dtype=np.int64)
    end = np.array([round(one.end * US) for one in ones], dtype=np.int64)
    busy = [*ones, *(One(*span) for span in compute)]
    first, last = window or (min(one.start for one in busy), max(one.end for one in busy))
    cover = Cover(
        start_ns=round(first * US),
        end_ns=round(last * US),
        compute=_merged(compute),
        communication=merge(start, end),
        copy=EMPTY,
        unclassified=EMPTY,
    )
    found = tuple(_communication(row, one) for row, one in enumerate(ones))
    return collective_log(_trace(start, end, base_ns), found, cover, lambda _: axis)


def clocks_of(logs: dict[int, CollectiveLog]) -> Clocks:
    """Clocks of the ranks, from whatever can be matched."""
    return align(match_ranks(logs).found, logs)


def shifted(ones: Sequence[One], by: float) -> tuple[One, ...]:
    """The same collectives as a clock that is ahead by `by` shows them."""
    return tuple(replace(one, start=one.start + by, end=one.end + by) for one in ones)


def lockstep(*computing: Sequence[float]) -> list[CollectiveLog]:
    """Ranks that compute for the given times, one list a rank, and meet in a collective of 20 us after each."""
    ranks = tuple(range(len(computing)))
    ones: list[list[One]] = [[] for _ in ranks]
    spans: list[list[tuple[float, float]]] = [[] for _ in ranks]
    now = 0.0
    for number, times in enumerate(zip(*computing, strict=True)):
        end = now + max(times) + 20
        for rank, time in zip(ranks, times, strict=True):
            spans[rank].append((now, now + time))
            ones[rank].append(One(now + time, end, ranks=ranks, number=number))
        now = end
    return [log_of(*mine, compute=span) for mine, span in zip(ones, spans, strict=True)]


def _merged(spans: Sequence[tuple[float, float]]) -> np.ndarray:
    edges = np.array(spans, dtype=np.float64).reshape(-1, 2) * US
    return merge(edges[:, 0].round().astype(np.int64), edges[:, 1].round().astype(np.int64))


def _communication(row: int, one: One) -> Communication:
    args = CollectiveArgs(name=one.kind, group=one.group, ranks=one.ranks, sequence=one.number, uneven=one.uneven)
    return Communication(
        row=row,
        collective=one.kind,
        group=one.group,
        group_size=len(one.ranks) or one.members,
        message_bytes=one.size,
        args=args,
        source=one.source,
        target=one.target,
    )


def _trace(start: np.ndarray, end: np.ndarray, base_ns: int) -> Trace:
    count = len(start)
    absent = np.full(count, ABSENT, dtype=np.int64)
    return Trace(
        format="kineto",
        file="hand.json",
        start_ns=start,
        duration_ns=end - start,
        category=np.full(count, Category.KERNEL, dtype=np.int8),
        name_id=np.zeros(count, dtype=np.int32),
        stream=absent,
        device=absent,
        thread=absent.astype(np.int32),
        correlation=absent,
        external_id=absent,
        size_bytes=absent,
        names=("ncclKernel",),
        metadata=Metadata(base_time_ns=base_ns or None),
    )
