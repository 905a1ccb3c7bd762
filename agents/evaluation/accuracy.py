"""`eval accuracy`: rows of measured runs against their projections, as one report."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from agents.evaluation.cases import Case, case_of
from agents.evaluation.errors import error_figures
from agents.evaluation.folds import folds
from agents.evaluation.memory import memory_figures
from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.reports import AccuracyReport, Reason, ScoredRow
from agents.evaluation.rl_cases import rl_case_of, score_every
from agents.evaluation.rows import MeasuredRow, Unreadable
from agents.evaluation.scored import Scored
from agents.evaluation.slices import NO_STRATUM, slices
from agents.evaluation.sweeps import sweep_figures, sweeps
from agents.evaluation.targets import printed_target

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sorted:
    """The rows of all files by what becomes of them; refused, suspects and ineligible as (row id, reason).

    lines: rows in all, those included that could not be read or came twice, which are not among `given`.
    """

    lines: int
    given: tuple[MeasuredRow, ...]
    scored: tuple[Scored, ...]
    suspects: tuple[tuple[str, str], ...]
    ineligible: tuple[tuple[str, str], ...]
    refused: tuple[tuple[str, str], ...]


def accuracy(
    rows: Iterable[MeasuredRow | Unreadable],
    strata: Mapping[str, str],
    *,
    with_folds: bool = False,
    with_ids: bool = False,
    with_rows: bool = False,
    say: Say = lambda _: None,
) -> AccuracyReport:
    """The report over all rows. strata: workload id -> stratum, where a workloads file states one.

    with_ids lists refused rows by id, with_rows every modelled row; suspects are listed always. say: progress.
    """
    found = sort_rows(rows, strata, say)
    return _report(found, strata, with_folds=with_folds, with_ids=with_ids, with_rows=with_rows)


def sort_rows(rows: Iterable[MeasuredRow | Unreadable], strata: Mapping[str, str], say: Say) -> Sorted:
    """Project what can be projected. A row whose id was there before is refused."""
    given: list[MeasuredRow] = []
    cases: list[Case] = []
    suspects, ineligible, refused = [], [], []
    seen: set[str] = set()
    lines = 0
    for row in rows:
        lines += 1
        if isinstance(row, Unreadable):
            refused.append((row.id, row.reason))
            continue
        if row.id in seen:
            refused.append((row.id, "a row of this id was given before"))
            continue
        seen.add(row.id)
        given.append(row)
        if row.suspect is not None:
            suspects.append((row.id, row.suspect))
        elif row.ineligible is not None:
            ineligible.append((row.id, row.ineligible))
        else:
            read = rl_case_of if row.phase == "rl" else case_of
            case = or_refused(partial(read, row, strata.get(row.workload_id, NO_STRATUM)))
            if isinstance(case, Refused):
                refused.append((row.id, str(case)))
            else:
                cases.append(case)
    say(f"{len(cases)} of {len(given)} rows are cases; projecting")
    outcomes = score_every(cases)
    scored = [one for one in outcomes if isinstance(one, Scored)]
    refused += [(case.row.id, str(one)) for case, one in zip(cases, outcomes, strict=True) if isinstance(one, Refused)]
    return Sorted(lines, tuple(given), tuple(scored), tuple(suspects), tuple(ineligible), tuple(refused))


def _report(
    found: Sorted, strata: Mapping[str, str], *, with_folds: bool, with_ids: bool, with_rows: bool
) -> AccuracyReport:
    scored = found.scored
    suspects = frozenset(name for name, _ in found.suspects)
    uncounted = suspects | {name for name, _ in found.ineligible}
    refused = {name for name, _ in found.refused}
    counting = [row for row in found.given if row.id not in uncounted]
    targets = {row.id: printed_target(row) for row in counting if row.id in refused}
    left_out = {name: target.s_per_token for name, target in targets.items() if target is not None}
    swept = sweeps(scored, left_out, counting)
    same, mixed = sweep_figures(swept.same), sweep_figures(swept.mixed)
    memory = memory_figures(scored)
    broken = [(one.case.row.id, rule) for one in scored for rule in one.broken_rules]
    every = error_figures(scored)
    eligible = found.lines - len(found.suspects) - len(found.ineligible)
    return AccuracyReport(
        n_given=found.lines,
        n_modelled=len(scored),
        mape=every.mape,
        median_error=every.median_error,
        bias=every.bias,
        coverage_80=every.coverage_80,
        width_80=every.width_80,
        order_accuracy=same[0].order_accuracy if same else None,
        top1_regret=same[0].top1_regret if same else None,
        top3_regret=same[0].top3_regret if same else None,
        memory_median_error=memory[0].median_error,
        n_suspect=len(found.suspects),
        n_ineligible=len(found.ineligible),
        n_refused=len(found.refused),
        refused_share=len(found.refused) / eligible if eligible else None,
        all_rows=every,
        newest=error_figures([one for one in scored if not one.case.row.superseded]),
        nothing_assumed=error_figures([one for one in scored if not one.case.assumed]),
        assumed=dict(sorted(Counter(knob for one in scored for knob in one.case.assumed).items())),
        slices=slices(found.given, suspects, scored, strata),
        sweeps=same,
        mixed_sweeps=mixed,
        sweep_groups=swept.same,
        memory=memory,
        suspects=reasons(found.suspects, with_ids=True),
        ineligible=reasons(found.ineligible, with_ids=with_ids),
        refusals=reasons(found.refused, with_ids=with_ids),
        broken_rules=reasons(broken, with_ids=with_ids),
        folds=folds(scored) if with_folds else None,
        rows=tuple(_row(one) for one in scored) if with_rows else (),
    )


def reasons(refused: Sequence[tuple[str, str]], *, with_ids: bool) -> tuple[Reason, ...]:
    """(id, reason) pairs by reason, the commonest first."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name, reason in refused:
        by_reason[reason].append(name)
    ordered = sorted(by_reason.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return tuple(Reason(reason=reason, n=len(ids), ids=tuple(ids) if with_ids else ()) for reason, ids in ordered)


def _row(one: Scored) -> ScoredRow:
    row, interval = one.case.row, one.projection.step_time_interval_s
    return ScoredRow(
        id=row.id,
        source=row.source,
        framework=row.framework,
        chip=one.case.hardware.id,
        chips=row.chips,
        model=row.model,
        phase=row.phase,
        stratum=one.case.stratum,
        target=None if one.case.target is None else one.case.target.kind,
        measured_s=one.measured_s,
        projected_s=one.projected_s,
        low_s=interval.low,
        high_s=interval.high,
        measured_memory_bytes=row.measured.memory_bytes,
        projected_memory_bytes=one.counted_bytes,
        fit=one.projection.fit,
        superseded=row.superseded,
        assumed=one.case.assumed,
        broken_rules=one.broken_rules,
        plan=one.projection.plan,
    )
