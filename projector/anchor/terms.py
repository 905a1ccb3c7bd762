"""The terms of every plan of a batch, corrected by an anchor.

    compute    modelled' r^t
    exposed    modelled' + t s (measured - modelled) total' / total   where more was exposed than modelled: what is
                                                                      slower than modelled has nothing left to hide
                                                                      it; s = min(1, exposed' / total' over exposed /
                                                                      total), all modelled: where more can be hidden
               modelled' (1 - t (1 - measured / modelled))            where less was
    total      modelled' r^t, never below the exposed part
    bubble     modelled' r^t where the trace shows one, otherwise as much longer as the work of the plan is
    idle       modelled' + max(h host' - busy', 0) - max(h_modelled host' - modelled busy', 0) where the host set the
               pace, h times slower than launches are modelled; otherwise what was idle beyond the model, by launches,
               by nothing (pauses) or by work (waiting), as the trace tells causes apart
    copies     what was not modelled as measured, what was modelled by its ratio where less was seen

' marks the other plan, r is measured over modelled, t the ratio's transport, total all communication of a flow. A flow
the measured plan lacks has no ratio; where the trace measured the bandwidth of the links it takes, it is longer by it.
With nothing known but the length of the step, every term is corrected by the ratio of the whole.
"""

from dataclasses import dataclass

import numpy as np

from projector.anchor.anchor import Anchor, ComputePart, ComputeRatio, FlowRatio, Parts
from projector.anchor.measured_step import LinkTier
from projector.anchor.transport import FLOW_AXES, Transport
from projector.breakdown import Axis, OperatorKind
from projector.breakdown_columns import BreakdownColumns
from projector.cost.overlap import AxisTimes
from projector.scaling.term import RESOLUTION_S, Column
from projector.scaling.traffic import FLOWS, Flow

Kinds = dict[OperatorKind, Column]
Axes = dict[Axis, AxisTimes]


@dataclass(frozen=True)
class Terms:
    """breakdown: what was modelled, corrected. carried_frac, shape [n]: share of the step that the trace's ratios
    correct, each as far as it holds.
    """

    breakdown: BreakdownColumns
    carried_frac: Column


def corrected(modelled: BreakdownColumns, anchor: Anchor, transport: Transport) -> Terms:
    """The terms of every plan; exactly the measured ones of the current plan, where it is in the batch."""
    if anchor.parts is None:
        return _as_a_whole(modelled, anchor, transport)
    parts = anchor.parts
    zero = np.zeros_like(modelled.total_s)
    by_kind, carried_s = _compute(modelled.by_kind, parts, transport, zero)
    by_axis, held_s = _communication(modelled.by_axis, anchor, parts, transport, zero)
    busy_s = sum(by_kind.values(), start=zero) + sum((axis.exposed_s for axis in by_axis.values()), start=zero)
    bubble_s, bubble_held = _bubble(modelled, busy_s, parts, transport)
    launch_s = _launch_idle(modelled, by_kind, busy_s, parts, transport)
    copy_s = _copies(modelled.exposed_copy_s, parts)
    breakdown = BreakdownColumns.of(by_kind, by_axis, bubble_s + launch_s, bubble_s, exposed_copy_s=copy_s)
    carried_s = carried_s + held_s + bubble_held * bubble_s + launch_s + copy_s
    return Terms(breakdown, carried_s / breakdown.total_s)


def _as_a_whole(modelled: BreakdownColumns, anchor: Anchor, transport: Transport) -> Terms:
    held = transport.whole()
    factor = anchor.ratio**held
    breakdown = BreakdownColumns.of(
        {kind: time * factor for kind, time in modelled.by_kind.items()},
        {axis: AxisTimes(one.total_s * factor, one.exposed_s * factor) for axis, one in modelled.by_axis.items()},
        idle_s=modelled.idle_s * factor,
        bubble_s=modelled.bubble_s * factor,
        exposed_copy_s=modelled.exposed_copy_s * factor,
    )
    return Terms(breakdown, held)


