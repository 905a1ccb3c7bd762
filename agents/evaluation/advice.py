"""Workloads asked of the service, each blind to its own group: the weights of practice and their calibration come from
other groups, and history hides the group."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.accuracy import Say
from agents.evaluation.advice_parts import BlindKnowledge, PartialAdvisor, Past, Setup
from agents.evaluation.advice_request import Choice, choice_of, layouts_of, own_group, request_of
from agents.evaluation.baselines import Published, baselines
from agents.evaluation.hits import hits, measured_layouts
from agents.evaluation.ranking import RankedLayout, Ranking, is_legal
from agents.evaluation.refusal import Refused, or_refused
from agents.evaluation.rows import Degrees, MeasuredRow, Unreadable
from agents.evaluation.topk import FrameworkInput, Outcome, problem_of
from agents.evaluation.workloads import Workload, adopted_layouts
from agents.findings import PlanResult, Proposal
from agents.planning.graph import run_plan
from agents.planning.state import Knowledge
from agents.practice.choice import shares
from agents.practice.model import PracticeModel
from agents.practice.practice import SLOWER_FRAC

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Material:
    """What workloads are asked with. choices: by workload id; models: by the group they have not seen."""

    rows: Mapping[str, MeasuredRow]
    framework: FrameworkInput
    knowledge: Knowledge
    past: Past
    choices: Mapping[str, Choice]
    models: Mapping[str, PracticeModel]


@dataclass(frozen=True)
class Advised:
    """One workload with what the service answered. outcome: as `eval topk` counts it.

    chances: stated chance of each proposal and whether its layout was adopted, where chances are calibrated.
    projected_loss: how much slower the first proposal is projected than the fastest layout.
    measured_regret: how much slower it was measured than the best measured layout, where sweeps measured both.
    """

    outcome: Outcome
    chances: tuple[tuple[float, bool], ...] = ()
    projected_loss: float | None = None
    measured_regret: float | None = None


def published_of(
    workloads: Iterable[Workload | Unreadable], rows: Mapping[str, MeasuredRow], phases: Sequence[str]
) -> tuple[Published, ...]:
    """Every eligible workload of the phases, each once."""
    found: dict[str, Published] = {}
    for one in workloads:
        if isinstance(one, Workload) and one.eligible and one.phase in phases:
            found.setdefault(one.id, Published(one, adopted_layouts(one, rows)))
    return tuple(found.values())


def choices_of(
    published: Sequence[Published], rows: Mapping[str, MeasuredRow], framework: FrameworkInput, past: Past, say: Say
) -> dict[str, Choice]:
    """By workload id, those whose space has layouts that fit."""
    found: dict[str, Choice] = {}
    for count, one in enumerate(published, start=1):
        given = or_refused(lambda one=one: choice_of(one, rows, framework, past))  # type: ignore[misc]
        if isinstance(given, Choice):
            found[one.workload.id] = given
        if count % 50 == 0 or count == len(published):
            say(f"{count} of {len(published)} spaces projected")
    return found


def advise(
    published: Sequence[Published], beside: Sequence[Published], given: Material, setup: Setup, say: Say
) -> list[Advised]:
    """Every workload asked of the service. beside: workloads the baselines may copy from."""
    found = []
    for count, one in enumerate(published, start=1):
        answer = or_refused(lambda one=one: _advised(one, beside, given, setup))  # type: ignore[misc]
        if isinstance(answer, Refused):
            copied = baselines(one.workload, beside)
            answer = Advised(Outcome(one, copied, None, refused=str(answer)))
        found.append(answer)
        if count % 50 == 0 or count == len(published):
            say(f"{count} of {len(published)} workloads advised")
    return found


def place_order(choice: Choice, model: PracticeModel, setup: Setup) -> Rows:
    """Rows of the choice's table in the order of the advice, without the service around it."""
    table = choice.table
    if not setup.has("practice"):
        return np.argsort(-table.value, kind="stable")
    with_past = setup.has("history") and choice.with_past[:, choice.alone.shape[1] :].any()
    weights = model.of(framework_named=choice.framework_named, with_past=bool(with_past))
    share = shares(choice.figures(with_past=bool(with_past)), weights.column)
    near = table.good >= table.good.max() / (1 + SLOWER_FRAC)
    return np.lexsort((-table.value, -share, ~near)) if setup.has("projector") else np.argsort(-share, kind="stable")


