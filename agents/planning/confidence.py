"""Confidence in a proposal by a simple stated rule: a start that depends on the data, then named deductions.

Not calibrated against outcomes yet: it orders proposals by how much is known, and says what is missing.
"""

from agents.advisors.protocol import Candidate
from agents.advisors.ranking import NOISE_FRAC, is_tight
from agents.findings import Diagnosis
from agents.planning.job import Job

LOWEST, HIGHEST = 0.05, 0.95
# what a plan's numbers stand on; an inferred value that only sets a default matters less than these
DECIDING = ("chip", "model", "world_size", "current_plan", "phase")


def confidence(candidate: Candidate, diagnosis: Diagnosis, job: Job) -> tuple[float, str]:
    """(confidence, how it was arrived at)."""
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
    return round(min(max(value, LOWEST), HIGHEST), 2), "; ".join(terms)


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