def _copies(modelled: Column, parts: Parts) -> Column:
    less = parts.copy_s / parts.modelled_copy_s if parts.modelled_copy_s > RESOLUTION_S else 1.0
    return modelled * min(less, 1.0) + max(parts.copy_s - parts.modelled_copy_s, 0.0)


def _compute(modelled: Kinds, parts: Parts, transport: Transport, zero: Column) -> tuple[Kinds, Column]:
    ratios = {one.part: one for one in parts.compute}
    by_kind: Kinds = {}
    carried_s = zero
    for kind, time_s in modelled.items():
        ratio = ratios[_part_of(kind, ratios)]
        held = transport.compute(ratio.part) if ratio.carried else transport.only_current()
        by_kind[kind] = time_s * _power(ratio.ratio, held)
        carried_s = carried_s + held * by_kind[kind]
    return by_kind, carried_s


def _part_of(kind: OperatorKind, ratios: dict[ComputePart, ComputeRatio]) -> ComputePart:
    own = next((part for part in ratios if part == kind), None)
    if own is not None:
        return own
    return "other" if "other" in ratios else "compute"


def _communication(
    modelled: Axes, anchor: Anchor, parts: Parts, transport: Transport, zero: Column
) -> tuple[Axes, Column]:
    ratios = {one.flow: one for one in parts.flows}
    by_axis: Axes = {}
    carried_s = zero
    for flow in FLOWS:
        axes = {axis: modelled[axis] for axis in FLOW_AXES[flow] if axis in modelled}
        links = _links(flow, anchor, transport, zero)
        if flow not in ratios:
            by_axis |= {axis: AxisTimes(one.total_s * links, one.exposed_s * links) for axis, one in axes.items()}
            continue
        ratio = ratios[flow]
        held = transport.flow(flow) if ratio.carried else transport.only_current()
        # over links of another tier, those that were measured there
        links = np.where((held == 0.0) & ratio.carried, links, 1.0)
        for axis, one in _flow(axes, ratio, held, zero).items():
            by_axis[axis] = AxisTimes(one.total_s * links, one.exposed_s * links)
            carried_s = carried_s + held * by_axis[axis].exposed_s
    return by_axis, carried_s


def _flow(axes: Axes, ratio: FlowRatio, held: Column, zero: Column) -> Axes:
    """The axes of one flow, corrected. What was measured and not modelled at all stays with its first axis."""
    if ratio.modelled_total_s <= RESOLUTION_S:
        first: Axis = next(iter(axes), FLOW_AXES[ratio.flow][0])
        seen = AxisTimes(held * ratio.measured_total_s, held * ratio.measured_exposed_s)
        return axes | {first: _sum(axes.get(first, AxisTimes(zero, zero)), seen)}
    more_s = max(ratio.measured_exposed_s - ratio.modelled_exposed_s, 0.0) / ratio.modelled_total_s
    less = min(ratio.measured_exposed_s / ratio.modelled_exposed_s, 1.0) if ratio.modelled_exposed_s > 0 else 1.0
    shown = _shown(axes, ratio, zero)
    found: Axes = {}
    for axis, one in axes.items():
        exposed_s = one.exposed_s * (1.0 - held * (1.0 - less)) + held * more_s * one.total_s * shown
        total_s = one.total_s * _power(ratio.measured_total_s / ratio.modelled_total_s, held)
        found[axis] = AxisTimes(np.maximum(total_s, exposed_s), exposed_s)
    return found


def _shown(axes: Axes, ratio: FlowRatio, zero: Column) -> Column:
    """How much of what a flow takes longer shows: all of it, less where more of it can be hidden than measured."""
    if ratio.modelled_exposed_s <= 0:
        return zero + 1.0
    total_s = sum((one.total_s for one in axes.values()), start=zero)
    exposed_s = sum((one.exposed_s for one in axes.values()), start=zero)
    frac = exposed_s / np.maximum(total_s, RESOLUTION_S)
    shown: Column = np.minimum(frac * ratio.modelled_total_s / ratio.modelled_exposed_s, 1.0)
    return shown


