"""Idle time of a measured step beside the modelled: the pipeline bubble, and whether the host set the pace."""

from projector.anchor.anchor import IdleRatio
from projector.anchor.limits import BUBBLE_RANGE, HOST_RANGE, HOST_SHARE, LEAST_FLOW_FRAC, LEAST_IDLE_FRAC, within
from projector.anchor.measured_step import IdleShares
from projector.breakdown import AxisTime, TimeBreakdown
from projector.breakdown_columns import BreakdownColumns
from projector.scaling.term import RESOLUTION_S


def waiting_as_bubble(modelled: BreakdownColumns, measured: TimeBreakdown, told: list[str]) -> TimeBreakdown:
    """The breakdown with the time that receives waited as idle; as it is where the plan has no bubble.

    A profiler sees a stage that waits in a receive as busy: what pipeline communication takes beyond its modelled time
    is waiting.
    """
    exposed_s = sum(one.exposed_s for one in measured.by_axis if one.axis == "pp")
    sends = modelled.by_axis.get("pp")
    modelled_s = 0.0 if sends is None else float(sends.exposed_s[0])
    waited_s = min(exposed_s - modelled_s, measured.exposed_communication_s)
    if float(modelled.bubble_s[0]) <= RESOLUTION_S or waited_s <= LEAST_FLOW_FRAC * measured.total_s:
        return measured
    told.append(
        f"{waited_s / measured.total_s:.1%} of the step is pipeline communication beyond what its transfers are "
        "modelled to take: it counts as bubble"
    )
    waited_frac = waited_s / exposed_s
    by_axis = tuple(
        AxisTime(
            axis="pp", total_s=one.total_s - waited_frac * one.exposed_s, exposed_s=(1 - waited_frac) * one.exposed_s
        )
        if one.axis == "pp"
        else one
        for one in measured.by_axis
    )
    return measured.model_copy(
        update={
            "by_axis": by_axis,
            "exposed_communication_s": measured.exposed_communication_s - waited_s,
            "idle_s": measured.idle_s + waited_s,
            "bubble_s": (measured.bubble_s or 0.0) + waited_s,
        }
    )


def idle_ratio(
    modelled: BreakdownColumns,
    measured: TimeBreakdown,
    causes: IdleShares | None,
    optimizer_ratio: float,
    told: list[str],
) -> IdleRatio:
    """Idle time, measured and modelled. optimizer_ratio: measured over modelled of the optimizer's kernels."""
    busy_s = measured.compute_s + measured.exposed_communication_s
    idle = _bubble(modelled, measured, busy_s, causes, told)
    idle = _with_pace(idle, modelled, busy_s, optimizer_ratio)
    return _plausible_pace(idle, measured.total_s, told)


def _bubble(
    modelled: BreakdownColumns, measured: TimeBreakdown, busy_s: float, causes: IdleShares | None, told: list[str]
) -> IdleRatio:
    """The bubble as the trace shows it, or as modelled and as much longer as the work is, never more than was idle."""
    bubble_s = float(modelled.bubble_s[0])
    shown = measured.bubble_s is not None and bubble_s > RESOLUTION_S
    modelled_busy_s = float(modelled.compute_s[0] + modelled.exposed_communication_s[0])
    by_work_s = min(bubble_s * busy_s / max(modelled_busy_s, RESOLUTION_S), measured.idle_s)
    seen_s = min(measured.bubble_s or 0.0, measured.idle_s)
    measured_bubble_s = seen_s if shown else by_work_s
    carried = not shown or within(measured_bubble_s / bubble_s, BUBBLE_RANGE)
    if not carried:
        ratio = measured_bubble_s / bubble_s
        told.append(f"the pipeline bubble is {ratio:.3g} times the modelled, which is not plausible: not carried over")
    return IdleRatio(
        measured_s=measured.idle_s,
        modelled_s=float(modelled.idle_s[0]),
        bubble_s=measured_bubble_s,
        modelled_bubble_s=bubble_s,
        bubble_shown=shown,
        bubble_carried=carried,
        host_s=None if modelled.host_s is None else float(modelled.host_s[0]),
        causes=causes,
    )


def _with_pace(idle: IdleRatio, modelled: BreakdownColumns, busy_s: float, optimizer_ratio: float) -> IdleRatio:
    """How slowly the micro-batches came, measured and modelled; the optimizer has launches of its own."""
    if not idle.host_s:
        return idle
    optimizer_s = float(modelled.by_kind["optimizer"][0]) if "optimizer" in modelled.by_kind else 0.0
    modelled_s = float(modelled.compute_s[0] + modelled.exposed_communication_s[0]) - optimizer_s
    return idle.model_copy(
        update={
            "pace": (busy_s - optimizer_s * optimizer_ratio + idle.launch_s) / idle.host_s,
            "modelled_pace": (modelled_s + idle.modelled_launch_s) / idle.host_s,
        }
    )


def _plausible_pace(idle: IdleRatio, total_s: float, told: list[str]) -> IdleRatio:
    """Whether the host set the pace: it shows in the trace or in the model, and at a plausible rate of launching."""
    shown = idle.launch_s > LEAST_IDLE_FRAC * total_s
    by_trace = idle.causes is not None and idle.causes.launches >= HOST_SHARE
    if not shown or not idle.host_s or not (by_trace or idle.modelled_launch_s > LEAST_IDLE_FRAC * total_s):
        return idle
    if not within(idle.pace, HOST_RANGE):
        told.append(
            f"launching would be {idle.pace:.3g} times slower than modelled, which is not plausible: idle time is "
            "carried by the number of launches"
        )
        return idle
    return idle.model_copy(update={"host_paced": True})
