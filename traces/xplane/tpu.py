"""A TensorCore plane: what its op line, its asynchronous operators and its steps say.

Device time is what the op line shows; each operator counts for its own time, without what it contains. An asynchronous
collective is on a line of its own from start to done: there it is communication, hidden while the core computes. The
start and the done on the op line are then the same collective and are not counted again. Without that line the done, in
which the core waits, is all that is known of it. Other asynchronous operators (prefetches) occupy a core only while it
waits for them.

A transfer between slices (`dcn_ops`) is communication from its send to its recv-done likewise, and its four operators
are not counted again; those that belong to none that is whole count for themselves.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from traces import intervals
from traces.intervals import Intervals
from traces.naming import KINDS
from traces.trace import ABSENT, UNKNOWN_WORK, Category, CollectiveArgs, Ints, Mask
from traces.xplane.dcn_host import HostSide
from traces.xplane.dcn_ops import DcnOp, dcn_ops
from traces.xplane.hlo import OpClass
from traces.xplane.hlo_text import group_size, message_elements
from traces.xplane.nesting import OwnTime, own_time
from traces.xplane.planes import (
    ASYNC_LINE,
    MODULES_LINE,
    OPS_LINE,
    STEPS_LINE,
    device_index,
    on_one_clock,
    peaks_of,
)
from traces.xplane.profile import DeviceProfile, Op, measure, op_of, step_windows
from traces.xplane.program_runs import ProgramRuns, program_runs
from traces.xplane.rows import Rows
from traces.xplane.space import Line, Plane
from traces.xplane.transfers import Transfers, transfers_of, with_host

_OP_STREAM = 0
_ASYNC_STREAM = 1
_DCN_STREAM = 2
DCN_GROUP: Final = "DCN"
"""What the communicators of transfers between slices are called; the profile has no name for them."""
STEP_PREFIX: Final = "XLA step "

_HALF: Final = re.compile(r"start|done|update|^(?:send|recv)\b")

Found = tuple[DeviceProfile, Counter[str], tuple[str, ...]]
"""Profile of a device, how often each framework operator ran, warnings."""


@dataclass(frozen=True, slots=True, eq=False)
class _Core:
    """A core and its operators, one entry a kind of event; `dcn` holds those of transfers between slices."""

    device: int
    ops: tuple[Op, ...]
    dcn: dict[int, DcnOp]
    titles: Ints
    args: tuple[CollectiveArgs | None, ...]

    def flags(self, chosen: Sequence[bool]) -> Mask:
        """One flag a kind."""
        return np.array(chosen, dtype=np.bool_)


def tpu_rows(plane: Plane, data: bytes | bytearray, rows: Rows, host: HostSide) -> Found | None:
    """Add the device's rows; None without an op line. `host`: what the host did for transfers between slices."""
    lines = on_one_clock(plane, OPS_LINE, ASYNC_LINE, MODULES_LINE if plane.line(STEPS_LINE) is None else STEPS_LINE)
    if OPS_LINE not in lines:
        return None
    core = _core(plane, data, rows, host)
    own = own_time(lines[OPS_LINE])
    transfers = transfers_of(own.line, core.dcn, {index: core.ops[index].name for index in core.dcn})
    in_flight = _async_collectives(lines.get(ASYNC_LINE), core)
    flying = intervals.EMPTY if in_flight is None else intervals.merge(in_flight.begin_ps, in_flight.end_ps)
    across = intervals.merge(transfers.flights[:, 0], transfers.flights[:, 1])
    _add_ops(rows, own, core, flying, across)
    _add_flights(rows, core, in_flight, transfers)
    runs = program_runs(plane, lines.get(MODULES_LINE))
    steps = runs.line if runs is not None else lines.get(STEPS_LINE)
    if steps is not None:
        names = rows.name_ids(_step_names(plane, steps, runs))
        rows.add(steps.begin_ps, steps.end_ps, names, Category.DEVICE_ANNOTATION, device=core.device, stream=_OP_STREAM)
    open_ps = None if in_flight is None else intervals.union(flying, across)
    profile = measure(own, own.line.kind, core.ops, step_windows(steps), open_ps, peaks_of(plane))
    profile = replace(profile, transfers=with_host(transfers.sums, host, core.device))
    told = _warnings(core, own, profile, in_flight, transfers)
    return profile, _framework_ops(own.line.kind, core.ops), told if runs is None else (runs.told(), *told)


def _core(plane: Plane, data: bytes | bytearray, rows: Rows, host: HostSide) -> _Core:
    ops = [op_of(kind, data) for kind in plane.kinds]
    dcn = dcn_ops(plane.kinds, ops, data, {rendezvous for _, rendezvous in host})
    for index, one in dcn.items():
        ops[index] = replace(ops[index], op_class=OpClass("communication", collective=one.collective))
    return _Core(
        device=device_index(plane),
        ops=tuple(ops),
        dcn=dcn,
        titles=rows.name_ids([op.name for op in ops]),
        args=tuple(
            _across_slices(dcn[index]) if index in dcn else _collective_args(op) for index, op in enumerate(ops)
        ),
    )


