"""`eval topk` of serving: whether the fleets that experts published are among the first three of the projector."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from agents.evaluation.accuracy import Say, reasons
from agents.evaluation.architecture import architecture_of
from agents.evaluation.best_degrees import best_degrees
from agents.evaluation.precisions import dtype_of, stored_dtype
from agents.evaluation.rates import rate
from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.reports_served import ServedBaseline, ServedStratum, ServedTopkReport, ServedWorkload
from agents.evaluation.rows import Unreadable
from agents.evaluation.served_rows import ServedLayout, ServedRow
from agents.evaluation.served_traffic import traffic_of
from agents.evaluation.workloads import Workload
from projector.catalog import chip
from projector.errors import ShardwiseError
from projector.ranking.rank import MOST_TOP, rank_space
from projector.ranking.task import Task
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.objective import Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

PROPOSALS, TOLERANCE = 3, 0.05
ALL, NONTRIVIAL, TRIVIAL = "all", "more than one device an engine", "replicas of one device"

NOTES = (
    "the projector alone: every legal plan of the search space by generated tokens a second and chip, under the "
    "budgets of the scenario where it has some",
    "told: model, chip, number of chips, precision and the requests; where no load is stated, every seat is taken and "
    "their number is searched",
    "requests of MLPerf data sets have the mean lengths MLCommons states; its 99th-percentile budgets are held against "
    "means",
    "a hit: tensor, pipeline, expert and attention data parallelism and replicas all equal those of an expert row",
    "a workload that cannot be planned counts as missed; baselines leave the workload's own (family, chip) group out, "
    "but for those that look at nothing published",
)


@dataclass(frozen=True)
class Published:
    """An eligible workload on one number of chips, with the fleets experts ran on it."""

    workload: Workload
    row: ServedRow
    layouts: frozenset[ServedLayout]

    @property
    def nontrivial(self) -> bool:
        """Whether some published engine has more than one device."""
        return any(max(layout.engine) > 1 for layout in self.layouts)


@dataclass(frozen=True)
class Outcome:
    """What the planner answers to one of them: fleets best first, each with its share of the best one's throughput."""

    published: Published
    ranked: tuple[tuple[ServedLayout, float], ...] = ()
    plans: int = 0
    refused: str = ""

    def place(self) -> int | None:
        """The rank, from 1, of the first published fleet; None where none is among them."""
        found = (place for place, (one, _) in enumerate(self.ranked, start=1) if one in self.published.layouts)
        return next(found, None)

    def hit(self, most: int) -> bool:
        """Whether a published fleet is among the first `most`."""
        place = self.place()
        return place is not None and place <= most

    def tolerant(self) -> bool:
        """A hit in three, or a published fleet within TOLERANCE of the best."""
        place = self.place()
        return self.hit(PROPOSALS) or (place is not None and self.ranked[place - 1][1] * (1 + TOLERANCE) >= 1)


def served_topk(
    workloads: Iterable[Workload | Unreadable],
    rows: Iterable[ServedRow | Unreadable],
    *,
    with_ids: bool = False,
    with_workloads: bool = False,
    say: Say = lambda _: None,
    answer: "Answer | None" = None,
    notes: tuple[str, ...] = NOTES,
) -> ServedTopkReport:
    """Hits over every eligible serving workload, and the choice of degrees over every sweep of them.

    answer: what ranks the fleets of a workload, as the notes say; None: the projector.
    """
    given = tuple(rows)
    known = {row.id: row for row in given if isinstance(row, ServedRow)}
    listed = tuple(workloads)
    served = [one for one in listed if isinstance(one, Workload) and one.phase == "serving"]
    unreadable = [(one.id, one.reason) for one in (*listed, *given) if isinstance(one, Unreadable)]
    published = [found for one in served if one.eligible and (found := _published(one, known)) is not None]
    outcomes = []
    for count, one in enumerate(published, start=1):
        outcomes.append(_outcome(one, answer or projected_answer))
        if count % 10 == 0 or count == len(published):
            say(f"{count} of {len(published)} workloads ranked")
    choice = best_degrees([(one.id, [known[name] for name in one.rows if name in known]) for one in served])
    refused = [(one.published.workload.id, one.refused) for one in outcomes if one.refused]
    return ServedTopkReport(
        n=len(outcomes),
        strata=tuple(_stratum(name, members, published) for name, members in _strata(outcomes)),
        degrees=choice,
        refusals=reasons([*unreadable, *refused], with_ids=with_ids),
        notes=notes,
        workloads=tuple(_workload(one) for one in outcomes) if with_workloads else (),
    )


def _published(workload: Workload, rows: Mapping[str, ServedRow]) -> Published | None:
    """The number of chips most expert rows ran on, and their fleets there; None where no such row is at hand."""
    experts = [rows[name] for name in workload.expert_rows if name in rows]
    if not experts:
        return None
    chips = max(Counter(row.chips for row in experts).items(), key=lambda entry: (entry[1], entry[0]))[0]
    there = [row for row in experts if row.chips == chips]
    return Published(workload, there[0], frozenset(row.layout for row in there))


def _outcome(one: Published, answer: "Answer") -> Outcome:
    found = or_refused(lambda: answer(one))
    return found if isinstance(found, Outcome) else Outcome(one, refused=str(found))


Answer = Callable[[Published], Outcome]


