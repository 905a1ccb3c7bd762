"""Phases of a serving engine: what its iterations ran, as it says itself."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, get_args

from traces.linking import Links
from traces.measure_types import ServingPhase, ServingPhaseName
from traces.measures.serving_names import ServingStep, serving_step
from traces.steps import StepWindow, serving_windows
from traces.trace import Trace

_PHASES: Final[tuple[ServingPhaseName, ...]] = get_args(ServingPhaseName)


def serving_phases(trace: Trace, links: Links) -> tuple[ServingPhase, ...]:
    """Iterations of one rank by phase, the costliest first; () where nothing marks them: nothing is guessed then.

    An iteration lasts from the first to the last device event launched within its mark (`steps.serving_windows`), so
    kernels of a replayed graph belong to the iteration that launched the graph. One whose name does not say what it
    ran is of phase "unknown".
    """
    return phases_of(serving_windows(trace, links))


def phases_of(windows: Iterable[StepWindow]) -> tuple[ServingPhase, ...]:
    """The same of windows that are known; those that are no iteration of a serving engine are left out."""
    by_phase: dict[ServingPhaseName, list[tuple[StepWindow, ServingStep]]] = {}
    for window in windows:
        step = serving_step(window.name)
        if step is not None:
            by_phase.setdefault(step.phase, []).append((window, step))
    return _in_order(_phase(phase, steps) for phase, steps in by_phase.items())


def merged_phases(of_ranks: Iterable[Sequence[ServingPhase]]) -> tuple[ServingPhase, ...]:
    """Phases of several ranks: steps, times and tokens are sums, so an iteration counts on every rank that runs it.

    Extremes are exact. Medians are the medians of the ranks, each weighing as many times as it has steps: exact where
    all ranks run the same iterations (tensor parallelism), an approximation where replicas run their own.
    """
    by_phase: dict[ServingPhaseName, list[ServingPhase]] = {}
    for phase in (phase for phases in of_ranks for phase in phases):
        by_phase.setdefault(phase.phase, []).append(phase)
    return _in_order(_added(phase, same) for phase, same in by_phase.items())


def _phase(phase: ServingPhaseName, found: Sequence[tuple[StepWindow, ServingStep]]) -> ServingPhase:
    durations = sorted(window.end_ns - window.start_ns for window, _ in found)
    steps = [step for _, step in found]
    requests = [step.requests for step in steps if step.requests is not None]
    decoding = [step.decoding for step in steps if step.decoding is not None]
    return ServingPhase(
        phase=phase,
        steps=len(steps),
        total_ns=sum(durations),
        median_ns=durations[(len(durations) - 1) // 2],
        requests_min=min(requests, default=None),
        requests_median=float(median(requests)) if requests else None,
        requests_max=max(requests, default=None),
        prompts=_sum(step.prompts for step in steps),
        prefill_tokens=_sum(step.prompt_tokens for step in steps),
        reached_tokens=_sum(step.reached_tokens for step in steps),
        decoding_max=max(decoding, default=None),
        decode_tokens=_sum(step.decode_tokens for step in steps),
    )


def _added(phase: ServingPhaseName, same: Sequence[ServingPhase]) -> ServingPhase:
    lowest = [one.requests_min for one in same if one.requests_min is not None]
    highest = [one.requests_max for one in same if one.requests_max is not None]
    decoding = [one.decoding_max for one in same if one.decoding_max is not None]
    requests = [(one.requests_median, one.steps) for one in same if one.requests_median is not None]
    return ServingPhase(
        phase=phase,
        steps=sum(one.steps for one in same),
        total_ns=sum(one.total_ns for one in same),
        median_ns=int(_weighted_median([(one.median_ns, one.steps) for one in same])),
        requests_min=min(lowest, default=None),
        requests_median=_weighted_median(requests) if requests else None,
        requests_max=max(highest, default=None),
        prompts=_sum(one.prompts for one in same),
        prefill_tokens=_sum(one.prefill_tokens for one in same),
        reached_tokens=_sum(one.reached_tokens for one in same),
        decoding_max=max(decoding, default=None),
        decode_tokens=_sum(one.decode_tokens for one in same),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum where every term is known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _weighted_median(values: Sequence[tuple[float, int]]) -> float:
    """The lower median of values that stand for several each."""
    half = sum(weight for _, weight in values) / 2
    reached = 0
    for value, weight in sorted(values):
        reached += weight
        if reached >= half:
            return value
    raise AssertionError("a median of nothing")


def _in_order(phases: Iterable[ServingPhase]) -> tuple[ServingPhase, ...]:
    return tuple(sorted(phases, key=lambda phase: (-phase.total_ns, _PHASES.index(phase.phase))))
