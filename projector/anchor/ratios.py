"""Ratios: one measured step beside its own projection, term by term.

    compute        gemm, moe, attention, and all other kinds together: measured over modelled seconds
    communication  tp, cp, data, pp, ep: what nothing hid, and all of it, measured and modelled
    idle           the pipeline bubble where the trace shows one, and the rest by why the device waited

Kernels overlap, so kinds are shrunk to the compute time they ran in, and axes to the communication time. What the trace
gives to no axis is shared out over the plan's axes as modelled, which `told` says. A kind too small to tell, or whose
ratio is implausible (kernels classed otherwise than operators), counts with the others. Idle time is that of `idle`.

A ratio outside its plausible range is not carried to any other plan, and `told` says so; a step as a whole outside its
range is no measurement of this projection at all.
"""

from collections.abc import Mapping
from typing import Literal

from projector.anchor.anchor import Anchor, ComputePart, ComputeRatio, FlowRatio, Parts
from projector.anchor.idle import idle_ratio, waiting_as_bubble
from projector.anchor.limits import COMPUTE_RANGE, FLOW_RANGE, LEAST_FLOW_FRAC, LEAST_KIND_FRAC, STEP_RANGE, within
from projector.anchor.measured_step import IdleShares, MeasuredStep
from projector.batch_projection import ProjectionBatch
from projector.breakdown import Axis, TimeBreakdown
from projector.breakdown_columns import BreakdownColumns
from projector.scaling.communication import MEASURED_AS, Measured, attribute
from projector.scaling.term import RESOLUTION_S, Degrees
from projector.scaling.traffic import FLOWS, Flow

OWN_KINDS: tuple[Literal["gemm", "moe", "attention"], ...] = ("gemm", "moe", "attention")


def anchor_of(now: ProjectionBatch, measured: MeasuredStep) -> Anchor | str:
    """The anchor, or why the measured step cannot correct projections. now: the current plan's, a batch of one."""
    assert len(now) == 1
    modelled_s = float(now.step_time_s[0])
    ratio = measured.total_s / modelled_s
    if not STEP_RANGE[0] <= ratio <= STEP_RANGE[1]:
        return (
            f"the measured step is {ratio:.3g} times the projected one, outside {STEP_RANGE[0]:g} to "
            f"{STEP_RANGE[1]:g}: another workload or plan, no whole step, or profiler overhead"
        )
    plan = now.batch[0]
    if measured.breakdown is None:
        return Anchor(current=plan, measured=measured, modelled_s=modelled_s, parts=None)
    told: list[str] = []
    parts = _parts(now, measured.breakdown, measured.idle, told)
    return Anchor(current=plan, measured=measured, modelled_s=modelled_s, parts=parts, told=tuple(told))


def _parts(now: ProjectionBatch, seen: TimeBreakdown, causes: IdleShares | None, told: list[str]) -> Parts:
    measured = waiting_as_bubble(now.breakdown, seen, told)
    compute = _compute(now.breakdown, measured, told)
    return Parts(
        compute=compute,
        flows=_flows(now, measured, told),
        idle=idle_ratio(now.breakdown, measured, causes, compute[-1].ratio, told),
        busy_s=measured.compute_s + measured.exposed_communication_s,
        copy_s=measured.exposed_copy_s,
        modelled_copy_s=float(now.breakdown.exposed_copy_s[0]),
    )


