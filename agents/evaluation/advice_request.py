"""The request a published workload makes of the service, and the layouts its space holds: nothing of the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.evaluation.advice_parts import Past, hidden
from agents.evaluation.baselines import Published
from agents.evaluation.refusal import Refused
from agents.evaluation.rows import Degrees, MeasuredRow
from agents.evaluation.topk import FrameworkInput, problem_of
from agents.frameworks import frameworks_of
from agents.planning.analyzer import undiagnosed
from agents.planning.history import past_question
from agents.planning.job import Job
from agents.planning.practice import job_table
from agents.planning.resolve import resolve
from agents.planning.scores import feasible, scored_space
from agents.practice.choice import Column
from agents.practice.practice import figures_of
from agents.practice.table import LayoutTable
from agents.practice.votes import NO_VOTES, votes_of
from agents.request import PlanRequest
from knowledge_base.past import group_of
from projector.errors import ShardwiseError


@dataclass(frozen=True)
class Choice:
    """A workload with the layouts that fit it and which of them was adopted, as the fit of practice takes it.

    sources: of the adopted rows. alone, with_past: figures of every layout [n, features]; those with past are blind to
    the workload's own group. plans: how many were projected.
    """

    published: Published
    sources: frozenset[str]
    table: LayoutTable
    alone: Column
    with_past: Column
    adopted: Column
    plans: int
    framework_named: bool

    @property
    def group(self) -> str:
        """(family | chip): what is held out together."""
        return own_group(self.published)

    def figures(self, *, with_past: bool) -> Column:
        """Those a set of weights is fitted on."""
        return self.with_past if with_past else self.alone


def own_group(published: Published) -> str:
    """The group of a workload, as history spells groups."""
    return group_of(published.workload.family, published.workload.chip)


def request_of(published: Published, rows: Mapping[str, MeasuredRow], framework: FrameworkInput) -> PlanRequest:
    """What the service is asked. Refused where a workload does not say enough.

    framework named: told where all rows of the workload are of one that is known.
    """
    problem = problem_of(published.workload, rows)
    stacks = frameworks_of(published.workload.frameworks) if framework == "named" else ()
    return PlanRequest(
        workload=problem.workload.model_copy(update={"model": problem.architecture.name}),
        architecture=problem.architecture,
        cluster=problem.cluster,
        framework=stacks[0].name if len(stacks) == 1 else None,
        hardware=(problem.hardware.id,),
    )


def choice_of(published: Published, rows: Mapping[str, MeasuredRow], framework: FrameworkInput, past: Past) -> Choice:
    """The layouts of a workload's space. Refused where none fits or the service refuses the request."""
    try:
        job = resolve(request_of(published, rows, framework), None)
        table, plans = table_of(job)
    except ShardwiseError as error:
        raise Refused(str(error).splitlines()[0]) from error
    question = past_question(job, undiagnosed("nothing was looked at"))
    votes = votes_of(hidden(past, question, own_group(published)), table.setting, job.framework)
    alone = figures_of(table, NO_VOTES)
    return Choice(
        published=published,
        sources=frozenset(rows[name].source for name in published.workload.expert_rows if name in rows),
        table=table,
        alone=alone,
        with_past=figures_of(table, votes) if len(votes) else np.pad(alone, ((0, 0), (0, 4))),
        adopted=np.array([float(one in published.layouts) for one in layouts_of(table)]),
        plans=plans,
        framework_named=job.framework is not None,
    )


def table_of(job: Job) -> tuple[LayoutTable, int]:
    """(the layouts of a job as the service ranks them, plans projected). Refused where there is none."""
    space, scores = scored_space(job)
    if scores is None:
        raise Refused("no legal plan in the search space")
    table = job_table(job, scores, feasible(scores, job))
    if table is None:
        raise Refused("no legal plan fits")
    return table, len(space.plans)


def layouts_of(table: LayoutTable) -> Sequence[Degrees]:
    """(tp, pp, cp, ep) of each row."""
    return [(tp, pp, cp, ep) for tp, pp, cp, ep in table.degrees.tolist()]
