"""From the pool of a ranked space to what is told of it: the few plans of an answer are projected once more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import ProjectionBatch
from projector.breakdown import Projection
from projector.cost.energy import ChipPower
from projector.errors import InvalidDescription
from projector.ranking.pareto import pareto_rows, thinned
from projector.ranking.pool import Pool
from projector.ranking.records import (
    ObjectiveValue,
    ParetoPlan,
    ParetoSet,
    RankedPlan,
    ReliefRanking,
    RelievingPlan,
    UnknownFigure,
)
from projector.ranking.relief import Relief
from projector.ranking.task import Task
from projector.ranking.ties import TIE_FRAC, shared_ranks
from projector.specs.cluster import ClusterSpec
from projector.specs.objective import OBJECTIVES, Objective
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch


@dataclass(frozen=True)
class Frame:
    """What the entries of an answer are told beside. known: objectives that have a figure here; now: `Wanted.now`."""

    task: Task
    cluster: ClusterSpec
    now: float | None
    known: tuple[Objective, ...]
    unknown: tuple[UnknownFigure, ...]

    @classmethod
    def of(cls, task: Task, cluster: ClusterSpec, now: float | None, pool: Pool | None) -> "Frame":
        """Which objectives have a figure is read off one plan of the pool; none where it is empty."""
        of_phase = [one for one in OBJECTIVES if task.workload.phase in one.phases]
        if pool is None:
            return cls(task, cluster, now, (), ())
        projected = task.project(pool.plans.take(np.arange(1)), cluster)
        reasons = {one.name: _refusal(one, projected) for one in of_phase}
        return cls(
            task=task,
            cluster=cluster,
            now=now,
            known=tuple(one for one in of_phase if reasons[one.name] is None),
            unknown=tuple(
                UnknownFigure(objective=name, reason=reason) for name, reason in reasons.items() if reason is not None
            ),
        )

    def project(self, plans: PlanBatch) -> ProjectionBatch:
        """Plans of the space."""
        return self.task.project(plans, self.cluster)

    def figures(self, projected: ProjectionBatch) -> list[tuple[ObjectiveValue, ...]]:
        """Every known objective of every plan; those a plan has no figure of are left out."""
        columns = [(one, projected.objective(one.name)) for one in self.known]
        return [
            tuple(
                ObjectiveValue(objective=one.name, value=float(column[row]), unit=one.unit)
                for one, column in columns
                if np.isfinite(column[row])
            )
            for row in range(len(projected))
        ]

    def gain(self, good: float) -> float | None:
        """The gain against the current plan, as a ratio less one."""
        return None if self.now is None or self.now <= 0 else good / self.now - 1

    def assumptions(self) -> tuple[str, ...]:
        """What cost and energy rest on, where they are given."""
        names = {one.name for one in self.known}
        found = []
        price, power = self.task.hardware.price_usd_per_chip_hour, ChipPower.of(self.task.hardware)
        if "cost_per_million_tokens" in names and price is not None:
            recalled = ", recalled and not re-read" if price.unverified else ""
            found.append(f"an hour of a {self.task.hardware.id} costs {price.value:g} USD{recalled}: {price.source}")
        if "energy_per_token_j" in names and power is not None:
            found.append(power.basis)
        return tuple(found)


def ranked_plans(pool: Pool | None, frame: Frame, top: int) -> tuple[tuple[RankedPlan, ...], int, int]:
    """(the best layouts by their best plan, layouts that share the first rank, layouts in all)."""
    if pool is None:
        return (), 0, 0
    best = _firsts(pool.layout, np.lexsort((-pool.good, pool.layout)))
    ranks = shared_ranks(pool.good[best])
    order = np.lexsort((best, -pool.good[best]))[:top]
    rows = best[order]
    projected = frame.project(pool.plans.take(rows))
    figures, leader = frame.figures(projected), float(pool.good[rows[0]])
    plans = tuple(
        RankedPlan(
            rank=int(ranks[place]),
            behind_frac=leader / float(pool.good[row]) - 1,
            gain_frac=frame.gain(float(pool.good[row])),
            figures=figures[number],
            projection=projected[number],
        )
        for number, (place, row) in enumerate(zip(order.tolist(), rows.tolist(), strict=True))
    )
    return plans, int((ranks == 1).sum()), len(best)


def pareto_set(pool: Pool | None, frame: Frame, objectives: Sequence[Objective]) -> ParetoSet:
    """The Pareto set of the pool, thinned to one of what lies within the tie in every figure."""
    names = tuple(one.name for one in objectives)
    if pool is None:
        return ParetoSet(objectives=names, members_count=0, plans=())
    members = pareto_rows(pool.losses)
    rows = members[thinned(pool.losses[members], TIE_FRAC)]
    projected = frame.project(pool.plans.take(rows))
    plans = (
        ParetoPlan(
            plan=projected.batch[number],
            step_time_interval_s=projected.interval.around(float(projected.step_time_s[number])),
            figures=tuple(figure for figure in figures if figure.objective in names),
        )
        for number, figures in enumerate(frame.figures(projected))
    )
    return ParetoSet(objectives=names, members_count=len(members), plans=tuple(plans))


def relief_ranking(pool: Pool | None, frame: Frame, relief: Relief, top: int) -> ReliefRanking:
    """Layouts by what they save of the blamed term; each by the best of its plans that save most, within the tie."""
    if pool is None or not (pool.saved > 0).any():
        return ReliefRanking(cause=relief.cause, share_frac=relief.share, plans=())
    saving = np.flatnonzero(pool.saved > 0)
    layout, saved = pool.layout[saving], pool.saved[saving]
    _, group = np.unique(layout, return_inverse=True)
    most = np.zeros(group.max() + 1)
    np.maximum.at(most, group, saved)
    near = saved * (1 + TIE_FRAC) >= most[group]
    best = saving[_firsts(layout, np.lexsort((-pool.good[saving], ~near, layout)))]
    ranks = shared_ranks(pool.saved[best])
    order = np.lexsort((best, -pool.good[best], ranks))[:top]
    rows = best[order]
    projected = frame.project(pool.plans.take(rows))
    figures = frame.figures(projected)
    plans = (
        RelievingPlan(
            rank=int(ranks[place]),
            saved_frac=float(pool.saved[row]),
            gain_frac=frame.gain(float(pool.good[row])),
            figures=figures[number],
            projection=projected[number],
        )
        for number, (place, row) in enumerate(zip(order.tolist(), rows.tolist(), strict=True))
    )
    return ReliefRanking(cause=relief.cause, share_frac=relief.share, plans=tuple(plans))


def nearest_miss(plan: ParallelismPlan, frame: Frame) -> Projection:
    """The plan with all that refuses it: memory, then latency budgets."""
    projected = frame.project(PlanBatch.from_plans([plan]))
    projection, misses = projected[0], projected.slo_misses(frame.task.slo)[0]
    return projection.model_copy(update={"rejections": (*projection.rejections, *misses)})


def _firsts(group: NDArray[np.int64], order: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first row of each group in an order that keeps groups together."""
    return order[np.unique(group[order], return_index=True)[1]]


def _refusal(objective: Objective, projected: ProjectionBatch) -> str | None:
    """Why the objective has no figure on this chip; None where it has one."""
    try:
        projected.objective(objective.name)
    except InvalidDescription as error:
        return error.message
    return None