def projected_answer(one: Published) -> Outcome:
    """The projector's ranking. Refused where the workload cannot be planned."""
    try:
        found = rank_space(problem_of(one.row), top=MOST_TOP)
    except (ValidationError, ShardwiseError) as error:
        raise Refused(str(error).splitlines()[0]) from error
    if not found.ranked:
        raise Refused(found.why_none)
    best: dict[ServedLayout, float] = {}
    for entry in found.ranked:
        best.setdefault(layout_of(entry.projection.plan), 1 - entry.behind_frac)
    ranked = sorted(best.items(), key=lambda entry: -entry[1])
    return Outcome(one, tuple(ranked), found.candidates_considered)


def problem_of(row: ServedRow) -> Task:
    """What the planner is told of a row's workload. Refused where that is not enough."""
    traffic = traffic_of(row.dataset)
    input_len, output_len = row.input_len, row.output_len
    if traffic is not None and input_len is None and output_len is None:
        input_len, output_len = traffic.input_len, traffic.output_len
    if input_len is None or output_len is None:
        raise Refused("neither lengths of the requests nor a data set whose lengths are known")
    dtype, _ = dtype_of(row.precision)
    hardware = chip(row.chip)
    workload = WorkloadSpec(
        phase="serving",
        input_len=input_len,
        output_len=output_len,
        concurrency=row.concurrency,
        precision=dtype,
    )
    # the cache may be narrower than stated, the weights may not; both pools of a split fleet are no layout of a row
    fixed: dict[str, int | bool | str] = {
        "weight_dtype": stored_dtype(dtype),
        "expert_dtype": "same",
        "prefill_replicas": 0,
    }
    limits = Constraints(fixed=fixed, allow_numerics_changes=True)
    return Task(
        workload=workload,
        architecture=architecture_of(row.arch, row.model, row.source),
        cluster=ClusterSpec(chip=hardware.id, chips=row.chips),
        hardware=hardware,
        constraints=limits,
        slo=Slo() if traffic is None else traffic.slo(row.scenario),
    )


def layout_of(plan: ParallelismPlan) -> ServedLayout:
    """The fleet of a plan."""
    return ServedLayout(plan.tp, plan.pp, plan.ep, plan.attention_dp, plan.replicas)


def _strata(outcomes: Sequence[Outcome]) -> list[tuple[str, list[Outcome]]]:
    """Those with members: all, engines of several devices, replicas of one."""
    several = [one for one in outcomes if one.published.nontrivial]
    single = [one for one in outcomes if not one.published.nontrivial]
    return [entry for entry in ((ALL, list(outcomes)), (NONTRIVIAL, several), (TRIVIAL, single)) if entry[1]]


def _stratum(name: str, members: Sequence[Outcome], published: Sequence[Published]) -> ServedStratum:
    places = sorted(place for one in members if (place := one.place()) is not None)
    return ServedStratum(
        stratum=name,
        n=len(members),
        n_ranked=sum(not one.refused for one in members),
        top1=rate([float(one.hit(1)) for one in members]),
        top3=rate([float(one.hit(PROPOSALS)) for one in members]),
        tolerant=rate([float(one.tolerant()) for one in members]),
        median_rank=float(places[len(places) // 2]) if places else None,
        baselines=tuple(
            ServedBaseline(name=name, rate=rate([float(guess(one.published, published)) for one in members]))
            for name, guess in BASELINES
        ),
    )


def _commonest(one: Published, published: Sequence[Published]) -> bool:
    others = Counter(
        layout for other in published if other.workload.group != one.workload.group for layout in other.layouts
    )
    ordered = sorted(others.items(), key=lambda entry: (-entry[1], entry[0]))
    return any(layout in one.layouts for layout, _ in ordered[:PROPOSALS])


def _same_model(one: Published, published: Sequence[Published]) -> bool:
    """Engines of the same family on other chips, as many of them as the chips hold."""
    others = Counter(
        layout.engine
        for other in published
        if other.workload.family == one.workload.family and other.workload.group != one.workload.group
        for layout in other.layouts
    )
    first = sorted(others.items(), key=lambda entry: (-entry[1], entry[0]))[:PROPOSALS]
    return any(layout.engine == engine for engine, _ in first for layout in one.layouts)


def _one_engine(one: Published, _: Sequence[Published]) -> bool:
    """Tensor parallelism over all chips."""
    return any(layout.tp == layout.devices for layout in one.layouts)


def _one_device(one: Published, _: Sequence[Published]) -> bool:
    """As many replicas as devices."""
    return any(layout.replicas == layout.devices for layout in one.layouts)


BASELINES: tuple[tuple[str, Callable[[Published, Sequence[Published]], bool]], ...] = (
    ("the three commonest fleets", _commonest),
    ("three engines of the same model on other chips", _same_model),
    ("one engine, tp over all devices", _one_engine),
    ("a replica a device", _one_device),
)


def _workload(one: Outcome) -> ServedWorkload:
    return ServedWorkload(
        workload_id=one.published.workload.id,
        adopted=tuple(layout.text for layout in sorted(one.published.layouts)),
        proposals=tuple(layout.text for layout, _ in one.ranked[:PROPOSALS]),
        rank=one.place(),
        absent=one.refused,
        plans=one.plans,
        hit_top1=one.hit(1),
        hit_top3=one.hit(PROPOSALS),
        tolerant=one.tolerant(),
    )