def _sum(one: AxisTimes, other: AxisTimes) -> AxisTimes:
    return AxisTimes(one.total_s + other.total_s, one.exposed_s + other.exposed_s)


def _links(flow: Flow, anchor: Anchor, transport: Transport, zero: Column) -> Column:
    """How much longer the measured bandwidth makes a flow, by the tier it takes; 1 where none was measured."""
    by_tier: dict[LinkTier, float] = {one.tier: 1.0 / one.ratio for one in anchor.links}
    across, _ = transport.across[flow]
    factors: Column = np.where(across > 0, zero + by_tier.get("across", 1.0), by_tier.get("inside", 1.0))
    return factors


def _bubble(modelled: BreakdownColumns, busy_s: Column, parts: Parts, transport: Transport) -> tuple[Column, Column]:
    """(seconds, how far a measured ratio holds)."""
    idle = parts.idle
    if idle.bubble_shown:
        held = transport.bubble() if idle.bubble_carried else transport.only_current()
        return modelled.bubble_s * _power(idle.bubble_s / idle.modelled_bubble_s, held), held
    busy_modelled_s = modelled.compute_s + modelled.exposed_communication_s
    by_work = modelled.bubble_s * busy_s / np.maximum(busy_modelled_s, RESOLUTION_S)
    # the current plan's may not exceed what was idle
    held_s = np.where(transport.move.unchanged, idle.bubble_s, by_work)
    return held_s, np.zeros_like(held_s)


def _launch_idle(
    modelled: BreakdownColumns, by_kind: Kinds, busy_s: Column, parts: Parts, transport: Transport
) -> Column:
    """Idle seconds outside the bubble."""
    idle = parts.idle
    modelled_s = np.maximum(modelled.idle_s - modelled.bubble_s, 0.0)
    if idle.host_paced and idle.host_s and modelled.host_s is not None:
        zero = np.zeros_like(busy_s)
        modelled_busy_s = modelled.compute_s + modelled.exposed_communication_s
        beside_s, modelled_beside_s = (
            busy - kinds.get("optimizer", zero)
            for busy, kinds in ((busy_s, by_kind), (modelled_busy_s, modelled.by_kind))
        )
        measured_pace_s = np.maximum(idle.pace * modelled.host_s - beside_s, 0.0)
        modelled_pace_s = np.maximum(idle.modelled_pace * modelled.host_s - modelled_beside_s, 0.0)
        found: Column = np.maximum(modelled_s + measured_pace_s - modelled_pace_s, 0.0)
        return found
    if idle.launch_s <= idle.modelled_launch_s:
        shown = idle.modelled_launch_s > RESOLUTION_S
        return np.asarray(modelled_s * (idle.launch_s / idle.modelled_launch_s if shown else 1.0))
    launches = _launches(modelled, parts, transport)
    work = busy_s / max(parts.busy_s, RESOLUTION_S)
    if idle.causes is None:
        carrier = np.sqrt(launches * work)
    else:
        carrier = idle.causes.launches * launches + idle.causes.pauses + idle.causes.waiting * work
    return modelled_s + (idle.launch_s - idle.modelled_launch_s) * carrier


def _launches(modelled: BreakdownColumns, parts: Parts, transport: Transport) -> Column:
    """Launches of a step over those of the current plan; by micro-batches a stage where they are not modelled."""
    if modelled.host_s is not None and parts.idle.host_s:
        return modelled.host_s / parts.idle.host_s
    after, before = transport.move.after, transport.move.before
    return (after.rounds / after.pp) / (before.rounds / before.pp)


def _power(ratio: float, held: Column) -> Column:
    """ratio ** held; a ratio of nothing counts in full or not at all."""
    if ratio <= 0.0:
        return np.where(held >= 1.0, 0.0, 1.0)
    powered: Column = ratio**held
    return powered
