"""Sums over one device of a profile: time of each operator, and how much of the steps was busy and in communication."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traces import intervals
from traces.intervals import Intervals
from traces.steps import complete
from traces.trace import Ints, Mask
from traces.xplane.cost import Cost, cost_of
from traces.xplane.hlo import OFF_DUTY, OpClass, known_category, op_class
from traces.xplane.nesting import OwnTime
from traces.xplane.planes import Peaks
from traces.xplane.space import Kind, Line
from traces.xplane.transfers import TransferSum


@dataclass(frozen=True, slots=True)
class Op:
    """An operator of one program: what it is, as far as the profile says, and the cost of one occurrence.

    op_class is None for an operator nobody can name. Operators of all devices with one (program, long_name, name,
    category) are one row of the op table.
    """

    name: str
    long_name: str
    category: str
    program: int
    framework_op: str
    op_class: OpClass | None
    cost: Cost | None


@dataclass(frozen=True, slots=True)
class OpSum:
    """An operator's occurrences in the window of one device; total_ps includes operators inside, own_ps does not."""

    op: Op
    count: int
    own_ps: int
    total_ps: int
    cost: Cost | None


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """One device. `window_ps` is the summed time of its complete steps, or of its whole window where steps is 0.

    transfers   between slices, in the whole profile
    """

    peaks: Peaks
    ops: tuple[OpSum, ...]
    steps: int
    window_ps: int
    busy_ps: int
    communication_ps: int
    all_reduce_ps: int
    unattributed_ps: int
    in_flight_ps: int | None
    outside_ps: int
    transfers: tuple[TransferSum, ...] = ()


def op_of(kind: Kind, data: bytes | bytearray) -> Op:
    """The operator an event kind of a TPU op line stands for."""
    category, name = kind.text("hlo_category"), kind.title
    cost = cost_of(kind, data)
    return Op(
        name=name,
        long_name=kind.name,
        category=known_category(category, name),
        program=kind.identity("program_id"),
        framework_op=kind.text("tf_op"),
        op_class=op_class(category, name, cost is not None and cost.flop > 0),
        cost=cost,
    )


def step_windows(line: Line | None) -> Ints:
    """Rows (begin_ps, end_ps) of the steps that were profiled whole, by begin; none where none are marked."""
    if line is None:
        return intervals.EMPTY
    marked = line.where(line.duration_ps > 0)
    windows = np.stack((marked.begin_ps, marked.end_ps), axis=1)
    windows = windows[np.argsort(windows[:, 0], kind="stable")]
    whole = np.array(complete((windows[:, 1] - windows[:, 0]).tolist()), dtype=np.bool_)
    return windows[whole]


def measure(
    own: OwnTime, op_ids: Ints, ops: Sequence[Op], windows: Ints, in_flight: Intervals | None, peaks: Peaks
) -> DeviceProfile:
    """Sum the events of one device, `ops[op_ids[i]]` being what event i is, over its steps.

    An event belongs to the step it begins in. Busy and communication time are unions, cut at the ends of the steps.
    """
    line = own.line
    steps = len(windows)
    if not steps:
        windows = np.array([[int(line.begin_ps.min()), int(line.end_ps.max())]], dtype=np.int64)
    inside = _within(line.begin_ps, windows)
    covered = intervals.merge(windows[:, 0], windows[:, 1])

    def union_ps(chosen: list[bool]) -> int:
        pieces = own.pieces[np.array(chosen, dtype=np.bool_)[op_ids[own.pieces[:, 2]]]]
        return intervals.length(intervals.intersection(intervals.merge(pieces[:, 0], pieces[:, 1]), covered))

    classes = [op.op_class for op in ops]
    return DeviceProfile(
        peaks=peaks,
        ops=_sums(own, op_ids, ops, inside),
        steps=steps,
        window_ps=int((windows[:, 1] - windows[:, 0]).sum()) if steps else intervals.length(covered),
        busy_ps=union_ps([op.category not in OFF_DUTY for op in ops]),
        communication_ps=union_ps([one is not None and one.event_class == "communication" for one in classes]),
        all_reduce_ps=union_ps([_is_plain_all_reduce(op) for op in ops]),
        unattributed_ps=union_ps([one is None for one in classes]),
        in_flight_ps=None if in_flight is None else intervals.length(intervals.intersection(in_flight, covered)),
        outside_ps=int(own.own_ps[~inside].sum()),
    )


def _is_plain_all_reduce(op: Op) -> bool:
    """The operators an all-reduce KPI counts: of category all-reduce; where there are no categories, by collective."""
    if op.category:
        return op.category == "all-reduce"
    return op.op_class is not None and op.op_class.collective == "all_reduce"


def _within(begins: Ints, windows: Ints) -> Mask:
    """For each time whether it lies in a window; windows come by begin and may touch."""
    index = np.searchsorted(windows[:, 0], begins, side="right") - 1
    inside: Mask = (index >= 0) & (begins < windows[np.maximum(index, 0), 1])
    return inside


def _sums(own: OwnTime, op_ids: Ints, ops: Sequence[Op], inside: Mask) -> tuple[OpSum, ...]:
    sums = np.zeros((len(ops), 5), dtype=np.int64)
    chosen = op_ids[inside]
    line = own.line
    np.add.at(sums[:, 0], chosen, 1)
    np.add.at(sums[:, 1], chosen, own.own_ps[inside])
    np.add.at(sums[:, 2], chosen, line.duration_ps[inside])
    for column, stat in ((3, "flops"), (4, "bytes_accessed")):
        if stat in line.ints:
            np.add.at(sums[:, column], chosen, np.maximum(line.ints[stat][inside], 0))
    return tuple(
        OpSum(op, count, own_ps, total_ps, _total_cost(op, count, flop, size))
        for op, (count, own_ps, total_ps, flop, size) in zip(ops, sums.tolist(), strict=True)
        if count
    )


def _total_cost(op: Op, count: int, flop: int, accessed: int) -> Cost | None:
    """Cost of all occurrences; custom calls may state theirs on each event."""
    stated = op.cost.times(count) if op.cost is not None else None
    if op.category != "custom-call" or not (flop or accessed):
        return stated
    own = Cost(flop=flop, hbm_bytes=accessed)
    return own if stated is None else stated.plus(own)
