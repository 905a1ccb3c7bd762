"""Experiment: the shortest run that confirms or refutes a proposal, and when to give a change up. Numbers only.

Both plans run at the same batch, for so many steps that the difference of their mean steps is known well enough: with
a spread s of single steps the mean of n has s / sqrt(n), so a change g stands out by three of them from

    n = 2 (3 s / g)^2

and a plan is refuted where it does not gain the noise of a projection (1 %). Where what runs does not fit, memory is
the figure, and the device's capacity the limit.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from agents.advisors.protocol import Candidate
from agents.advisors.ranking import NOISE_FRAC, TIGHT_MEMORY_FRAC
from agents.planning.aims import MEMORY_OBJECTIVES
from agents.planning.job import Job
from agents.planning.reference import Reference
from agents.proposal_parts import Experiment
from agents.wording import gigabytes, percent
from projector.breakdown import Projection
from projector.units import bytes_to_gb, s_to_ms

# Spread of single steps of one run. A choice: published releases of one configuration move by 1.9 % (median), steps
# of one run by less.
STEP_SPREAD_FRAC = 0.02
WARM_UP, FEWEST, MOST = 5, 10, 200
# one to fill the seats, two to count
REQUESTS_A_SEAT = 3
# Memory is modelled within about a tenth: docs/accuracy.md, memory by source.
MEMORY_ERROR_FRAC = 0.10

STEP_FIELD = "ranks[].step_statistics.median_ns"
DECODE_FIELD = "serving_phases[decode].median_ns"
MEMORY_FIELD = "ranks[].memory_high_water_bytes"
Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Figure:
    """What is watched: its field in our summary or by its own name, value of both plans, and which way is better."""

    watch: str
    words: str
    unit: str
    reference: float | None
    predicted: float
    low: float
    high: float
    better: Better


def experiment_of(candidate: Candidate, reference: Reference, job: Job) -> Experiment | None:
    """The run that tests the candidate; None for the plan that runs already."""
    if candidate.keeps:
        return None
    figure = _figure(candidate, reference, job)
    steps = _steps(candidate.gain_frac, job)
    refuted = _refuted_beyond(figure, reference, candidate)
    return Experiment(
        text=_text(figure, steps, refuted, reference, candidate),
        steps=steps,
        watch=figure.watch,
        unit=figure.unit,
        reference=figure.reference,
        predicted=figure.predicted,
        low=figure.low,
        high=figure.high,
        refuted_beyond=refuted,
    )


def stop_condition(candidate: Candidate, reference: Reference, numerics: tuple[str, ...], job: Job) -> str:
    """When to give the change up; '' for the plan that runs already."""
    if candidate.keeps:
        return ""
    return " ".join(
        [
            _memory_stop(candidate.projection, job),
            _gain_stop(candidate, reference, job),
            *(["Stop if quality moves beyond what two seeds differ by: numerics change."] if numerics else []),
        ]
    )


def _steps(gain_frac: float, job: Job) -> int:
    """n of the module's formula, within limits; in serving as many as let every seat finish a few requests."""
    change = max(abs(gain_frac), NOISE_FRAC)
    steps = min(max(ceil(2 * (3 * STEP_SPREAD_FRAC / change) ** 2), FEWEST), MOST)
    return max(steps, REQUESTS_A_SEAT * (job.workload.output_len or 1)) if job.phase == "serving" else steps


def _figure(candidate: Candidate, reference: Reference, job: Job) -> Figure:
    memory = candidate.projection.memory
    if memory is not None and (reference.projection.fit == "too_large" or job.objective in MEMORY_OBJECTIVES):
        before = reference.projection.memory
        size = bytes_to_gb(memory.total_bytes)
        return Figure(
            watch=MEMORY_FIELD,
            words="memory of the fullest device",
            unit="GB",
            reference=None if before is None else bytes_to_gb(before.total_bytes),
            predicted=size,
            low=size * (1 - MEMORY_ERROR_FRAC),
            high=size * (1 + MEMORY_ERROR_FRAC),
            better="lower",
        )
    if job.phase == "serving" and candidate.projection.serving is not None:
        found = _objective_figure(candidate, reference, job)
        if found is not None:
            return found
    interval = candidate.projection.step_time_interval_s
    scale = candidate.step_time_s / candidate.projection.step_time_s if candidate.projection.step_time_s > 0 else 1.0
    return Figure(
        watch=DECODE_FIELD if job.phase == "serving" else STEP_FIELD,
        words="the step",
        unit="ms",
        reference=s_to_ms(reference.step_time_s),
        predicted=s_to_ms(candidate.step_time_s),
        low=s_to_ms(interval.low * scale),
        high=s_to_ms(interval.high * scale),
        better="lower",
    )


