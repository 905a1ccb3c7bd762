"""Closes the tables of a file into Traces: times checked, rows sorted, names and threads numbered anew."""

import re
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from traces.chrome.believable import Codes, believable
from traces.chrome.categories import ON_DEVICE, Group
from traces.chrome.fields import whole
from traces.chrome.tables import Tables
from traces.limits import Limits
from traces.trace import ABSENT, Category, Ints, Metadata, Trace, moved

_NAME_SHOWN: Final = 60
_NO_ID: Final = 0  # the profiler's "none"
_ANNOTATION_NAME: Final = re.compile(r"ProfilerStep#\d|Optimizer\.|enumerate\(DataLoader\)|DistributedDataParallel\.")


def traces_of(
    tables: Tables, file: str, metadata: Metadata, warnings: tuple[str, ...], limits: Limits
) -> tuple[Trace, ...]:
    """One Trace for each device with events, or one of the host where there is none. Uses the tables up.

    Names are numbered in alphabetical order and threads by their first row, so that neither depends on how the file was
    read.
    """
    staging = tables.staging
    start, start_faults = staging.take_times(staging.starts)
    duration, duration_faults = staging.take_times(staging.durations)
    stream = staging.take("stream")
    names, name_id = _alphabetical(list(tables.names), staging.take("name"))
    category = _annotations_apart(staging.take_categories(), names, name_id)
    keep, told = believable(start, duration, category, start_faults, duration_faults)
    order = _order(np.flatnonzero(keep), start, duration, category, stream)
    place = np.full(len(start), ABSENT, dtype=np.int64)
    place[order] = np.arange(len(order))
    ops, device = (place[staging.first_row(group) :] for group in (Group.OPS, Group.DEVICE))
    record_ids = staging.take("record_id", place, nothing=_NO_ID)
    trace = Trace(
        format="kineto",
        file=file,
        start_ns=start[order],
        duration_ns=duration[order],
        category=category[order],
        name_id=name_id.astype(np.int32)[order],
        device=staging.take("device", place),
        stream=stream[order],
        thread=_by_first_row(staging.take("thread", place)),
        correlation=staging.take("correlation", place),
        external_id=staging.take("external_id", place, nothing=_NO_ID),
        size_bytes=staging.take("size", place),
        names=names,
        collectives=moved(tables.collectives[Group.OPS], ops) | moved(tables.collectives[Group.DEVICE], device),
        inputs=moved(tables.inputs, ops),
        metadata=replace(metadata, process_id=_process_id(tables)),
        memory_high_water_bytes=tables.memory,
        event_counts=dict(sorted(tables.counts.items())),
        warnings=warnings + told + _left_out(tables),
        record_ids=record_ids if (record_ids != ABSENT).any() else None,
        copy_kinds=moved(tables.copy_kinds, device),
        stated_flop=moved(tables.flop, ops),
    )
    return _by_device(trace, limits)


def _left_out(tables: Tables) -> tuple[str, ...]:
    told: tuple[str, ...] = ()
    if tables.unknown:
        by_count = sorted(tables.unknown.items(), key=lambda item: (-item[1], item[0]))[:5]
        listed = ", ".join(f"{count:,} x {name[:_NAME_SHOWN]}" for name, count in by_count)
        told += (f"timed events of categories that are not known here were left out: {listed}",)
    if tables.unpaired:
        told += (f"{tables.unpaired:,} begin/end events were not read; only complete events are",)
    return told


def _alphabetical(names: list[str], name_id: Ints) -> tuple[tuple[str, ...], Ints]:
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return tuple(names[index] for index in order), rank[name_id]


def _by_first_row(thread: Ints) -> NDArray[np.int32]:
    """Threads numbered in the order of their first row; ABSENT stays."""
    rows = np.flatnonzero(thread != ABSENT)[::-1]
    first = np.full(int(thread.max(initial=ABSENT)) + 1, len(thread), dtype=np.int64)
    first[thread[rows]] = rows  # of several rows the one written last, which is the first
    rank = np.empty(len(first) + 1, dtype=np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    rank[ABSENT] = ABSENT
    return rank[thread]


def _annotations_apart(category: Codes, names: tuple[str, ...], name_id: Ints) -> Codes:
    """The 2021 schema files step marks and the like under operators: move them to annotations."""
    marks = np.array([_ANNOTATION_NAME.match(name) is not None for name in names], dtype=np.bool_)
    if marks.any():
        category[marks[name_id] & (category == Category.CPU_OP)] = Category.ANNOTATION
    return category


def _order(rows: Ints, start: Ints, duration: Ints, category: Codes, stream: Ints) -> Ints:
    """`rows` by start, the longer first, then by category, stream and place in the file."""
    order = rows[np.argsort(start[rows], kind="stable")]
    starts = start[order]
    tied = np.zeros(len(order), dtype=np.bool_)
    tied[1:] = starts[1:] == starts[:-1]
    tied[:-1] |= tied[1:]
    among = order[tied]
    order[tied] = among[np.lexsort((stream[among], category[among], -duration[among], start[among]))]
    return order


def _process_id(tables: Tables) -> int | None:
    """The process all host rows are of."""
    found = set(map(whole, tables.threads))
    return found.pop() if len(found) == 1 and min(found) > 0 else None


def _by_device(trace: Trace, limits: Limits) -> tuple[Trace, ...]:
    """Split by device where one process drove several; the host rows go with each."""
    rows = trace.device_rows
    devices = np.unique(trace.device[rows])
    limits.check("max_devices", len(devices), f"number of devices in {trace.file}")
    if len(devices) < 2:
        return (trace,)
    host = ~np.isin(trace.category, [int(one) for one in ON_DEVICE])
    return tuple(trace.take(np.flatnonzero(host | (trace.device == device))) for device in devices)
