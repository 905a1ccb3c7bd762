"""`eval topk`: whether the layouts that experts published are among the projector's first three, as one report."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from pydantic import ValidationError

from agents.evaluation.accuracy import Say, reasons
from agents.evaluation.adapters import adapters_of
from agents.evaluation.architecture import architecture_of
from agents.evaluation.baselines import Baselines, Published, baselines
from agents.evaluation.hits import DETAILS, OUTSIDE, TOO_LARGE, Hits, hits
from agents.evaluation.precisions import dtype_of
from agents.evaluation.ranking import PROPOSALS, Problem, RankedLayout, is_legal, rank_layouts
from agents.evaluation.rates import rate
from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.reports import Detail, Proposed, Rate, Stratum, TopkReport, WorkloadHits
from agents.evaluation.rows import MeasuredRow, Unreadable
from agents.evaluation.workloads import TRIVIAL, Workload, adopted_layouts
from agents.frameworks import frameworks_of
from projector.catalog import chip
from projector.errors import ShardwiseError
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.fine_tuning import Adapter
from projector.specs.plan import ComputeDtype
from projector.specs.sequence_lengths import SequenceLengths
from projector.specs.workload import WorkloadSpec

FrameworkInput = Literal["named", "unknown"]
NONTRIVIAL, ALL = "nontrivial", "all"
BY_WORKLOAD, BY_LAYOUT = "workload", "layout key"


@dataclass(frozen=True)
class Outcome:
    """One eligible workload: what was published, what the baselines say, and the planner's answer where it has one."""

    published: Published
    baselines: Baselines
    hits: Hits | None
    proposals: tuple[RankedLayout, ...] = ()
    legal: tuple[bool, ...] = ()
    layouts: int = 0
    plans: int = 0
    refused: str = ""


def topk(
    workloads: Iterable[Workload | Unreadable],
    rows: Iterable[MeasuredRow | Unreadable],
    *,
    phase: str = "pretrain",
    framework: FrameworkInput = "unknown",
    with_ids: bool = False,
    with_workloads: bool = False,
    say: Say = lambda _: None,
) -> TopkReport:
    """The report over every eligible workload of a phase, each once. One the planner cannot plan counts as missed."""
    known = {row.id: row for row in rows if isinstance(row, MeasuredRow)}
    published: dict[str, Published] = {}
    unreadable: list[tuple[str, str]] = []
    for workload in workloads:
        if isinstance(workload, Unreadable):
            unreadable.append((workload.id, workload.reason))
        elif workload.eligible and workload.phase == phase:
            published.setdefault(workload.id, Published(workload, adopted_layouts(workload, known)))
    outcomes = []
    for count, one in enumerate(published.values(), start=1):
        outcomes.append(_outcome(one, known, tuple(published.values()), framework))
        if count % 25 == 0 or count == len(published):
            say(f"{count} of {len(published)} workloads ranked")
    return report_of(outcomes, unreadable, phase, framework, with_ids=with_ids, with_workloads=with_workloads)


def _outcome(
    one: Published, rows: Mapping[str, MeasuredRow], published: Sequence[Published], framework: FrameworkInput
) -> Outcome:
    beside = baselines(one.workload, published)
    found = or_refused(lambda: _answer(one, beside, rows, framework))
    return found if isinstance(found, Outcome) else Outcome(one, beside, None, refused=str(found))


def _answer(one: Published, beside: Baselines, rows: Mapping[str, MeasuredRow], framework: FrameworkInput) -> Outcome:
    """Refused where the workload cannot be planned."""
    workload = one.workload
    if not one.layouts:
        raise Refused("no row says which layout was adopted")
    problem = problem_of(workload, rows)
    named = frameworks_of(workload.frameworks) if framework == "named" else ()
    ranking = rank_layouts(problem, named)
    if not ranking.layouts:
        raise Refused("no legal plan fits")
    proposals = ranking.layouts[:PROPOSALS]
    return Outcome(
        published=one,
        baselines=beside,
        hits=hits(workload, rows, ranking),
        proposals=proposals,
        legal=tuple(is_legal(proposal.plan, problem) for proposal in proposals),
        layouts=len(ranking.layouts),
        plans=ranking.plans,
    )


