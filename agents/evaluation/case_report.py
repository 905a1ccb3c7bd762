"""`shardwise eval advice` over before/after cases: rates by case and by source, baselines, misses with reasons."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from pydantic import Field

from agents.evaluation.case_rows import Case
from agents.evaluation.case_scores import CaseScore, score_case
from agents.evaluation.rates import rate
from agents.evaluation.reports import Rate, Reason
from agents.evaluation.rows import Unreadable
from projector.specs.record import Record

NOTES = (
    "class: the diagnosed class is the case's, 'mixed' takes any; judgements of a reader, not facts",
    "change: one of the case's levers is among the first three items of advice (remedies that come first, proposals, "
    "other remedies); where the change did not help: it is not advised as a gain",
    "direction and size: the ratio thought of for the case's levers and the measured one are both a gain (above 1.03) "
    "or both none, and within a factor 1.5, or the measured gain is inside the stated bound; strict: of logarithms",
    "by source: every repository or site counts once, with the mean of its cases",
    "requests hold phase, model, hardware, configuration and figures before, and the symptom; nothing of the outcome",
    "the words that are read and the usual gains were chosen with these cases in view: only cases nobody has seen tell "
    "how well they hold (docs/remedies.md says what halves left out gave)",
)
ALWAYS_RATIO = 1.2


class CaseFigure(Record):
    """One rate, by case and by source, and a baseline that knows nothing of the case."""

    name: str
    by_case: Rate
    by_source: Rate
    baseline: Rate | None = None
    baseline_name: str = ""


class Miss(Record):
    """A case of which something was wrong, and why."""

    id: str
    missed: tuple[str, ...]
    reason: str


class CaseReport(Record):
    """All figures of one file of cases; fractions."""

    n: int
    n_sources: int
    n_planned: int = Field(description="cases whose model and cluster are known, so that plans were proposed")
    figures: tuple[CaseFigure, ...]
    misses: tuple[Miss, ...] = ()
    unreadable: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = NOTES
    cases: tuple[CaseScore, ...] = ()


def case_report(
    cases: Sequence[Case | Unreadable], *, with_cases: bool = False, say: Callable[[str], None] = lambda _: None
) -> CaseReport:
    """Scores of every case. with_cases: what was said of each."""
    readable = [case for case in cases if isinstance(case, Case)]
    scores = []
    for number, case in enumerate(readable, start=1):
        scores.append(score_case(case))
        if number % 25 == 0:
            say(f"{number} of {len(readable)} cases")
    bad = [entry for entry in cases if isinstance(entry, Unreadable)]
    return CaseReport(
        n=len(scores),
        n_sources=len({score.source for score in scores}),
        n_planned=sum(score.planned for score in scores),
        figures=_figures(scores),
        misses=tuple(miss for score in scores if (miss := _miss(score)) is not None),
        unreadable=tuple(Reason(reason=f"{entry.id}: {entry.reason}", n=1) for entry in bad),
        cases=tuple(scores) if with_cases else (),
    )


def _figures(scores: Sequence[CaseScore]) -> tuple[CaseFigure, ...]:
    gains = [score for score in scores if score.outcome in ("improved", "unknown")]
    others = [score for score in scores if score.outcome in ("worse", "neutral")]
    rated = [score for score in scores if score.direction_hit is not None]
    common = _commonest(scores)
    always = [(score, 1.0 if score.ratio is not None and score.ratio > 1.03 else 0.0) for score in rated]
    sized = [(s, 1.0 if s.ratio is not None and 1.03 < s.ratio <= ALWAYS_RATIO * 1.5 else 0.0) for s in rated]
    return (
        _figure(
            "class",
            [(score, float(score.class_hit)) for score in scores],
            [(score, float(score.cls in ("compute", "mixed"))) for score in scores],
            "always compute",
        ),
        _figure(
            "change, all",
            [(score, float(score.change_hit)) for score in scores],
            [(s, float(s in others) or float(bool(common[s.id] & set(s.levers)))) for s in scores],
            "three commonest levers of other sources",
        ),
        _figure("change, or one the projector shows as good", [(score, float(score.as_good)) for score in scores]),
        _figure(
            "change, where it helped",
            [(score, float(score.change_hit)) for score in gains],
            [(score, float(bool(common[score.id] & set(score.levers)))) for score in gains],
            "three commonest levers of other sources",
        ),
        _figure("advised although it did not help (lower is better)", [(s, float(bool(s.naive))) for s in others]),
        _figure("direction", [(score, float(bool(score.direction_hit))) for score in rated], always, "always a gain"),
        _figure("direction and size", [(s, float(bool(s.size_hit))) for s in rated], sized, "always a gain of 20 %"),
        _figure("size, strict", [(score, float(bool(score.strict_hit))) for score in rated]),
        _figure(
            "fields a request has to carry, stated or asked for",
            [(score, score.asked) for score in scores if score.asked is not None],
        ),
    )


def _figure(
    name: str,
    hits: Sequence[tuple[CaseScore, float]],
    baseline: Sequence[tuple[CaseScore, float]] | None = None,
    baseline_name: str = "",
) -> CaseFigure:
    by_source: dict[str, list[float]] = defaultdict(list)
    for score, hit in hits:
        by_source[score.source].append(hit)
    return CaseFigure(
        name=name,
        by_case=rate([hit for _, hit in hits]),
        by_source=rate([sum(members) / len(members) for members in by_source.values()]),
        baseline=rate([hit for _, hit in baseline]) if baseline is not None else None,
        baseline_name=baseline_name,
    )


def _commonest(scores: Sequence[CaseScore]) -> dict[str, set[str]]:
    """By id: the three levers that most cases of other sources have."""
    everywhere = Counter(lever for score in scores for lever in score.levers)
    found = {}
    for score in scores:
        own = Counter(lever for other in scores if other.source == score.source for lever in other.levers)
        rest = everywhere - own
        found[score.id] = {lever for lever, _ in sorted(rest.items(), key=lambda item: (-item[1], item[0]))[:3]}
    return found


def _miss(score: CaseScore) -> Miss | None:
    missed, reasons = [], []
    if not score.class_hit:
        missed.append("class")
        sure = " (ambiguous)" if score.ambiguous else ""
        reasons.append(
            f"{score.diagnosis_source} diagnosis {score.diagnosed}, {score.cause}{sure}; the case: {score.cls}"
        )
    if not score.as_good:
        missed.append("change")
        verb = "advised" if score.naive else "advised instead"
        reasons.append(
            f"{verb} {' | '.join(score.advice) or 'nothing'}; the case: {'+'.join(score.levers)} ({score.outcome})"
        )
    if score.size_hit is False:
        missed.append("direction" if not score.direction_hit else "size")
        said = (
            "no prediction"
            if score.predicted is None
            else f"predicted {score.predicted:.2f} ({score.prediction_basis})"
        )
        reasons.append(f"{said}, measured {score.ratio:.2f}")
    return Miss(id=score.id, missed=tuple(missed), reason="; ".join(reasons)) if missed else None
