"""From the pool of a ranked space to what is told of it: the few plans of an answer, projected once more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import ProjectionBatch
from projector.breakdown import Projection
from projector.errors import InvalidDescription
from projector.ranking.pareto import pareto_rows, thinned
from projector.ranking.pool import Pool
from projector.ranking.records import (
    Margin,
    ObjectiveValue,
    ParetoPlan,
    RankedPlan,
    RelievingPlan,
    UnknownFigure,
)
from projector.ranking.task import Task
from projector.ranking.ties import TIE_FRAC, shared_ranks
from projector.specs.cluster import ClusterSpec
from projector.specs.objective import OBJECTIVES, Objective
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.units import bytes_to_gb


@dataclass(frozen=True)
class Chosen:
    """Rows of the pool that an answer tells, each with its rank (1 where it has none)."""

    rows: NDArray[np.intp]
    ranks: NDArray[np.int64]

    def first(self, most: int) -> "Chosen":
        """The first of them."""
        return Chosen(self.rows[:most], self.ranks[:most])


@dataclass(frozen=True)
class Told:
    """The plans of an answer, projected in one batch. known: objectives that have a figure here."""

    task: Task
    pool: Pool
    rows: NDArray[np.intp]
    projected: ProjectionBatch
    known: tuple[Objective, ...]
    unknown: tuple[UnknownFigure, ...]
    now: float | None

    @classmethod
    def of(cls, task: Task, cluster: ClusterSpec, now: float | None, pool: Pool, parts: Sequence[Chosen]) -> "Told":
        """Every row of the parts once."""
        rows = np.unique(np.concatenate([part.rows for part in parts]))
        projected = task.project(pool.plans.take(rows), cluster)
        of_phase = [one for one in OBJECTIVES if task.workload.phase in one.phases]
        reasons = {one.name: _refusal(one, projected) for one in of_phase}
        return cls(
            task=task,
            pool=pool,
            rows=rows,
            projected=projected,
            known=tuple(one for one in of_phase if reasons[one.name] is None),
            unknown=tuple(
                UnknownFigure(objective=name, reason=reason) for name, reason in reasons.items() if reason is not None
            ),
            now=now,
        )

    def projection(self, row: int) -> Projection:
        """The projection of a row of the pool."""
        return self.projected[self._place(row)]

    def figures(self, row: int, names: Sequence[str] | None = None) -> tuple[ObjectiveValue, ...]:
        """Every known objective of a row, or the named ones; those it has no figure of are left out."""
        place = self._place(row)
        values = ((one, float(self.projected.objective(one.name)[place])) for one in self.known)
        return tuple(
            ObjectiveValue(objective=one.name, value=value, unit=one.unit)
            for one, value in values
            if np.isfinite(value) and (names is None or one.name in names)
        )

    def margins(self, row: int) -> tuple[Margin, ...]:
        """What a row keeps of the memory and of every latency budget a projection answers, the tightest first."""
        place = self._place(row)
        memory = self.projected.memory
        limits = [
            ("memory of a device", bytes_to_gb(memory.total_bytes[place]), bytes_to_gb(memory.capacity_bytes), "GB")
        ]
        limits += [
            (budget.quantity, float(column[place]), budget.limit_ms, "ms")
            for budget, column in self.projected.budgets(self.task.slo)
        ]
        found = [
            Margin(quantity=quantity, value=value, limit=limit, unit=unit, margin_frac=max(1 - value / limit, 0.0))
            for quantity, value, limit, unit in limits
        ]
        return tuple(sorted(found, key=lambda one: one.margin_frac))

    def gain(self, row: int) -> float | None:
        """The gain of a row against the current plan, as a ratio less one."""
        return None if self.now is None or self.now <= 0 else float(self.pool.good[row]) / self.now - 1

    def assumptions(self) -> tuple[str, ...]:
        """What cost and energy rest on, where they are given."""
        names = {one.name for one in self.known}
        found = []
        price, power = self.task.hardware.price_usd_per_chip_hour, self.projected.power
        if "cost_per_million_tokens" in names and price is not None:
            recalled = ", recalled and not re-read" if price.unverified else ""
            found.append(f"an hour of a {self.task.hardware.id} costs {price.value:g} USD{recalled}: {price.source}")
        if "energy_per_token_j" in names and power is not None:
            found.append(power.basis)
        if "avg_power_w" in names and power is not None:
            found.append(power.serving_basis)
        return tuple(found)

    def _place(self, row: int) -> int:
        return int(np.searchsorted(self.rows, row))


def best_layouts(pool: Pool) -> Chosen:
    """Every layout by its best plan, the best layout first."""
    best = _firsts(pool.layout, np.lexsort((-pool.good, pool.layout)))
    return _ordered(best, shared_ranks(pool.good[best]), pool)


def relieving_layouts(pool: Pool) -> Chosen:
    """Layouts by what they save of the blamed term; each by the best of its plans that save most, within the tie."""
    saving = np.flatnonzero(pool.saved > 0)
    if saving.size == 0:
        return Chosen(saving, np.ones(0, dtype=np.int64))
    layout, saved = pool.layout[saving], pool.saved[saving]
    _, group = np.unique(layout, return_inverse=True)
    most = np.zeros(group.max() + 1)
    np.maximum.at(most, group, saved)
    near = saved * (1 + TIE_FRAC) >= most[group]
    best = saving[_firsts(layout, np.lexsort((-pool.good[saving], ~near, layout)))]
    return _ordered(best, shared_ranks(pool.saved[best]), pool)


def pareto_members(pool: Pool) -> tuple[Chosen, int]:
    """(the Pareto set thinned to one of what lies within the tie in every figure, members of the whole set)."""
    members = pareto_rows(pool.losses)
    rows = members[thinned(pool.losses[members], TIE_FRAC)]
    return Chosen(rows, np.ones(len(rows), dtype=np.int64)), len(members)


def ranked_plans(chosen: Chosen, told: Told) -> tuple[RankedPlan, ...]:
    """The chosen layouts, the first of which is the best of all."""
    good = told.pool.good
    return tuple(
        RankedPlan(
            rank=rank,
            behind_frac=1 - float(good[row] / good[chosen.rows[0]]),
            gain_frac=told.gain(row),
            figures=told.figures(row),
            margins=told.margins(row),
            projection=told.projection(row),
        )
        for row, rank in zip(chosen.rows.tolist(), chosen.ranks.tolist(), strict=True)
    )


def relieving_plans(chosen: Chosen, told: Told) -> tuple[RelievingPlan, ...]:
    """The chosen layouts with what they save."""
    return tuple(
        RelievingPlan(
            rank=rank,
            saved_frac=float(told.pool.saved[row]),
            gain_frac=told.gain(row),
            figures=told.figures(row),
            projection=told.projection(row),
        )
        for row, rank in zip(chosen.rows.tolist(), chosen.ranks.tolist(), strict=True)
    )


def pareto_plans(chosen: Chosen, told: Told, names: Sequence[str]) -> tuple[ParetoPlan, ...]:
    """The chosen members with the figures of the set."""
    return tuple(
        ParetoPlan(
            plan=projection.plan,
            step_time_interval_s=projection.step_time_interval_s,
            figures=told.figures(row, names),
        )
        for row, projection in ((row, told.projection(row)) for row in chosen.rows.tolist())
    )


def nearest_miss(plan: ParallelismPlan, task: Task, cluster: ClusterSpec) -> Projection:
    """The plan with all that refuses it: memory, then latency budgets."""
    projected = task.project(PlanBatch.from_plans([plan]), cluster)
    projection, misses = projected[0], projected.slo_misses(task.slo)[0]
    return projection.model_copy(update={"rejections": (*projection.rejections, *misses)})


def _ordered(rows: NDArray[np.intp], ranks: NDArray[np.int64], pool: Pool) -> Chosen:
    """By rank, then by the objective, then by the order of the search."""
    order = np.lexsort((rows, -pool.good[rows], ranks))
    return Chosen(rows[order], ranks[order])


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