def problem_of(workload: Workload, rows: Mapping[str, MeasuredRow]) -> Problem:
    """What the planner is told of a workload. Refused where it is not told enough, or cannot model it."""
    row = next((rows[name] for name in (*workload.expert_rows, *workload.rows) if name in rows), None)
    if row is None:
        raise Refused("none of its rows is at hand, so the model's numbers are not known")
    if workload.seq_len is None or workload.global_batch is None or workload.chips is None:
        raise Refused("sequence length, global batch or number of chips not stated")
    architecture = architecture_of(row.arch, row.model, row.source)
    dtype, _ = dtype_of(workload.precision)
    adapter, lengths = _content(row, dtype, architecture)
    try:
        hardware = chip(workload.chip)
        return Problem(
            WorkloadSpec(
                seq_len=workload.seq_len,
                global_batch=workload.global_batch,
                precision=dtype,
                adapter=adapter,
                lengths=lengths,
            ),
            architecture,
            ClusterSpec(chip=hardware.id, chips=workload.chips),
            hardware,
        )
    except (ValidationError, ShardwiseError) as error:
        raise Refused(str(error).splitlines()[0]) from error


def _content(
    row: MeasuredRow, dtype: ComputeDtype, model: ModelArchitecture
) -> tuple[Adapter | None, SequenceLengths | None]:
    """What a step trains, and on which documents. Of reinforcement learning the update alone is ranked: the rows of the
    trainer's layout. Frozen weights are stored as narrow as products run, as recipes do where 16 bit would not fit."""
    if row.phase == "rl":
        mean = None if row.rollout is None else row.rollout.mean_tokens
        return None, None if mean is None else SequenceLengths(rows="packed", mean_tokens=mean)
    adapters, _ = adapters_of(row, dtype, gated=model.gated_mlp)
    return adapters[-1], None


def report_of(
    outcomes: Sequence[Outcome],
    unreadable: Sequence[tuple[str, str]],
    phase: str,
    framework: FrameworkInput,
    *,
    with_ids: bool,
    with_workloads: bool,
) -> TopkReport:
    """The figures of what was ranked, by whatever ranked it."""
    strata = _strata(outcomes)
    by_name = {(one.stratum, one.weighted_by): one for one in strata}
    nontrivial = by_name.get((NONTRIVIAL, BY_WORKLOAD))
    trivial = by_name.get((TRIVIAL, BY_WORKLOAD))
    legal = [mark for one in outcomes for mark in one.legal]
    refused = [(one.published.workload.id, one.refused) for one in outcomes if one.refused]
    return TopkReport(
        n=len(outcomes),
        nontrivial_n=0 if nontrivial is None else nontrivial.n,
        nontrivial_top1=None if nontrivial is None else nontrivial.top1.rate,
        nontrivial_top3=None if nontrivial is None else nontrivial.top3.rate,
        nontrivial_tolerant=None if nontrivial is None else nontrivial.tolerant.rate,
        trivial_top1=None if trivial is None else trivial.top1.rate,
        legal_share=sum(legal) / len(legal) if legal else None,
        baseline_common_top3=None if nontrivial is None else nontrivial.baseline_common_top3.rate,
        baseline_same_model_top3=None if nontrivial is None else nontrivial.baseline_same_model_top3.rate,
        phase=phase,
        framework=framework,
        nontrivial_flatness=None if nontrivial is None else nontrivial.flatness,
        strata=strata,
        details=_details_of(outcomes),
        refusals=reasons([*unreadable, *refused], with_ids=with_ids),
        notes=NOTES,
        workloads=tuple(_workload(one) for one in outcomes) if with_workloads else (),
    )


NOTES = (
    "the projector alone: every legal plan of the search space by projected tokens/s per chip, no note, no history and "
    "no published layout; no constant of it was fitted on hits",
    "told: model, chip, number of chips, precision, sequence length, global batch and phase, and the framework only "
    "where it is named",
    "a workload that cannot be planned counts as missed",
    "the commonest layouts leave the workload's own (family, chip) group out; beside them stand those with nothing "
    "left out",
)


