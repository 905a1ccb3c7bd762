"""`eval accuracy` of serving rows: TPOT, TTFT and output tokens/s against their projections, as one report."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from agents.evaluation.accuracy import reasons
from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.rows import Unreadable
from agents.evaluation.serving_cases import METRICS, ServingCase, serving_case_of
from agents.evaluation.serving_errors import figures
from agents.evaluation.serving_folds import serving_folds
from agents.evaluation.serving_reports import ServingFigures, ServingPoint, ServingReport
from agents.evaluation.serving_rows import ServingRow
from agents.evaluation.serving_scored import ServingScored, score_serving

Say = Callable[[str], None]
# a name every row of a report shares
ALL = "all"
# what rows are sliced by, the finest last
SLICES: dict[str, Callable[[ServingCase], str]] = {
    ALL: lambda _: "all rows",
    "model kind": lambda case: case.kind,
    "model kind, mode": lambda case: f"{case.kind}, {case.row.mode}",
    "speculation": lambda case: "implied by the file" if case.row.speculation else "none implied",
    "source": lambda case: case.row.source,
    "engine": lambda case: case.row.engine,
    "chip": lambda case: case.hardware.id,
    "model": lambda case: case.row.model,
    "model, chip, engine, mode": lambda case: (
        f"{case.row.model}, {case.hardware.id}, {case.row.engine}, {case.row.mode}"
    ),
}


@dataclass(frozen=True)
class SortedServing:
    """The rows of all files by what becomes of them; what is left out as (row id, reason)."""

    lines: int
    scored: tuple[ServingScored, ...]
    repeated: tuple[tuple[str, str], ...]
    ineligible: tuple[tuple[str, str], ...]
    refused: tuple[tuple[str, str], ...]


def serving_accuracy(
    rows: Iterable[ServingRow | Unreadable],
    *,
    with_folds: bool = False,
    with_ids: bool = False,
    with_rows: bool = False,
    say: Say = lambda _: None,
) -> ServingReport:
    """The report over all rows. with_ids lists what was left out by id, with_rows every modelled figure."""
    found = sort_serving_rows(rows, say)
    return ServingReport(
        n_given=found.lines,
        n_modelled=len(found.scored),
        n_repeated=len(found.repeated),
        n_ineligible=len(found.ineligible),
        n_refused=len(found.refused),
        too_large=sum(one.too_large for one in found.scored),
        figures=tuple(figures_by(found.scored)),
        assumed=dict(sorted(Counter(text for one in found.scored for text in one.case.assumed).items())),
        repeated=reasons(found.repeated, with_ids=with_ids),
        ineligible=reasons(found.ineligible, with_ids=with_ids),
        refusals=reasons(found.refused, with_ids=with_ids),
        folds=serving_folds(found.scored) if with_folds else None,
        points=tuple(point for one in found.scored for point in _points(one)) if with_rows else (),
    )


def sort_serving_rows(rows: Iterable[ServingRow | Unreadable], say: Say = lambda _: None) -> SortedServing:
    """Project what can be projected. A row whose id was there before is refused."""
    cases: list[ServingCase] = []
    repeated, ineligible, refused = [], [], []
    seen: set[str] = set()
    lines = 0
    for row in rows:
        lines += 1
        if isinstance(row, Unreadable):
            refused.append((row.id, row.reason))
        elif row.id in seen:
            refused.append((row.id, "a row of this id was given before"))
        elif row.repeats is not None:
            repeated.append((row.id, "prints the measured point of an earlier row"))
        elif row.ineligible is not None:
            ineligible.append((row.id, row.ineligible))
        else:
            case = or_refused(partial(serving_case_of, row))
            if isinstance(case, Refused):
                refused.append((row.id, str(case)))
            else:
                cases.append(case)
        seen.add(row.id)
    say(f"{len(cases)} of {lines} rows are cases; projecting")
    outcomes = score_serving(cases)
    refused += [(case.row.id, str(one)) for case, one in zip(cases, outcomes, strict=True) if isinstance(one, Refused)]
    scored = tuple(one for one in outcomes if isinstance(one, ServingScored))
    return SortedServing(lines, scored, tuple(repeated), tuple(ineligible), tuple(refused))


def figures_by(scored: Sequence[ServingScored]) -> Iterable[ServingFigures]:
    """The figures of every metric and slice, values in alphabetical order."""
    for by, value_of in SLICES.items():
        members: dict[str, list[ServingScored]] = defaultdict(list)
        for one in scored:
            members[value_of(one.case)].append(one)
        for value, ones in sorted(members.items()):
            for metric in METRICS:
                found = figures(by, value, metric, ones)
                if found is not None:
                    yield found


def _points(one: ServingScored) -> Iterable[ServingPoint]:
    row = one.case.row
    for target in one.case.targets:
        yield ServingPoint(
            id=row.id,
            source=row.source,
            model=row.model,
            chip=one.case.hardware.id,
            engine=row.engine,
            release=row.release,
            mode=row.mode,
            metric=target.metric,
            statistic=target.statistic,
            measured=target.value,
            projected=one.projected[target.metric],
            too_large=one.too_large,
            assumed=one.case.assumed,
            plan=one.case.plan,
        )
