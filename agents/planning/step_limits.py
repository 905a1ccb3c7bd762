"""What the steps of a trace leave open: too few or too uneven ones, and those that were left out."""

from collections.abc import Sequence

from traces.measure_types import StepRole
from traces.summary_types import RankSummary, TraceSummary

_WORDS: dict[StepRole, str] = {"warm_up": "warm-up", "incomplete": "cut"}


def step_limits(summary: TraceSummary) -> tuple[str, ...]:
    """Sentences for the limits of a diagnosis; () where steps are marked, enough and even."""
    if not summary.window.device:
        return ()
    ranks = summary.ranks
    if not any(rank.steps for rank in ranks):
        return () if summary.kpis is not None else ("the trace marks no steps: warm-up and pauses count like any time",)
    return (*_left_out(ranks), *_inconclusive(ranks))


def _left_out(ranks: Sequence[RankSummary]) -> tuple[str, ...]:
    """One sentence with the counts of the rank that lost most steps: ranks of a job run the same ones."""
    counts = [{role: sum(step.role == role for step in rank.steps) for role in _WORDS} for rank in ranks if rank.steps]
    most = max(counts, key=lambda count: sum(count.values()))
    told = [f"{number} {_WORDS[role]} step{'s' if number > 1 else ''}" for role, number in most.items() if number]
    if not told:
        return ()
    on = " on a rank" if len(ranks) > 1 else ""
    return (f"{' and '.join(told)}{on} left out of the shares",)


def _inconclusive(ranks: Sequence[RankSummary]) -> tuple[str, ...]:
    """Why the steps do not show the job, in the words of the first rank of which that is so."""
    found = [rank.step_statistics for rank in ranks if rank.step_statistics is not None]
    doubtful = [statistics for statistics in found if not statistics.conclusive]
    if not doubtful:
        return ()
    on = f" (on {len(doubtful)} of {len(ranks)} ranks)" if len(ranks) > 1 else ""
    return (f"{doubtful[0].marks}: {doubtful[0].why}{on}",)