def _strata(outcomes: Sequence[Outcome]) -> tuple[Stratum, ...]:
    members: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        workload = one.published.workload
        members[ALL].append(one)
        if workload.nontrivial:
            members[NONTRIVIAL].append(one)
        members[workload.stratum].append(one)
    first = [name for name in (ALL, NONTRIVIAL) if name in members]
    names = [*first, *sorted(set(members) - set(first))]
    return tuple(_stratum(name, members[name], by) for name in names for by in (BY_WORKLOAD, BY_LAYOUT))


def _stratum(name: str, outcomes: Sequence[Outcome], weighted_by: str) -> Stratum:
    def hit(marked: Callable[[Hits], bool]) -> Rate:
        return _rate(outcomes, lambda one: one.hits is not None and marked(one.hits), weighted_by)

    def copied(proposed: Callable[[Baselines], Sequence[object]]) -> Rate:
        return _rate(outcomes, lambda one: bool(one.published.layouts & set(proposed(one.baselines))), weighted_by)

    found = [one.hits for one in outcomes if one.hits is not None]
    ranks = [one.rank for one in found if one.rank is not None]
    return Stratum(
        stratum=name,
        weighted_by=weighted_by,
        n=len(outcomes) if weighted_by == BY_WORKLOAD else len({one.published.workload.layout_key for one in outcomes}),
        n_ranked=len(found),
        top1=hit(lambda one: one.top1),
        top3=hit(lambda one: one.top3),
        top1_strict=hit(lambda one: one.top1_strict),
        top3_strict=hit(lambda one: one.top3_strict),
        tolerant=hit(lambda one: one.tolerant),
        tolerant_2=hit(lambda one: one.tolerant_2),
        flatness=median([one.flatness for one in found]) if found else None,
        median_rank=median(ranks) if ranks else None,
        outside=sum(one.absent == OUTSIDE for one in found),
        too_large=sum(one.absent == TOO_LARGE for one in found),
        baseline_common_top1=copied(lambda one: one.common[:1]),
        baseline_common_top3=copied(lambda one: one.common),
        baseline_common_in_sample_top3=copied(lambda one: one.common_in_sample),
        baseline_same_model_top1=copied(lambda one: one.same_model[:1]),
        baseline_same_model_top3=copied(lambda one: one.same_model),
    )


def _rate(outcomes: Sequence[Outcome], hit: Callable[[Outcome], bool], weighted_by: str) -> Rate:
    """Every workload once, or every layout key once with the mean of its workloads."""
    if weighted_by == BY_WORKLOAD:
        return rate([float(hit(one)) for one in outcomes])
    by_key: dict[str, list[float]] = defaultdict(list)
    for one in outcomes:
        by_key[one.published.workload.layout_key].append(float(hit(one)))
    return rate([fmean(marks) for _, marks in sorted(by_key.items())])


def _details_of(outcomes: Sequence[Outcome]) -> tuple[Detail, ...]:
    marks: dict[str, list[float]] = defaultdict(list)
    for one in outcomes:
        for field, agrees in one.hits.details if one.hits is not None else ():
            marks[field].append(float(agrees))
    return tuple(Detail(field=field, rate=rate(marks[field])) for field in DETAILS if field in marks)


def _workload(one: Outcome) -> WorkloadHits:
    workload, found = one.published.workload, one.hits
    return WorkloadHits(
        workload_id=workload.id,
        stratum=workload.stratum,
        adopted=tuple(sorted(one.published.layouts)),
        proposals=tuple(
            Proposed(layout=proposal.layout, step_time_s=proposal.step_time_s, legal=legal, plan=proposal.plan)
            for proposal, legal in zip(one.proposals, one.legal, strict=True)
        ),
        rank=None if found is None else found.rank,
        absent=one.refused if found is None else found.absent,
        layouts=one.layouts,
        within_5_percent=0 if found is None else found.flatness,
        plans=one.plans,
        hit_top1=found is not None and found.top1,
        hit_top3=found is not None and found.top3,
        tolerant=found is not None and found.tolerant,
    )