def _add_ops(rows: Rows, own: OwnTime, core: _Core, flying: Intervals, across: Intervals) -> None:
    """Operators of the op line, without those that are halves of what is in flight."""
    pieces = own.pieces
    kind = own.line.kind[pieces[:, 2]]
    is_dcn = core.flags([index in core.dcn for index in range(len(core.ops))])
    halves = core.flags([_is_half(op) for op in core.ops]) & ~is_dcn
    repeats = (halves[kind] & _inside(pieces, flying)) | (is_dcn[kind] & _inside(pieces, across))
    pieces, kind = pieces[~repeats], kind[~repeats]
    category = np.array([_category(op) for op in core.ops], dtype=np.int64)
    stated = np.array([_stated_kind(op) for op in core.ops], dtype=np.int64)
    rows.add(
        pieces[:, 0],
        pieces[:, 1],
        core.titles[kind],
        category[kind],
        device=core.device,
        stream=_OP_STREAM,
        kind=stated[kind],
        collectives=[core.args[index] for index in kind.tolist()],
    )


def _add_flights(rows: Rows, core: _Core, in_flight: Line | None, transfers: Transfers) -> None:
    """Collectives from start to done, and transfers between slices from send to recv-done."""
    if in_flight is not None and len(in_flight):
        rows.add(
            in_flight.begin_ps,
            in_flight.end_ps,
            core.titles[in_flight.kind],
            Category.KERNEL,
            device=core.device,
            stream=_ASYNC_STREAM,
            collectives=[core.args[kind] for kind in in_flight.kind.tolist()],
        )
    begin, end, index = transfers.flights.T
    if len(index):
        args = [replace(_across_slices(one.op), out_elements=one.op.message_bytes) for one in transfers.sums]
        rows.add(
            begin,
            end,
            rows.name_ids([f"MegaScale {one.rendezvous}" for one in transfers.sums])[index],
            Category.KERNEL,
            device=core.device,
            stream=_DCN_STREAM,
            collectives=[args[one] for one in index.tolist()],
        )


def _step_names(plane: Plane, steps: Line, runs: ProgramRuns | None) -> list[str]:
    """One name for each step; two steps of one number stay two."""
    if runs is not None:
        return [f"{STEP_PREFIX}{number} of {runs.program}" for number in range(len(steps))]
    seen: Counter[str] = Counter()
    names = []
    for kind in steps.kind.tolist():
        name = f"{STEP_PREFIX}{plane.kinds[kind].title}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def _async_collectives(line: Line | None, core: _Core) -> Line | None:
    """Events of the asynchronous line that are collectives; None without such a line.

    A transfer between slices is told from its operators on the op line and not from here.
    """
    if line is None:
        return None
    wanted = [_communicates(op) and index not in core.dcn for index, op in enumerate(core.ops)]
    return line.where(core.flags(wanted)[line.kind])


def _communicates(op: Op) -> bool:
    return op.op_class is not None and op.op_class.event_class == "communication"


def _is_half(op: Op) -> bool:
    """Whether it starts or ends an asynchronous collective."""
    return _communicates(op) and any(_HALF.search(text.lower()) for text in (op.category, op.name))


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


def _across_slices(op: DcnOp) -> CollectiveArgs:
    return CollectiveArgs(
        name=op.collective, group=DCN_GROUP, group_description="between slices", group_size=op.group_size, dtype="byte"
    )


def _framework_ops(kind: Ints, ops: Sequence[Op]) -> Counter[str]:
    counts: Counter[str] = Counter()
    ids, occurrences = np.unique(kind, return_counts=True)
    for index, count in zip(ids.tolist(), occurrences.tolist(), strict=True):
        if ops[index].framework_op:
            counts[ops[index].framework_op] += count
    return counts


def _warnings(
    core: _Core, own: OwnTime, profile: DeviceProfile, in_flight: Line | None, transfers: Transfers
) -> tuple[str, ...]:
    told = []
    ran = np.unique(own.line.kind).tolist()
    if in_flight is None and any(_is_half(core.ops[index]) and index not in core.dcn for index in ran):
        told.append(
            "the profile has no line of asynchronous operators: of asynchronous collectives only the waiting is known, "
            "not how much of them computation hides"
        )
    if transfers.unmatched:
        told.append(
            f"{transfers.unmatched:,} operators of transfers between slices belong to none that begins and ends in the "
            "profile; they count for the time the core spends in them"
        )
    if profile.outside_ps:
        outside = profile.outside_ps / max(int(own.own_ps.sum()), 1)
        told.append(f"{outside:.0%} of operator time lies outside the complete steps and is not in the op table")
    return tuple(told)
