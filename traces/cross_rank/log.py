"""CollectiveLog: one rank's collectives in order, as compact columns that travel to where the ranks are compared."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import Axis
from projector.specs.record import MOST_DEVICES
from traces import intervals
from traces.collectives import Communication, bus_bytes_of
from traces.shares import Cover
from traces.trace import ABSENT, CollectiveArgs, Ints, Mask, Trace

MOST_INSTANCES: Final = 8_192
"""Collectives of one rank that are compared; a trace with more is compared over its first ones."""

MOST_GROUPS: Final = 1_024
MOST_RANKS_LISTED: Final = 65_536
"""Ranks of all groups of one log together; lists beyond it, and of ranks no machine has, count as not stated."""

ROOM_OF_A_HOST: Final = 8

_ALWAYS = 1 << 61
_NAME_SHOWN = 40
_NOTHING: Final = CollectiveArgs("")
Narrow = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as one rank states it. ranks: in the group's order, () where not stated."""

    name: str = ""
    description: str = ""
    size: int | None = None
    ranks: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """How to name the group at the end of a sentence."""
        if not self.name:
            return "that name no group"
        described = f" ({self.description[:_NAME_SHOWN]!a})" if self.description else ""
        return f"of group {self.name[:_NAME_SHOWN]!a}{described}"

    @property
    def is_near(self) -> bool:
        """Whether all ranks are of one block of ROOM_OF_A_HOST, most likely of one host."""
        return len({rank // ROOM_OF_A_HOST for rank in self.ranks}) == 1


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveLog:
    """Collectives of one rank, sorted by start; all columns have one entry a collective. ABSENT: not stated.

    start_ns, duration_ns   on the file's own clock, its base time added
    group, collective       index into `groups`, `collectives`
    sequence                number of the collective within its group
    message_bytes           the full buffer
    bus_bytes               what the link has to carry for it (`traces.messages`), rounded
    source, target          global ranks of a send or receive; ABSENT is the rank itself or unknown
    exposed_ns              part of the duration that no compute covers
    compute_before_ns       compute on this rank from the start of its window to the start of the collective
    own_before_ns           time on this rank up to there that is not exposed communication: compute, copies, idle
    on_compute_stream       its stream also computes
    axes                    parallelism axis of each group
    span_ns                 length of the rank's window
    left_out                collectives beyond MOST_INSTANCES
    """

    groups: tuple[Group, ...]
    axes: tuple[Axis, ...]
    collectives: tuple[str, ...]
    start_ns: Ints
    duration_ns: Narrow
    group: NDArray[np.int32]
    collective: NDArray[np.int32]
    sequence: Narrow
    message_bytes: Narrow
    bus_bytes: Narrow
    source: Narrow
    target: Narrow
    exposed_ns: Narrow
    compute_before_ns: Narrow
    own_before_ns: Narrow
    on_compute_stream: Mask
    span_ns: int = 0
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Ints:
        """End of every collective."""
        return self.start_ns + self.duration_ns

    @property
    def alone(self) -> Mask:
        """Which collectives have the rank's links to themselves: none overlaps them by more than 1 % of their time.

        Only those of the same reach count: groups within ROOM_OF_A_HOST neighbouring ranks are taken to use other links
        than groups that span more.
        """
        far = np.array([not group.is_near for group in self.groups], dtype=np.bool_)[self.group]
        alone = np.zeros(len(self), dtype=np.bool_)
        for rows in (np.flatnonzero(far), np.flatnonzero(~far)):
            start, end = self.start_ns[rows], self.end_ns[rows]
            before = np.maximum.accumulate(np.concatenate(([-_ALWAYS], end)))[:-1]
            after = np.concatenate((start[1:], [_ALWAYS]))[: len(rows)]
            slack = self.duration_ns[rows] // 100
            alone[rows] = (start >= before - slack) & (end <= after + slack)
        return alone

    def rows_of(self, group: int) -> Ints:
        """Rows of one group, in order."""
        return np.flatnonzero(self.group == group)


def collective_log(
    trace: Trace, found: tuple[Communication, ...], cover: Cover, axis_of: Callable[[Communication], Axis]
) -> CollectiveLog:
    """The log of the communications `found` on one device, `cover` being its window."""
    ordered = sorted(found, key=lambda one: int(trace.start_ns[one.row]))[:MOST_INSTANCES]
    groups, group = _groups(trace, ordered)
    names = list(dict.fromkeys(one.collective for one in ordered))
    place = {name: index for index, name in enumerate(names)}
    rows = np.array([one.row for one in ordered], dtype=np.int64)
    start, duration = trace.start_ns[rows], trace.duration_ns[rows]
    compute_before = intervals.covered_before(cover.compute, start)
    compute_after = intervals.covered_before(cover.compute, start + duration)
    exposed = intervals.subtract(cover.communication, cover.compute)
    return CollectiveLog(
        groups=groups,
        axes=_axes(ordered, group, len(groups), axis_of),
        collectives=tuple(names),
        start_ns=_with_base(start, trace.metadata.base_time_ns or 0),
        duration_ns=_narrow(duration),
        group=group,
        collective=np.array([place[one.collective] for one in ordered], dtype=np.int32),
        sequence=_column([one.args.sequence if one.args else None for one in ordered]),
        message_bytes=_column([one.message_bytes for one in ordered]),
        bus_bytes=_column([_rounded(bus_bytes_of(one)) for one in ordered]),
        source=_column([one.source for one in ordered]),
        target=_column([one.target for one in ordered]),
        exposed_ns=_narrow(duration - (compute_after - compute_before)),
        compute_before_ns=_narrow(compute_before),
        own_before_ns=_narrow(start - cover.start_ns - intervals.covered_before(exposed, start)),
        on_compute_stream=np.array([one.on_compute_stream for one in ordered], dtype=np.bool_),
        span_ns=cover.end_ns - cover.start_ns,
        left_out=len(found) - len(ordered),
    )


def _with_base(start_ns: Ints, base_ns: int) -> Ints:
    """Times with the file's base; without it where sums of two would pass 64 bits, which no clock's do."""
    latest = base_ns + int(np.abs(start_ns).max(initial=0))
    return start_ns + base_ns if latest < _ALWAYS else start_ns


def _groups(trace: Trace, ordered: Sequence[Communication]) -> tuple[tuple[Group, ...], NDArray[np.int32]]:
    """The groups in order of appearance, and for each collective the index of its own.

    The list of ranks is the collective's own, or follows from its first rank and stride, or is the one the file
    declares for a group of that name. Groups beyond MOST_GROUPS are taken together as one that states nothing.
    """
    declared = {one.name: one.ranks for one in trace.metadata.groups}
    room = MOST_RANKS_LISTED
    groups: dict[Group, int] = {}
    known: dict[tuple[object, ...], int] = {}
    index = np.zeros(len(ordered), dtype=np.int32)
    for position, one in enumerate(ordered):
        args = one.args or _NOTHING
        key = (one.group, one.group_description, one.group_size, args.ranks, args.rank_start, args.rank_stride)
        if key not in known:
            size = one.group_size if one.group_size is not None and one.group_size <= MOST_DEVICES else None
            ranks = args.ranks or _strided(args, size, room) or declared.get(one.group, ())
            ranks = ranks if len(ranks) <= room and max(ranks, default=0) < MOST_DEVICES else ()
            room -= len(ranks)
            group = Group(one.group, one.group_description, size or len(ranks) or None, ranks)
            group = group if len(groups) < MOST_GROUPS else Group()
            known[key] = groups.setdefault(group, len(groups))
        index[position] = known[key]
    return tuple(groups), index


def _strided(args: CollectiveArgs, size: int | None, room: int) -> tuple[int, ...]:
    if args.rank_start is None or args.rank_stride is None or size is None or size > room:
        return ()
    return tuple(range(args.rank_start, args.rank_start + args.rank_stride * size, args.rank_stride))


def _axes(
    ordered: Sequence[Communication],
    group: NDArray[np.int32],
    count: int,
    axis_of: Callable[[Communication], Axis],
) -> tuple[Axis, ...]:
    """For each group the axis most of its collectives serve, 'unknown' where none says."""
    votes: list[Counter[Axis]] = [Counter() for _ in range(count)]
    for index, one in zip(group.tolist(), ordered, strict=True):
        axis = axis_of(one)
        if axis != "unknown":
            votes[index][axis] += 1
    return tuple(vote.most_common(1)[0][0] if vote else "unknown" for vote in votes)


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _column(values: Sequence[int | None]) -> Narrow:
    """A column of integers; what is not stated or passes 62 bits becomes ABSENT."""
    return _narrow(np.array([ABSENT if value is None or value >> 62 else value for value in values], dtype=np.int64))


def _narrow(values: Ints) -> Narrow:
    """The column in 32 bits where it fits."""
    fits = not len(values) or (values.max() < 2**31 and values.min() >= -(2**31))
    return values.astype(np.int32) if fits else values
