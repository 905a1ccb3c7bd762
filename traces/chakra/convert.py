"""Nodes with start times to a Trace.

A graph without start times is no measured time line, and none is made up from its durations and dependencies.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, NoReturn

import numpy as np

from projector.errors import CorruptTrace, EmptyTrace, TraceWithoutTimes
from traces.chakra.graph import Node
from traces.chakra.rows import Row, Rows
from traces.chrome.believable import NS_PER_DAY
from traces.chrome.exact_time import MAX_NS
from traces.content import Content
from traces.execution_trace.communication import world_size_of
from traces.trace import ABSENT, DEVICE_CATEGORIES, Category, Ints, Mask, Metadata, Trace, moved

_RANK: Final = re.compile(r"[._-](\d{1,6})\.(?:et|json)(?:\.gz)?$")
_START, _DURATION, _CATEGORY, _NAME, _STREAM, _THREAD, _ID, _PARENT, _SIZE = range(len(Row._fields))


def trace_of(content: Content, nodes: Iterator[Node | None], told: Callable[[], tuple[str, ...]]) -> Trace:
    """The Trace of the timed nodes; None among the nodes stands for one that cannot be decoded.

    told: what the decoder has to say, asked after the last node.
    Raises `TraceWithoutTimes` where no node has a start, `EmptyTrace`, `CorruptTrace`, and what `nodes` raises.
    """
    rows = Rows()
    for node in nodes:
        rows.add(node)
    if not rows.rows:
        _refuse(content, rows, told())
    table = np.array(rows.rows, dtype=np.int64)
    keep, dropped = _believable(table)
    if not keep.any():
        raise EmptyTrace(f"{content.file} holds no node with usable times", hint="; ".join(dropped))
    table = table[keep]
    order = np.lexsort((table[:, _STREAM], table[:, _CATEGORY], -table[:, _DURATION], table[:, _START]))
    table = table[order]
    place = np.full(len(keep), ABSENT, dtype=np.int64)
    place[np.flatnonzero(keep)[order]] = np.arange(len(order))
    on_host = np.isin(table[:, _CATEGORY], (Category.CPU_OP, Category.ANNOTATION))
    collectives = moved(rows.collectives(), place)
    rank = _RANK.search(content.file)
    warnings = (*content.warnings, *told(), *dropped, *_told_of(rows), *_exclusive(table, on_host))
    if rank is not None:
        warnings += (f"rank {rank[1]} was taken from the name of the file, which is all that states it",)
    return Trace(
        format="chakra",
        file=content.file,
        start_ns=np.ascontiguousarray(table[:, _START]),
        duration_ns=np.ascontiguousarray(table[:, _DURATION]),
        category=table[:, _CATEGORY].astype(np.int8),
        name_id=table[:, _NAME].astype(np.int32),
        device=np.full(len(table), ABSENT, dtype=np.int64),
        stream=np.ascontiguousarray(table[:, _STREAM]),
        thread=table[:, _THREAD].astype(np.int32),
        correlation=np.full(len(table), ABSENT, dtype=np.int64),
        external_id=np.where(on_host, table[:, _ID], table[:, _PARENT]),
        size_bytes=np.ascontiguousarray(table[:, _SIZE]),
        names=tuple(rows.names),
        collectives=collectives,
        inputs=moved(rows.inputs, place),
        metadata=_metadata(rows, None if rank is None else int(rank[1])),
        event_counts=dict(sorted(rows.counts.items())),
        warnings=warnings,
    )


def _refuse(content: Content, rows: Rows, told: tuple[str, ...]) -> NoReturn:
    """Refuse a file without a timed node."""
    if rows.broken == rows.nodes and (rows.nodes or told):
        raise CorruptTrace(
            f"{content.file} is a Chakra trace without a node that can be read", hint="copy the file again"
        )
    if not rows.nodes:
        raise EmptyTrace(f"{content.file} is a Chakra trace without a node", hint="trace at least one whole step")
    raise TraceWithoutTimes(
        f"{content.file} is a Chakra graph (nodes: {rows.nodes:,}) of dependencies and durations, "
        f"{rows.duration_ns // 1000:,} us in sum, without start times: that is no measured time line",
        hint="give the Kineto trace the graph was made from, if it was measured: it has the start times",
    )


def _believable(table: Ints) -> tuple[Mask, tuple[str, ...]]:
    """Rows whose times can be right, and a sentence for each reason to drop others."""
    starts, durations = table[:, _START], table[:, _DURATION]
    readable = (starts >= 0) & (starts < MAX_NS) & (durations >= 0)
    middle = np.sort(starts[readable])[int(readable.sum()) // 2] if readable.any() else 0
    keep = np.ones(len(table), dtype=np.bool_)
    told: list[str] = []
    for wrong, why in (
        (~readable, "had times out of range"),
        (durations > NS_PER_DAY, "lasted longer than a day"),
        (np.abs(np.where(readable, starts, middle) - middle) > NS_PER_DAY, "started more than a day from the others"),
    ):
        wrong = wrong & keep
        keep &= ~wrong
        if count := int(wrong.sum()):
            on_device = int((wrong & np.isin(table[:, _CATEGORY], DEVICE_CATEGORIES)).sum())
            told.append(f"{count:,} nodes {why} and were dropped ({on_device:,} of them on the device)")
    return keep, tuple(told)


def _told_of(rows: Rows) -> tuple[str, ...]:
    sentences = (
        (rows.broken, f"of {rows.nodes:,} nodes cannot be decoded and were left out"),
        (rows.untyped, "nodes are of a type the schema does not have and were left out"),
        (
            rows.untimed,
            f"of {rows.nodes:,} nodes state no start time and were left out ({rows.untimed_on_device:,} of them on the "
            "device); the protobuf form writes a start of zero as none",
        ),
        (rows.unlasting, "nodes state no duration, or one of zero, and count as 0 ns"),
        (rows.unplaced, "nodes do not say whether they ran on the host and were taken for device events"),
        (rows.disbelieved, "sizes of messages or groups are beyond any machine and were taken as unknown"),
        (rows.unsized, "gathers belong to groups of unknown size, so their message size is unknown"),
    )
    return tuple(f"{count:,} {what}" for count, what in sentences if count)


def _exclusive(table: Ints, on_host: Mask) -> tuple[str, ...]:
    """A warning where host durations leave out what the operator called: callees begin after their caller's end."""
    host = table[on_host]
    known = host[host[:, _ID] != ABSENT]
    if not len(known):
        return ()
    order = np.argsort(known[:, _ID], kind="stable")
    ids = known[order, _ID]
    at = np.minimum(np.searchsorted(ids, host[:, _PARENT]), len(ids) - 1)
    called = (host[:, _PARENT] != ABSENT) & (ids[at] == host[:, _PARENT])
    caller = known[order[at[called]]]
    late = int((host[called, _START] >= caller[:, _START] + caller[:, _DURATION]).sum())
    if 2 * late <= len(caller) or not late:
        return ()
    return (
        f"{late:,} of {len(caller):,} called host operators begin after their caller ended: durations of host "
        "operators leave out what they called, and host times are understated",
    )


def _metadata(rows: Rows, rank: int | None) -> Metadata:
    world_size = world_size_of(rows.groups.values())
    every_rank = tuple(range(world_size or 0))
    return Metadata(
        rank=rank,
        world_size=world_size,
        groups=tuple(
            replace(group.config, ranks=every_rank) if group.of_all_ranks else group.config
            for group in rows.groups.values()
        ),
        world_size_basis="declared process groups",
    )
