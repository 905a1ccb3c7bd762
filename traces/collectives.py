"""Communication by collective and process group: what each costs, what of it is exposed, how much data it moves."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from projector.breakdown import Axis
from projector.units import NS_PER_S
from traces import intervals
from traces.intervals import Intervals
from traces.kernel_names import LONGEST_NAME
from traces.linking import NONE, innermost_open
from traces.messages import bus_bytes, operand_bytes, pattern_of, stated_bytes
from traces.naming import Classified, EventClass
from traces.shares import union_of
from traces.summary_types import CollectiveTime
from traces.trace import Category, CollectiveArgs, Ints, Trace

_UNSPECIFIC: Final = frozenset(
    {"", "collective", "coalesced", "wait", "nccl", "one_sided", "userbuffers", "symmetric_memory"}
)
_TRANSPORT: Final = re.compile(r"(?:nccl|rccl|gloo|mpi|ucc|xccl|hccl):")
_SPELLINGS: Final = (
    ("all_reduce", "allreduce"),
    ("all_gather", "allgather"),
    ("reduce_scatter", "reducescatter"),
    ("all_to_all", "alltoall"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("send", "send"),
    ("recv", "recv"),
    ("reduce", "reduce"),
)
# what an event may lack that its operator states
_COPIED: Final = (
    "group_size", "ranks", "rank_start", "rank_stride", "sequence", "source_rank", "target_rank", "uneven",
)  # fmt: skip
# what NCCL's annotations call a send or receive: "nccl:send 0->4", in ranks of the group
_PEERS: Final = re.compile(r"\w{1,8}:(send|recv) (\d{1,7})(?:->|<-)(\d{1,7})$")
_LEAST_COMPUTE_SHARE = 0.1

MOST_LINES: Final = 4_096
"""Lines of collectives of one rank; a job of 100,000 chips uses tens of groups a rank."""
OTHER_GROUPS: Final = "other groups"


@dataclass(frozen=True, slots=True)
class Communication:
    """One communication event, told as far as the trace tells it.

    args                what the profiler wrote beside it, on the event or on the operator that launched it
    message_bytes       the full buffer, see `traces.messages`
    source, target      global ranks of a send or receive, as far as stated; the other one is the rank itself
    on_compute_stream   its stream also carries a good part of the compute, so it cannot run beside it
    """

    row: int
    collective: str
    group: str = ""
    group_description: str = ""
    group_size: int | None = None
    message_bytes: int | None = None
    args: CollectiveArgs | None = None
    source: int | None = None
    target: int | None = None
    on_compute_stream: bool = False


def communications(trace: Trace, classified: Classified) -> tuple[Communication, ...]:
    """Every communication event on the device, with what its arguments and the operators around it say."""
    chosen = np.flatnonzero(classified.event_class == EventClass.COMMUNICATION)
    rows, operators = classified.links.rows[chosen], classified.links.operator[chosen]
    around = _collective_around(trace, classified.links.launch[chosen])
    shared = np.isin(trace.stream[rows], _compute_streams(trace, classified))
    declared = _declared_sizes(trace)
    return tuple(
        _told(trace, int(row), int(operator), int(outer), bool(on_compute_stream), declared)
        for row, operator, outer, on_compute_stream in zip(rows, operators, around, shared, strict=True)
    )


def host_communications(trace: Trace, rows: Ints) -> tuple[Communication, ...]:
    """The same for collectives on the host. A collective is told once, where its transport ran it (gloo:all_reduce),
    not by the operators that asked for it (c10d::allreduce_); those count only where no transport is in the trace.
    """
    carried = np.fromiter((_TRANSPORT.match(name) is not None for name in trace.names), np.bool_, len(trace.names))
    transported = trace.named(rows, carried)
    declared = _declared_sizes(trace)
    counted = transported if len(transported) else rows
    return tuple(_told(trace, int(row), int(row), NONE, False, declared) for row in counted)


def collective_table(
    trace: Trace,
    found: tuple[Communication, ...],
    compute: Intervals,
    axis_of: Callable[[Communication], Axis],
) -> tuple[CollectiveTime, ...]:
    """One line for each (collective, group), the costliest first; beyond MOST_LINES one for each collective, of the
    group `OTHER_GROUPS`.
    """
    lines: dict[tuple[str, str], list[Communication]] = {}
    for one in found:
        lines.setdefault((one.collective, one.group), []).append(one)
    if len(lines) > MOST_LINES:
        lines = _fewer(trace, lines)
    rows = [np.array([member.row for member in members], dtype=np.int64) for members in lines.values()]
    exposed = _exposed_ns([union_of(trace, mine) for mine in rows], compute)
    table = (
        _line(trace, group, members, mine, exposed_ns, axis_of)
        for ((_, group), members), mine, exposed_ns in zip(lines.items(), rows, exposed, strict=True)
    )
    return tuple(sorted(table, key=lambda line: (-line.total_ns, line.collective, line.group)))


def _fewer(
    trace: Trace, lines: dict[tuple[str, str], list[Communication]]
) -> dict[tuple[str, str], list[Communication]]:
    """The costliest of many lines, the others put together."""
    cost = {key: sum(int(trace.duration_ns[one.row]) for one in members) for key, members in lines.items()}
    ordered = sorted(lines, key=lambda key: (-cost[key], key))
    kept = {key: lines[key] for key in ordered[:MOST_LINES]}
    for key in ordered[MOST_LINES:]:
        kept.setdefault((key[0], OTHER_GROUPS), []).extend(lines[key])
    return kept


def _exposed_ns(sets: list[Intervals], compute: Intervals) -> list[int]:
    """Length of each set that compute does not cover; compute is gone through once for all of them."""
    if not sets:
        return []
    together = np.concatenate(sets)
    starts, ends = together[:, 0], together[:, 1]
    hidden = intervals.covered_before(compute, ends) - intervals.covered_before(compute, starts)
    exposed = np.concatenate(([0], np.cumsum(ends - starts - hidden)))
    bounds = np.cumsum([0, *map(len, sets)])
    return [int(length) for length in exposed[bounds[1:]] - exposed[bounds[:-1]]]


def _line(
    trace: Trace,
    group: str,
    members: list[Communication],
    rows: Ints,
    exposed_ns: int,
    axis_of: Callable[[Communication], Axis],
) -> CollectiveTime:
    shared = np.array([member.on_compute_stream for member in members], dtype=np.bool_)
    sizes = {member.group_size for member in members if member.group_size is not None}
    messages = [member.message_bytes for member in members]
    stated = [message for message in messages if message is not None]
    return CollectiveTime(
        collective=members[0].collective,
        group=group,
        group_size=sizes.pop() if len(sizes) == 1 else None,
        axis=axis_of(members[0]) if group != OTHER_GROUPS else "unknown",
        count=len(members),
        total_ns=int(trace.duration_ns[rows].sum()),
        exposed_ns=exposed_ns,
        message_bytes=sum(stated) if len(stated) == len(messages) else None,
        on_compute_stream_ns=int(trace.duration_ns[rows[shared]].sum()),
        bus_bytes_per_s=_bus_rate(trace, members),
    )


def _bus_rate(trace: Trace, members: list[Communication]) -> float | None:
    """Median over the members whose bus bytes are known of bus bytes over duration; None where none are."""
    carried = [(bus_bytes_of(member), int(trace.duration_ns[member.row])) for member in members]
    rates = [size / duration * NS_PER_S for size, duration in carried if size and duration]
    return float(np.median(rates)) if rates else None


def bus_bytes_of(one: Communication) -> float | None:
    """Bytes the link has to carry for one communication; None where its size or its group is not known.

    An all-to-all that states no equal splits counts as unknown: what this rank holds is not what the busiest one sends.
    """
    if one.message_bytes is None:
        return None
    pattern = pattern_of(one.collective)
    if pattern == "all_to_all" and not (one.args is not None and one.args.uneven is False):
        return None
    size = 2 if pattern == "pair" else one.group_size
    return bus_bytes(one.collective, one.message_bytes, size) if size is not None else None


def rates_not_known(found: tuple[Communication, ...]) -> tuple[str, ...]:
    """A sentence about all-to-alls of stated size whose bus bandwidth is unknown for want of equal splits."""
    sized = [one for one in found if pattern_of(one.collective) == "all_to_all" and one.message_bytes is not None]
    count = sum(bus_bytes_of(one) is None and one.group_size is not None for one in sized)
    if not count:
        return ()
    return (f"{count:,} of {len(sized):,} all-to-alls do not state equal splits: their bus bandwidth is not known",)


def _declared_sizes(trace: Trace) -> dict[str, int]:
    """Sizes of the groups the file declares; of two of one name the first counts."""
    return {group.name: group.size for group in reversed(trace.metadata.groups)}


def _told(
    trace: Trace, row: int, operator: int, outer: int, on_compute_stream: bool, declared: Mapping[str, int]
) -> Communication:
    args = _arguments(trace, row, operator)
    names = [trace.name(other) for other in (operator, outer) if other != NONE]
    named = (
        _normal(args.name if args else ""),
        *(trace.rules.host_communication_of(name) for name in names),
        trace.rules.communication_of(trace.name(row)),
    )
    stated = [name for name in named if name]
    collective = next((name for name in stated if name not in _UNSPECIFIC), stated[-1] if stated else "unknown")
    group_size = _group_size(args, declared)
    message = stated_bytes(args) if args else None
    if message is None and operator != NONE:
        message = operand_bytes(trace.inputs.get(operator), collective, group_size)
    source, target = _peers(args, names)
    return Communication(
        row=row,
        collective=collective,
        group=args.group if args else "",
        group_description=args.group_description if args else "",
        group_size=group_size,
        message_bytes=message,
        args=args,
        source=source,
        target=target,
        on_compute_stream=on_compute_stream,
    )


def _arguments(trace: Trace, row: int, operator: int) -> CollectiveArgs | None:
    """Arguments of the event, with what only those of its operator state: profilers copy a part of them."""
    own, around = trace.collectives.get(row), trace.collectives.get(operator)
    if own is None or around is None or own is around:
        return own or around
    missing = {name: getattr(around, name) for name in _COPIED if getattr(own, name) in (None, ())}
    return replace(own, **missing)


def _peers(args: CollectiveArgs | None, names: list[str]) -> tuple[int | None, int | None]:
    """Sender and receiver as far as stated: by the arguments, otherwise by the annotation and the list of ranks."""
    if args is None:
        return None, None
    if args.source_rank is not None or args.target_rank is not None:
        return args.source_rank, args.target_rank
    match = next((found for name in names if (found := _PEERS.match(name, 0, LONGEST_NAME))), None)
    if match is None:
        return None, None
    own, other = (int(match[2]), int(match[3]))
    if max(own, other) >= len(args.ranks):
        return None, None
    pair = (args.ranks[own], args.ranks[other])
    return pair if match[1] == "send" else pair[::-1]


def _compute_streams(trace: Trace, classified: Classified) -> Ints:
    """Streams that carry at least a tenth of the device's compute time; a helper kernel makes no compute stream."""
    rows = classified.rows(EventClass.COMPUTE)
    streams, index = np.unique(trace.stream[rows], return_inverse=True)
    times = np.bincount(index, weights=trace.duration_ns[rows], minlength=len(streams))
    chosen: Ints = streams[times >= _LEAST_COMPUTE_SHARE * times.sum()]
    return chosen


def _collective_around(trace: Trace, launches: Ints) -> Ints:
    """For each launch the innermost operator or annotation around it that names a specific collective."""
    specific = np.fromiter(
        ((trace.rules.host_communication_of(name) or "") not in _UNSPECIFIC for name in trace.names),
        np.bool_,
        len(trace.names),
    )
    among = trace.named(trace.rows(Category.CPU_OP, Category.ANNOTATION), specific)
    found = np.full(len(launches), NONE, dtype=np.int64)
    known = launches != NONE
    if len(among) and known.any():
        found[known] = innermost_open(trace, launches[known], among)
    return found


def _normal(name: str) -> str:
    """The usual name of a collective: "_allgather_base" is an all_gather."""
    letters = re.sub(r"[^a-z]", "", name.lower())
    return next((usual for usual, spelling in _SPELLINGS if spelling in letters), name)


def _group_size(args: CollectiveArgs | None, declared: Mapping[str, int]) -> int | None:
    if args is None:
        return None
    if args.group_size is not None:
        return args.group_size
    return declared.get(args.group) if args.group else None
