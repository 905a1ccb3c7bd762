"""Which steps count as measured, how even these are, and whether they are enough to say something of the job."""

from collections.abc import Sequence
from statistics import fmean, median, stdev
from typing import Final

from traces.measure_types import ServingPhaseName, StepRole, StepStatistics
from traces.measures.iterations import names_warm_up, shown, span_of
from traces.measures.serving_names import serving_step
from traces.steps import SERVING_ITERATIONS, StepWindow, complete
from traces.summary_types import StepShares

WARM_UP_FACTOR: Final = 1.5
FEWEST_LATER: Final = 2
FEWEST_MEASURED: Final = 3
"""The fewest steps that show a spread."""
MOST_UNEVEN_FRAC: Final = 0.2
"""Three steps of this spread leave the mean uncertain by 0.2 / sqrt(3) = 12 %: as much as a change of plan brings."""
SHORTEST_WINDOW_NS: Final = 10_000_000
"""A few turns of the operating system's scheduler (3 to 4 ms each): in less, one preempted thread decides."""

_TOLD = 6


def step_roles(marks: str, steps: Sequence[StepWindow]) -> tuple[StepRole, ...]:
    """The role of each step of a trace, in order of start.

    warm_up     a step whose name says so; and leading steps, as long as each lasts more than 1.5 times the median of
                the steps behind it, none of these is longer, and there are two of them at least: compilation,
                allocation and tuning happen once, while a step that is long now and then is one of an uneven job
    incomplete  a first or last step of less than half the median (`steps.complete`)
    measured    the others

    Of a serving engine's iterations the first ones that decode are compared with later ones that decode as many
    requests; others take what their prompts ask for. None is incomplete: their windows are of their own work.
    """
    if marks != SERVING_ITERATIONS:
        return _roles(steps, complete([step.end_ns - step.start_ns for step in steps]))
    decoding = _decoding_alike(steps)
    roles: list[StepRole] = ["warm_up" if names_warm_up(step.name) else "measured" for step in steps]
    for at, role in zip(decoding, _roles([steps[at] for at in decoding], [True] * len(decoding)), strict=True):
        roles[at] = role
    return tuple(roles)


def step_statistics(marks: str, steps: Sequence[StepShares]) -> StepStatistics | None:
    """Spread of the measured steps of one rank, and whether they show the job; None without such a step.

    deviation is the sample standard deviation. Conclusive are three steps or more that last 10 ms or more together and
    spread by no more than 20 % (deviation over mean). Of serving iterations the phase that takes most time has to be
    as even: prefill and decode differ by nature.
    """
    measured = [step for step in steps if step.role == "measured"]
    if not measured:
        return None
    durations = [step.window_ns for step in measured]
    why = _inconclusive(marks, measured)
    return StepStatistics(
        marks=marks,
        window=span_of([step.name for step in measured]),
        measured=len(measured),
        warm_up=sum(step.role == "warm_up" for step in steps),
        incomplete=sum(step.role == "incomplete" for step in steps),
        mean_ns=fmean(durations),
        median_ns=float(median(durations)),
        deviation_ns=stdev(durations) if len(durations) > 1 else None,
        shortest_ns=min(durations),
        longest_ns=max(durations),
        conclusive=not why,
        why=why,
    )


def steps_left_out(steps: Sequence[StepShares]) -> tuple[str, ...]:
    """A warning for each step that does not count as measured, the first few where they are many."""
    measured = [step.window_ns for step in steps if step.role == "measured"]
    usual = f"{median(measured):,.0f} ns of a measured step" if measured else "no measured step"
    words = {"warm_up": "warm-up", "incomplete": "cut off by the start or the end of the profile"}
    left_out = [step for step in steps if step.role != "measured"]
    told = tuple(
        f"{shown(step.name)} lasts {step.window_ns:,} ns against {usual}: {words[step.role]}, left out of step times"
        for step in left_out[:_TOLD]
    )
    return (*told, f"{len(left_out) - _TOLD:,} more steps are left out likewise") if len(left_out) > _TOLD else told


def _roles(steps: Sequence[StepWindow], whole: Sequence[bool]) -> tuple[StepRole, ...]:
    roles: list[StepRole] = ["measured" if is_whole else "incomplete" for is_whole in whole]
    durations = [step.end_ns - step.start_ns for step in steps]
    counted = [at for at, is_whole in enumerate(whole) if is_whole]
    for place, at in enumerate(counted):
        later = [durations[other] for other in counted[place + 1 :]]
        if len(later) < FEWEST_LATER:
            break
        if durations[at] <= WARM_UP_FACTOR * median(later) or durations[at] < max(later):
            break
        roles[at] = "warm_up"
    return tuple("warm_up" if names_warm_up(step.name) else role for step, role in zip(steps, roles, strict=True))


def _decoding_alike(steps: Sequence[StepWindow]) -> list[int]:
    """Places of the serving iterations that decode as many requests as the first that decodes."""
    decoding = [(at, found) for at, step in enumerate(steps) if (found := serving_step(step.name)) is not None]
    decoding = [(at, found) for at, found in decoding if found.phase == "decode"]
    return [at for at, found in decoding if found.requests == decoding[0][1].requests]


def _inconclusive(marks: str, measured: Sequence[StepShares]) -> str:
    """Why these steps do not show the job; '' where they do."""
    reasons = []
    if len(measured) < FEWEST_MEASURED:
        count = "1 measured step" if len(measured) == 1 else f"{len(measured)} measured steps"
        reasons.append(f"{count}, at least {FEWEST_MEASURED} show a spread")
    lasted = sum(step.window_ns for step in measured)
    if lasted < SHORTEST_WINDOW_NS:
        reasons.append(
            f"the measured steps last {lasted / 1e6:.3g} ms together, less than {SHORTEST_WINDOW_NS / 1e6:.0f} ms"
        )
    told = f"the window is too short to conclude: {'; '.join(reasons)}" if reasons else ""
    compared = _leading_phase(measured) if marks == SERVING_ITERATIONS else measured
    durations = [step.window_ns for step in compared]
    uneven = stdev(durations) / fmean(durations) if len(durations) > 1 and any(durations) else 0.0
    if uneven <= MOST_UNEVEN_FRAC:
        return told
    spread = (
        f"the steps are too uneven to conclude: they spread by {uneven:.0%} (deviation over mean), "
        f"more than {MOST_UNEVEN_FRAC:.0%}"
    )
    return f"{told}; {spread}" if told else spread


def _leading_phase(measured: Sequence[StepShares]) -> list[StepShares]:
    """The iterations of the phase that takes most time."""
    by_phase: dict[ServingPhaseName, list[StepShares]] = {}
    for step in measured:
        by_phase.setdefault(_phase(step.name), []).append(step)
    return max(by_phase.values(), key=lambda steps: sum(step.window_ns for step in steps))


def _phase(name: str) -> ServingPhaseName:
    step = serving_step(name)
    return step.phase if step is not None else "unknown"
