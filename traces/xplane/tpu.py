"""A TensorCore plane: what its op line, its asynchronous operators and its steps say.

Device time is what the op line shows; each operator counts for its own time, without what it contains. An asynchronous
collective is on a line of its own from start to done: there it is communication, hidden while the core computes. The
start and the done on the op line are then the same collective and are not counted again. Without that line the done, in
which the core waits, is all that is known of it. Other asynchronous operators (prefetches) occupy a core only while it
waits for them.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from traces import intervals
from traces.intervals import Intervals
from traces.naming import KINDS
from traces.trace import ABSENT, UNKNOWN_WORK, Category, CollectiveArgs, Ints, Mask
from traces.xplane.hlo_text import group_size, message_elements
from traces.xplane.nesting import OwnTime, own_time
from traces.xplane.planes import ASYNC_LINE, OPS_LINE, STEPS_LINE, device_index, on_one_clock, peaks_of
from traces.xplane.profile import DeviceProfile, Op, measure, op_of, step_windows
from traces.xplane.rows import Rows
from traces.xplane.space import Line, Plane

_OP_STREAM = 0
_ASYNC_STREAM = 1
STEP_PREFIX = "XLA step "


Found = tuple[DeviceProfile, Counter[str], tuple[str, ...]]
"""Profile of a device, how often each framework operator ran, warnings."""


def tpu_rows(plane: Plane, data: bytes | bytearray, rows: Rows) -> Found | None:
    """Add the device's rows; None without an op line."""
    lines = on_one_clock(plane, OPS_LINE, ASYNC_LINE, STEPS_LINE)
    if OPS_LINE not in lines:
        return None
    ops = [op_of(kind, data) for kind in plane.kinds]
    own = own_time(lines[OPS_LINE])
    in_flight = _async_collectives(lines.get(ASYNC_LINE), ops)
    flying = intervals.EMPTY if in_flight is None else intervals.merge(in_flight.begin_ps, in_flight.end_ps)
    titles = rows.name_ids([op.name for op in ops])
    args = [_collective_args(op) for op in ops]
    device = device_index(plane)
    _add_ops(rows, own, ops, titles, args, device, flying)
    if in_flight is not None and len(in_flight):
        rows.add(
            in_flight.begin_ps,
            in_flight.end_ps,
            titles[in_flight.kind],
            Category.KERNEL,
            device=device,
            stream=_ASYNC_STREAM,
            collectives=[args[kind] for kind in in_flight.kind.tolist()],
        )
    steps = lines.get(STEPS_LINE)
    if steps is not None:
        names = rows.name_ids(_step_names(plane, steps))
        rows.add(steps.begin_ps, steps.end_ps, names, Category.DEVICE_ANNOTATION, device=device, stream=_OP_STREAM)
    windows = step_windows(steps)
    profile = measure(own, own.line.kind, ops, windows, None if in_flight is None else flying, peaks_of(plane))
    return profile, _framework_ops(own.line.kind, ops), _warnings(ops, own, profile, in_flight)


def _add_ops(
    rows: Rows,
    own: OwnTime,
    ops: Sequence[Op],
    titles: Ints,
    args: Sequence[CollectiveArgs | None],
    device: int,
    flying: Intervals,
) -> None:
    pieces = own.pieces
    kind = own.line.kind[pieces[:, 2]]
    repeats = np.array([_is_half(op) for op in ops], dtype=np.bool_)[kind] & _inside(pieces, flying)
    pieces, kind = pieces[~repeats], kind[~repeats]
    category = np.array([_category(op) for op in ops], dtype=np.int64)
    stated = np.array([_stated_kind(op) for op in ops], dtype=np.int64)
    rows.add(
        pieces[:, 0],
        pieces[:, 1],
        titles[kind],
        category[kind],
        device=device,
        stream=_OP_STREAM,
        kind=stated[kind],
        collectives=[args[index] for index in kind.tolist()],
    )


def _step_names(plane: Plane, steps: Line) -> list[str]:
    """One name for each step; two steps of one number stay two."""
    seen: Counter[str] = Counter()
    names = []
    for kind in steps.kind.tolist():
        name = f"{STEP_PREFIX}{plane.kinds[kind].title}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def _async_collectives(line: Line | None, ops: Sequence[Op]) -> Line | None:
    """Events of the asynchronous line that are collectives; None without such a line."""
    if line is None:
        return None
    communicates = np.array([_communicates(op) for op in ops], dtype=np.bool_)
    return line.where(communicates[line.kind])


def _communicates(op: Op) -> bool:
    return op.op_class is not None and op.op_class.event_class == "communication"


def _is_half(op: Op) -> bool:
    """Whether it starts or ends an asynchronous collective."""
    text = f"{op.category} {op.name}".lower()
    return _communicates(op) and ("start" in text or "done" in text or "update" in text)


def _inside(pieces: Ints, cover: Intervals) -> Mask:
    """For each piece whether the cover holds all of it."""
    if not len(cover):
        return np.zeros(len(pieces), dtype=np.bool_)
    index = np.searchsorted(cover[:, 0], pieces[:, 0], side="right") - 1
    inside: Mask = (index >= 0) & (pieces[:, 1] <= cover[np.maximum(index, 0), 1])
    return inside


def _category(op: Op) -> Category:
    return Category.MEMCPY if op.op_class is not None and op.op_class.event_class == "copy" else Category.KERNEL


def _stated_kind(op: Op) -> int:
    if op.op_class is None:
        return UNKNOWN_WORK
    return KINDS.index(op.op_class.kind) if op.op_class.kind is not None else ABSENT


def _collective_args(op: Op) -> CollectiveArgs | None:
    if op.op_class is None or op.op_class.event_class != "communication":
        return None
    dtype, elements = message_elements(op.long_name)
    return CollectiveArgs(
        name=op.op_class.collective, group_size=group_size(op.long_name), dtype=dtype, out_elements=elements
    )


def _framework_ops(kind: Ints, ops: Sequence[Op]) -> Counter[str]:
    counts: Counter[str] = Counter()
    ids, occurrences = np.unique(kind, return_counts=True)
    for index, count in zip(ids.tolist(), occurrences.tolist(), strict=True):
        if ops[index].framework_op:
            counts[ops[index].framework_op] += count
    return counts


def _warnings(ops: Sequence[Op], own: OwnTime, profile: DeviceProfile, in_flight: Line | None) -> tuple[str, ...]:
    told = []
    if in_flight is None and any(_is_half(ops[index]) for index in np.unique(own.line.kind).tolist()):
        told.append(
            "the profile has no line of asynchronous operators: of asynchronous collectives only the waiting is known, "
            "not how much of them computation hides"
        )
    if profile.outside_ps:
        outside = profile.outside_ps / max(int(own.own_ps.sum()), 1)
        told.append(f"{outside:.0%} of operator time lies outside the complete steps and is not in the op table")
    return tuple(told)
