"""Confidence in a proposal: a calibrated chance where published runs allow one, otherwise a stated rule that says so.

Calibrated: the event is that the layout is the one adopted for such a job. Known for training jobs that nothing runs
yet (`planning.practice`), from picks of published runs whose own model and chip were left out.
By the rule: a start that depends on the data, then named deductions. It orders proposals by how much is known, and says
what is missing; it is no frequency of anything.
"""

from dataclasses import dataclass

from agents.advisors.protocol import Candidate
from agents.advisors.ranking import NOISE_FRAC, is_tight
from agents.findings import Diagnosis
from agents.planning.job import Job

LOWEST, HIGHEST = 0.05, 0.95
# what a plan's numbers stand on; an inferred value that only sets a default matters less than these
DECIDING = ("chip", "model", "world_size", "current_plan", "phase")


@dataclass(frozen=True)
class Confidence:
    """A number in [0, 1], how it was arrived at, and whether it was held against outcomes."""

    value: float
    basis: str
    calibrated: bool


def confidence(candidate: Candidate, diagnosis: Diagnosis, job: Job) -> Confidence:
    """How sure a proposal is."""
    found = _chance(candidate, job)
    return found if found is not None else _by_rule(candidate, diagnosis, job)


def _chance(candidate: Candidate, job: Job) -> Confidence | None:
    """The calibrated chance; None where something runs already: whether it is kept is another event."""
    adoption = candidate.adoption
    if adoption is None or adoption.chance is None or job.current is not None:
        return None
    basis = (
        f"the chance that this layout is the one adopted for such a job: {adoption.share:.2f} of the posterior over "
        f"all layouts that pass the gates, calibrated on {adoption.cases} picks for published runs whose own model and "
        f"chip were left out (expected calibration error {adoption.ece:.2f})"
    )
    return Confidence(round(adoption.chance, 2), basis, True)


def _by_rule(candidate: Candidate, diagnosis: Diagnosis, job: Job) -> Confidence:
    value, terms = _start(job)
    inferred = {name: job.confidences[name] for name in DECIDING if name in job.confidences}
    if inferred:
        weakest = min(inferred, key=lambda name: inferred[name])
        # the other half of the judgement does not rest on that value
        value *= 0.5 + 0.5 * inferred[weakest]
        terms.append(f"x {0.5 + 0.5 * inferred[weakest]:.2f} as {weakest.replace('_', ' ')} is inferred")
    for applies, amount, why in (
        (diagnosis.ambiguous, -0.10, "the diagnosis is ambiguous"),
        (
            job.current is not None and not candidate.relieving and not candidate.keeps,
            -0.05,
            "it does not relieve the diagnosed cause",
        ),
        (_within_noise(candidate), -0.15, "the gain is below the noise of a projection"),
        (_within_interval(candidate), -0.10, "the gain is smaller than the projection's interval"),
        (_idle_assumed(candidate), -0.10, "how much of the idle time goes is assumed"),
        (is_tight(candidate), -0.05, "memory is nearly full"),
        (candidate.projection.memory is None, -0.10, "memory is not known"),
        (len(job.assumptions) > 0, -0.05, f"{len(job.assumptions)} values are assumed"),
    ):
        if applies:
            value += amount
            terms.append(f"{amount:+.2f} {why}")
    basis = f"not calibrated for {_case(job)}, by a stated rule: {'; '.join(terms)}"
    return Confidence(round(min(max(value, LOWEST), HIGHEST), 2), basis, False)


def _case(job: Job) -> str:
    """What published outcomes do not tell of, in words."""
    if job.phase == "serving":
        return "serving"
    if job.mode == "relative":
        return "a model or chip that is not known"
    if job.current is not None:
        return "a job that already runs"
    narrowed = bool(job.constraints.fixed or job.constraints.bounds)
    return "a space that constraints narrow" if narrowed else "this job"


def _start(job: Job) -> tuple[float, list[str]]:
    if job.mode == "relative":
        return 0.60, ["0.60 for scaling a measured step, model unknown"]
    if job.anchor is not None:
        return 0.85, ["0.85 for a projection corrected by measured steps"]
    if job.measured is not None:
        return 0.80, ["0.80 for a projection with a measured step beside it"]
    return 0.70, ["0.70 for a projection without a trace of this machine"]


def _idle_assumed(candidate: Candidate) -> bool:
    return "cuda_graphs" in candidate.levers and not candidate.keeps


def _within_noise(candidate: Candidate) -> bool:
    return abs(candidate.gain_frac) <= NOISE_FRAC and not candidate.keeps


def _within_interval(candidate: Candidate) -> bool:
    """Whether half the width of the step-time interval, as a fraction of the step, exceeds the gain."""
    step, interval = candidate.projection.step_time_s, candidate.projection.step_time_interval_s
    if step <= 0 or candidate.keeps or _within_noise(candidate):
        return False
    return (interval.high - interval.low) / 2 / step > abs(candidate.gain_frac)