def _objective_figure(candidate: Candidate, reference: Reference, job: Job) -> Figure | None:
    """The objective of serving itself: steps of different engines make different numbers of tokens."""
    after, before = candidate.projection.serving, reference.projection.serving
    value, old = getattr(after, job.objective, None), getattr(before, job.objective, None)
    step_s, interval = candidate.projection.step_time_s, candidate.projection.step_time_interval_s
    if value is None or step_s <= 0:
        return None
    shorter, longer = interval.low / step_s, interval.high / step_s
    lower = job.target.direction == "minimise"
    low, high = (value * shorter, value * longer) if lower else (value / longer, value / shorter)
    return Figure(
        watch=f"{job.objective} at the same load",
        words=job.target.meaning,
        unit=job.target.unit,
        reference=old,
        predicted=value,
        low=low,
        high=high,
        better="lower" if lower else "higher",
    )


def _refuted_beyond(figure: Figure, reference: Reference, candidate: Candidate) -> float:
    """The figure at which a promised gain is below the noise, or a plan said to be as good loses more than the noise.

    Of a plan that is expected to lose, and where nothing runs to compare with, the far end of the interval.
    """
    memory = candidate.projection.memory
    if figure.unit == "GB" and memory is not None and reference.projection.fit == "too_large":
        return bytes_to_gb(memory.capacity_bytes)
    if not reference.is_current or figure.reference is None:
        return figure.high if figure.better == "lower" else figure.low
    ahead = figure.predicted / figure.reference - 1 if figure.reference > 0 else 0.0
    gain, worse = (-ahead, 1) if figure.better == "lower" else (ahead, -1)
    if gain < -NOISE_FRAC:
        return figure.high if figure.better == "lower" else figure.low
    return figure.reference * (1 - worse * NOISE_FRAC if gain > NOISE_FRAC else 1 + worse * NOISE_FRAC)


def _text(figure: Figure, steps: int, refuted: float, reference: Reference, candidate: Candidate) -> str:
    side = "above" if figure.better == "lower" else "below"
    value = f"{_number(figure.predicted)} {figure.unit} ({_number(figure.low)} to {_number(figure.high)})"
    batch = "at the same global batch" if candidate.plan.phase == "training" else "under the same load"
    if figure.unit == "GB":
        return (
            f"Run {WARM_UP} steps of the plan and read {figure.words} ({figure.watch}): {value} is expected, "
            f"above {_number(refuted)} GB refutes it."
        )
    if not reference.is_current or figure.reference is None:
        return (
            f"Record {steps} steps of the plan behind {WARM_UP} of warm-up and read {figure.words} ({figure.watch}): "
            f"{value} is expected, {side} {_number(refuted)} {figure.unit} refutes the projection. Nothing runs "
            "yet: run the proposals against each other."
        )
    return (
        f"Record {steps} steps of the current plan and of this one, {batch}, behind {WARM_UP} of warm-up, and compare "
        f"{figure.words} ({figure.watch}): {_number(figure.reference)} {figure.unit} now, {value} is expected; "
        f"{side} {_number(refuted)} {figure.unit} refutes it, if the current plan shows its figure again."
    )


def _memory_stop(after: Projection, job: Job) -> str:
    memory = after.memory
    if memory is None:
        return "Memory is not known: run single steps first, and stop at the first allocation that fails."
    if job.phase == "serving":
        return "Stop if the engine reports preempted requests at a load the current plan serves without."
    limit = TIGHT_MEMORY_FRAC * memory.capacity_bytes
    if memory.total_bytes > limit:
        return (
            f"Stop at the first allocation that fails: {gigabytes(memory.total_bytes)} of "
            f"{gigabytes(memory.capacity_bytes)} are expected."
        )
    return (
        f"Stop if a device holds more than {gigabytes(limit)} within the first {WARM_UP} steps "
        f"({gigabytes(memory.total_bytes)} is expected)."
    )


def _gain_stop(candidate: Candidate, reference: Reference, job: Job) -> str:
    steps = _steps(candidate.gain_frac, job)
    if not reference.is_current:
        return f"Stop behind {steps} steps if another proposal is ahead by more than {percent(NOISE_FRAC)}."
    if candidate.gain_frac > NOISE_FRAC:
        return f"Go back behind {steps} steps if the gain is below {percent(NOISE_FRAC)}, the noise."
    return f"Go back behind {steps} steps if it is slower by more than {percent(NOISE_FRAC)}, the noise."


def _number(value: float) -> str:
    """Three digits or so: '0.873', '12.4', '1,204'."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