def _advised(one: Published, beside: Sequence[Published], given: Material, setup: Setup) -> Advised:
    """Refused where the service refuses, or nothing fits."""
    choice = given.choices.get(one.workload.id)
    request = request_of(one, given.rows, given.framework)
    if choice is None:
        raise Refused("no legal plan fits")
    model = given.models[own_group(one)]
    order = place_order(choice, model, setup)
    if not setup.has("projector"):
        # the service without projections has nothing to gate or compare: the order of practice stands for it
        return _outcome(one, beside, given, _ranked(choice, order), ())
    result = run_plan(
        request,
        None,
        knowledge=BlindKnowledge(given.knowledge, given.past, own_group(one), setup),
        advisor=PartialAdvisor(setup),
        practice=model,
    )
    if not result.proposals:
        raise Refused(result.fewer_because or "nothing was proposed")
    rows = {layout: row for row, layout in enumerate(layouts_of(choice.table))}
    first = [_of_proposal(proposal, choice, rows) for proposal in result.proposals]
    seen = {entry.layout for entry in first}
    ranked = [*first, *(entry for entry in _ranked(choice, order) if entry.layout not in seen)]
    return _outcome(one, beside, given, ranked, _chances(result, one))


def _outcome(
    one: Published,
    beside: Sequence[Published],
    given: Material,
    ranked: Sequence[RankedLayout],
    chances: tuple[tuple[float, bool], ...],
) -> Advised:
    choice, problem = given.choices[one.workload.id], problem_of(one.workload, given.rows)
    too_large = frozenset(one.layouts) - {entry.layout for entry in ranked}
    ranking = Ranking(tuple(ranked), too_large, choice.plans)
    proposals = tuple(ranked[:3])
    outcome = Outcome(
        published=one,
        baselines=baselines(one.workload, beside),
        hits=hits(one.workload, given.rows, ranking),
        proposals=proposals,
        legal=tuple(is_legal(entry.plan, problem) for entry in proposals),
        layouts=len(choice.table),
        plans=choice.plans,
    )
    return Advised(
        outcome, chances, float(choice.table.value.max()) / proposals[0].value - 1, _regret(one, given, proposals[0])
    )


def _regret(one: Published, given: Material, first: RankedLayout) -> float | None:
    measured = measured_layouts(one.workload, given.rows)
    if len(measured) < 2 or first.layout not in measured:
        return None
    return measured[first.layout] / min(measured.values()) - 1


def _of_proposal(proposal: Proposal, choice: Choice, rows: Mapping[Degrees, int]) -> RankedLayout:
    plan = proposal.plan
    layout = (plan.tp, plan.pp, plan.cp, plan.ep)
    return RankedLayout(layout, plan, proposal.projections[0].step_time_s, float(choice.table.value[rows[layout]]))


def _ranked(choice: Choice, order: Rows) -> list[RankedLayout]:
    """Rows of the table as ranked layouts; a step takes what tokens a second make of it."""
    table, layouts = choice.table, layouts_of(choice.table)
    tokens = (table.setting.workload.seq_len or 0) * (table.setting.workload.global_batch or 0)
    chips = table.setting.devices / table.setting.hardware.devices_per_chip
    return [
        RankedLayout(layouts[row], table.plans[row], tokens / chips / float(table.good[row]), float(table.value[row]))
        for row in order.tolist()
    ]


def _chances(result: PlanResult, one: Published) -> tuple[tuple[float, bool], ...]:
    return tuple(
        (
            proposal.confidence,
            (proposal.plan.tp, proposal.plan.pp, proposal.plan.cp, proposal.plan.ep) in one.layouts,
        )
        for proposal in result.proposals
        if proposal.confidence_calibrated
    )
