"""`eval advice` of serving: whether the fleets that experts published are among the service's three proposals.

Nothing published orders serving plans: no weights of practice are fitted for them, and history is told, not followed.
"""

from collections.abc import Callable

from agents.evaluation.advice_parts import BlindKnowledge, PartialAdvisor, Past, Setup
from agents.evaluation.refusal import Refused
from agents.evaluation.served_rows import ServedLayout
from agents.evaluation.served_topk import Outcome, Published, layout_of, problem_of, projected_answer
from agents.planning.graph import run_plan
from agents.planning.state import Knowledge
from agents.request import PlanRequest
from knowledge_base.past import group_of
from projector.errors import ShardwiseError

NOTES = (
    "the whole service without a trace: fleets of its proposals, in their order; ranks beyond them are the projector's",
    "told: model, chip, number of chips, precision and the requests; where no load is stated the service assumes one, "
    "and says so",
    "history hides the workload's own (family, chip) group; it is told and orders nothing in serving",
    "a hit: tensor, pipeline, expert and attention data parallelism and replicas all equal those of an expert row",
    "a workload that cannot be planned counts as missed; baselines leave the workload's own (family, chip) group out, "
    "but for those that look at nothing published",
)


def advised_fleets(knowledge: Knowledge, past: Past, setup: Setup) -> Callable[[Published], Outcome]:
    """What answers a published serving workload: the service, with the projector's ranking behind its proposals."""

    def answer(one: Published) -> Outcome:
        projected = projected_answer(one)
        shares = dict(projected.ranked)
        first = dict.fromkeys(_proposed(one, knowledge, past, setup))
        ahead = [(layout, shares[layout]) for layout in first if layout in shares]
        rest = [entry for entry in projected.ranked if entry[0] not in first]
        return Outcome(one, (*ahead, *rest), projected.plans)

    return answer


def _proposed(one: Published, knowledge: Knowledge, past: Past, setup: Setup) -> list[ServedLayout]:
    """The fleets of the proposals. Refused where the service refuses the request or proposes nothing."""
    task = problem_of(one.row)
    group = group_of(one.workload.family, one.workload.chip)
    try:
        result = run_plan(
            PlanRequest(
                workload=task.workload.model_copy(update={"model": task.architecture.name}),
                architecture=task.architecture,
                cluster=task.cluster,
                constraints=task.constraints,
                slo=task.slo,
                hardware=(task.hardware.id,),
            ),
            None,
            knowledge=BlindKnowledge(knowledge, past, group, setup),
            advisor=PartialAdvisor(setup),
        )
    except ShardwiseError as error:
        raise Refused(str(error).splitlines()[0]) from error
    if not result.proposals:
        raise Refused(result.fewer_because or "nothing was proposed")
    return [layout_of(proposal.plan) for proposal in result.proposals]
