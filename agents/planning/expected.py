"""Projected change of one plan against the reference, and whether it shrinks the term the diagnosis blames."""

from dataclasses import dataclass
from typing import Literal

from agents.findings import Expected
from agents.gains import objective_change
from agents.planning.job import Job
from agents.planning.reference import Reference
from agents.planning.scores import Scores
from projector.breakdown import Projection
from projector.ranking.relief import blamed_s
from projector.specs.bottleneck import Cause

SAME_FRAC = 0.01
Direction = Literal["less", "same", "more", "unknown"]


@dataclass(frozen=True)
class Outlook:
    """One plan beside the reference: the gain of the objective's ratio, by the projection alone too, and the step.

    idle_factor: idle time over the reference's, where that of a measured window is scaled beside the projection.
    """

    gain_frac: float
    model_gain_frac: float
    step_time_s: float
    idle_factor: float | None


def outlook_of(scores: Scores, row: int, reference: Reference) -> Outlook:
    """The outlook of one row."""
    return Outlook(
        gain_frac=_ratio(scores.good[row], reference.good) - 1,
        model_gain_frac=_ratio(scores.model_good[row], reference.model_good) - 1,
        step_time_s=float(scores.step_time_s[row]),
        idle_factor=None if scores.idle_factor is None else float(scores.idle_factor[row]),
    )


def expected_change(after: Projection, outlook: Outlook, reference: Reference, job: Job) -> Expected:
    """Fractions against the reference; None where one side is unknown or the reference has none of it."""
    before = reference.projection
    memory = _memory_frac(before, after)
    step = _change(reference.step_time_s, outlook.step_time_s)
    idle = _change(before.breakdown.idle_s, after.breakdown.idle_s)
    return Expected(
        step_time_frac=step,
        objective_frac=objective_change(outlook.gain_frac, job.target.direction),
        memory_frac=memory,
        exposed_communication_frac=_change(
            before.breakdown.exposed_communication_s, after.breakdown.exposed_communication_s
        ),
        idle_frac=idle if outlook.idle_factor is None else outlook.idle_factor - 1,
        step_time_direction=_direction(step),
        memory_direction=_direction(memory) if memory is not None else after.memory_direction,
        basis=f"{_how(after, outlook, job)}, against {reference.label}",
    )


def relieves(after: Projection, outlook: Outlook, reference: Reference, cause: Cause) -> bool:
    """Whether the plan shrinks what the diagnosis blames, by more than 1 %, per unit of the objective.

    Step times of serving plans differ in how many tokens a step makes, so a term is compared as its share of the step
    over the objective's ratio.
    """
    before = reference.projection
    if cause == "hbm_capacity":
        memory = _memory_frac(before, after)
        return memory < -SAME_FRAC if memory is not None else after.memory_direction == "less"
    if cause in ("launch_bound", "host_idle") and outlook.idle_factor is not None:
        return outlook.idle_factor < 1 - SAME_FRAC
    old, new = _blamed_share(before, cause), _blamed_share(after, cause)
    if old is None or new is None or old <= 0 or outlook.model_gain_frac <= -1:
        return False
    return new / (1 + outlook.model_gain_frac) < old * (1 - SAME_FRAC)


def _how(after: Projection, outlook: Outlook, job: Job) -> str:
    if job.mode == "relative":
        return "the measured step scaled, as the model or the chip is unknown"
    if after.source == "anchored":
        return f"the measured step, as projected on {after.chips} x {after.chip} and corrected by what the trace shows"
    if outlook.idle_factor is not None:
        return (
            f"the measured step: its busy part scaled as projected on {after.chips} x {after.chip}, "
            "its idle part by launches and graph replay"
        )
    return f"projected on {after.chips} x {after.chip}"


def _ratio(value: float, reference: float) -> float:
    """Rounded, so that equal plans compare as equal whatever the order of their sums."""
    return round(float(value / reference), 9) if reference > 0 else 1.0


def _blamed_share(projection: Projection, cause: Cause) -> float | None:
    """Share of the step in the term a cause names; None where the breakdown has no such term."""
    breakdown = projection.breakdown
    total = breakdown.total_s
    if total <= 0:
        return None
    time_s = blamed_s(breakdown, cause)
    return None if time_s is None else time_s / total


def _memory_frac(before: Projection, after: Projection) -> float | None:
    if before.memory is None or after.memory is None:
        return None
    return _change(before.memory.total_bytes, after.memory.total_bytes)


def _change(before: float, after: float) -> float | None:
    if before <= 0:
        return 0.0 if after <= 0 else None
    return round(after / before - 1, 9)


def _direction(frac: float | None) -> Direction:
    if frac is None:
        return "unknown"
    return "same" if abs(frac) <= SAME_FRAC else "less" if frac < 0 else "more"
