"""Ratios: one measured step beside its own projection, term by term.

    compute        gemm, moe, attention, and all other kinds together: measured over modelled seconds
    communication  tp, cp, data, pp, ep: what nothing hid, and all of it, measured and modelled
    idle           the pipeline bubble where the trace shows one, and the rest by why the device waited

Kernels overlap, so kinds are shrunk to the compute time they ran in, and axes to the communication time. What the trace
gives to no axis is shared out over the plan's axes as modelled, which `told` says. A kind too small to tell, or whose
ratio is implausible (kernels classed otherwise than operators), counts with the others.

A ratio outside its plausible range is not carried to any other plan, and `told` says so; a step as a whole outside its
range is no measurement of this projection at all.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import Field

from projector.anchor.measured_step import IdleShares, LinkRatio, MeasuredStep
from projector.batch_projection import BreakdownColumns, ProjectionBatch
from projector.breakdown import Axis, TimeBreakdown
from projector.scaling.communication import MEASURED_AS, Measured, attribute
from projector.scaling.term import RESOLUTION_S, Degrees
from projector.scaling.traffic import FLOWS, Flow
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record

# Of 1,917 published runs one measured less than 0.6 and one more than 2.5 times what is projected.
STEP_RANGE = (0.6, 2.5)
# Parts of a step scatter more than the step; no published run states them: assumed, as are the shares below.
COMPUTE_RANGE = (0.25, 4.0)
FLOW_RANGE = (0.2, 5.0)
HOST_RANGE = (1 / 3, 3.0)
LEAST_KIND_FRAC = 0.02
LEAST_FLOW_FRAC = 0.005
LEAST_IDLE_FRAC = 0.01
OWN_KINDS: tuple[Literal["gemm", "moe", "attention"], ...] = ("gemm", "moe", "attention")
HOST_SHARE = 0.5

ComputePart = Literal["gemm", "moe", "attention", "other", "compute"]


class ComputeRatio(Record):
    """One part of compute. part "other": every kind without a ratio of its own, "compute": all of it."""

    part: ComputePart
    measured_s: float = Field(ge=0)
    modelled_s: float = Field(gt=0)
    carried: bool

    @property
    def ratio(self) -> float:
        """Measured over modelled."""
        return self.measured_s / self.modelled_s


class FlowRatio(Record):
    """One flow of communication: exposed seconds and all seconds, measured and modelled."""

    flow: Flow
    measured_exposed_s: float = Field(ge=0)
    measured_total_s: float = Field(ge=0)
    modelled_exposed_s: float = Field(ge=0)
    modelled_total_s: float = Field(ge=0)
    carried: bool

    @property
    def ratio(self) -> float | None:
        """Measured over modelled of all of it; None where nothing is modelled."""
        return self.measured_total_s / self.modelled_total_s if self.modelled_total_s > RESOLUTION_S else None


class IdleRatio(Record):
    """Idle seconds, measured and modelled, and the part of each that is pipeline bubble.

    bubble_shown: the trace shows the bubble; otherwise it is taken to be as much longer as the work. host_s: modelled
    seconds to launch a step, None where not modelled. host_paced: the host set the pace. pace, modelled_pace: seconds
    the micro-batches took over host_s, so times slower than launches are modelled where the host sets the pace.
    """

    measured_s: float = Field(ge=0)
    modelled_s: float = Field(ge=0)
    bubble_s: float = Field(ge=0)
    modelled_bubble_s: float = Field(ge=0)
    bubble_shown: bool
    host_s: float | None = None
    host_paced: bool = False
    pace: float = 0.0
    modelled_pace: float = 0.0
    causes: IdleShares | None = None

    @property
    def launch_s(self) -> float:
        """Measured idle seconds outside the bubble."""
        return max(self.measured_s - self.bubble_s, 0.0)

    @property
    def modelled_launch_s(self) -> float:
        """Modelled idle seconds outside the bubble."""
        return max(self.modelled_s - self.modelled_bubble_s, 0.0)


class Parts(Record):
    """The terms of a step that was measured in parts. copy_s: copies that nothing hid."""

    compute: tuple[ComputeRatio, ...]
    flows: tuple[FlowRatio, ...]
    idle: IdleRatio
    busy_s: float = Field(ge=0, description="measured compute and exposed communication")
    copy_s: float = Field(0.0, ge=0)
    modelled_copy_s: float = Field(0.0, ge=0)


class Anchor(Record):
    """What corrects projections: the current plan's measured and modelled step. parts None: only its length is known.

    told: ratios that were refused and what was assumed, a sentence each.
    """

    current: ParallelismPlan
    measured: MeasuredStep
    modelled_s: float = Field(gt=0)
    parts: Parts | None
    told: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """Measured over modelled of the step."""
        return self.measured.total_s / self.modelled_s

    @property
    def links(self) -> tuple[LinkRatio, ...]:
        """Bandwidth that was measured, by tier."""
        return self.measured.links


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


def _parts(now: ProjectionBatch, measured: TimeBreakdown, causes: IdleShares | None, told: list[str]) -> Parts:
    compute = _compute(now.breakdown, measured, told)
    flows = _flows(now, measured, told)
    busy_s = measured.compute_s + measured.exposed_communication_s
    idle = _with_pace(_idle(now.breakdown, measured, causes), now.breakdown, busy_s, compute[-1].ratio)
    idle = _plausible_pace(idle, measured.total_s, told)
    return Parts(
        compute=compute,
        flows=flows,
        idle=idle,
        busy_s=busy_s,
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
            if large and _within(time_s / kind_s, COMPUTE_RANGE):
                found.append(_compute_ratio(kind, time_s, kind_s))
    rest_s = measured.compute_s - sum(one.measured_s for one in found)
    rest_modelled_s = all_modelled_s - sum(one.modelled_s for one in found)
    if not found or rest_modelled_s < LEAST_KIND_FRAC * all_modelled_s:
        found = []
    elif _within(rest_s / rest_modelled_s, COMPUTE_RANGE):
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
    carried = _within(measured_s / modelled_s, COMPUTE_RANGE)
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
            carried=total_s > RESOLUTION_S and _within((mine.exposed_s + mine.hidden_s) / total_s, FLOW_RANGE),
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


def _idle(modelled: BreakdownColumns, measured: TimeBreakdown, causes: IdleShares | None) -> IdleRatio:
    """The bubble as the trace shows it, or as modelled and as much longer as the work is, never more than was idle."""
    bubble_s = float(modelled.bubble_s[0])
    shown = measured.bubble_s is not None and bubble_s > RESOLUTION_S
    busy_s = measured.compute_s + measured.exposed_communication_s
    modelled_busy_s = float(modelled.compute_s[0] + modelled.exposed_communication_s[0])
    by_work_s = min(bubble_s * busy_s / max(modelled_busy_s, RESOLUTION_S), measured.idle_s)
    return IdleRatio(
        measured_s=measured.idle_s,
        modelled_s=float(modelled.idle_s[0]),
        bubble_s=measured.bubble_s if shown and measured.bubble_s is not None else by_work_s,
        modelled_bubble_s=bubble_s,
        bubble_shown=shown,
        host_s=None if modelled.host_s is None else float(modelled.host_s[0]),
        causes=causes,
    )


def _with_pace(idle: IdleRatio, modelled: BreakdownColumns, busy_s: float, ratio: float) -> IdleRatio:
    """How slowly the micro-batches came, measured and modelled. ratio: of the kinds the optimizer belongs to."""
    if not idle.host_s:
        return idle
    optimizer_s = float(modelled.by_kind["optimizer"][0]) if "optimizer" in modelled.by_kind else 0.0
    modelled_s = float(modelled.compute_s[0] + modelled.exposed_communication_s[0]) - optimizer_s
    return idle.model_copy(
        update={
            "pace": (busy_s - optimizer_s * ratio + idle.launch_s) / idle.host_s,
            "modelled_pace": (modelled_s + idle.modelled_launch_s) / idle.host_s,
        }
    )


def _plausible_pace(idle: IdleRatio, total_s: float, told: list[str]) -> IdleRatio:
    """Whether the host set the pace: it shows in the trace or in the model, and at a plausible rate of launching."""
    shown = idle.launch_s > LEAST_IDLE_FRAC * total_s
    by_trace = idle.causes is not None and idle.causes.launches >= HOST_SHARE
    if not shown or not idle.host_s or not (by_trace or idle.modelled_launch_s > LEAST_IDLE_FRAC * total_s):
        return idle
    if not _within(idle.pace, HOST_RANGE):
        told.append(
            f"launching would be {idle.pace:.3g} times slower than modelled, which is not plausible: idle time is "
            "carried by the number of launches"
        )
        return idle
    return idle.model_copy(update={"host_paced": True})


def _within(ratio: float, limits: tuple[float, float]) -> bool:
    return bool(np.isfinite(ratio)) and limits[0] <= ratio <= limits[1]