def _compute(modelled: BreakdownColumns, measured: TimeBreakdown, told: list[str]) -> tuple[ComputeRatio, ...]:
    summed = sum(kind.time_s for kind in measured.by_kind)
    all_modelled_s = float(modelled.compute_s[0])
    whole = _compute_ratio("compute", measured.compute_s, all_modelled_s)
    found: list[ComputeRatio] = []
    if summed > RESOLUTION_S:
        for kind in OWN_KINDS:
            time_s = sum(one.time_s for one in measured.by_kind if one.kind == kind) * measured.compute_s / summed
            kind_s = float(modelled.by_kind[kind][0]) if kind in modelled.by_kind else 0.0
            large = min(time_s, kind_s) >= LEAST_KIND_FRAC * measured.compute_s
            if large and within(time_s / kind_s, COMPUTE_RANGE):
                found.append(_compute_ratio(kind, time_s, kind_s))
    rest_s = measured.compute_s - sum(one.measured_s for one in found)
    rest_modelled_s = all_modelled_s - sum(one.modelled_s for one in found)
    if not found or rest_modelled_s < LEAST_KIND_FRAC * all_modelled_s:
        found = []
    elif within(rest_s / rest_modelled_s, COMPUTE_RANGE):
        return (*found, _compute_ratio("other", max(rest_s, 0.0), rest_modelled_s))
    else:
        told.append(
            f"kinds of kernels do not compare with operators one by one (the rest would be "
            f"{rest_s / rest_modelled_s:.3g} times the modelled): compute is corrected as a whole"
        )
    if not whole.carried:
        told.append(f"compute is {whole.ratio:.3g} times the modelled, which is not plausible: not carried over")
    return (whole,)


def _compute_ratio(part: ComputePart, measured_s: float, modelled_s: float) -> ComputeRatio:
    carried = within(measured_s / modelled_s, COMPUTE_RANGE)
    return ComputeRatio(part=part, measured_s=measured_s, modelled_s=modelled_s, carried=carried)


def _flows(now: ProjectionBatch, measured: TimeBreakdown, told: list[str]) -> tuple[FlowRatio, ...]:
    found, rest = attribute(measured, Degrees.of(now.batch))
    modelled = {flow: _modelled(now.breakdown, MEASURED_AS[flow]) for flow in FLOWS}
    if rest.exposed_s > LEAST_FLOW_FRAC * measured.total_s:
        told.append(
            "the trace does not say which axis part of the communication serves: shared out over the axes as modelled"
        )
    found = _shared_out(found, rest, modelled)
    ratios = []
    for flow in FLOWS:
        mine, exposed_s, total_s = found[flow], *modelled[flow]
        if max(mine.exposed_s + mine.hidden_s, total_s) <= RESOLUTION_S:
            continue
        ratio = FlowRatio(
            flow=flow,
            measured_exposed_s=mine.exposed_s,
            measured_total_s=mine.exposed_s + mine.hidden_s,
            modelled_exposed_s=exposed_s,
            modelled_total_s=total_s,
            carried=total_s > RESOLUTION_S and within((mine.exposed_s + mine.hidden_s) / total_s, FLOW_RANGE),
        )
        ratios.append(ratio)
        if not ratio.carried and max(mine.exposed_s, exposed_s) > LEAST_FLOW_FRAC * measured.total_s:
            shown = "seen and not modelled" if ratio.ratio is None else f"{ratio.ratio:.3g} times the modelled"
            told.append(f"{flow} communication is {shown}, which is not plausible: not carried over")
    return tuple(ratios)


def _modelled(breakdown: BreakdownColumns, axes: tuple[Axis, ...]) -> tuple[float, float]:
    times = [breakdown.by_axis[axis] for axis in axes if axis in breakdown.by_axis]
    return sum(float(one.exposed_s[0]) for one in times), sum(float(one.total_s[0]) for one in times)


def _shared_out(
    found: Mapping[Flow, Measured], rest: Measured, modelled: Mapping[Flow, tuple[float, float]]
) -> dict[Flow, Measured]:
    """What belongs to no flow, by modelled total time; to data traffic where the model has no communication."""
    total_s = sum(total for _, total in modelled.values())
    shares = {flow: total / total_s if total_s > 0 else float(flow == "data") for flow, (_, total) in modelled.items()}
    return {
        flow: Measured(one.exposed_s + shares[flow] * rest.exposed_s, one.hidden_s + shares[flow] * rest.hidden_s)
        for flow, one in found.items()
    }
