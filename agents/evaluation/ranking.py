"""The projector alone: every legal plan of a workload's search space by projected throughput, as layouts in order.

The planner is told model, hardware, precision, sequence length, global batch and phase, and the framework where it is
named. What it does not know it searches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.refusal import Refused
from agents.evaluation.rows import DEGREES, Degrees
from agents.frameworks import UNKNOWN, Framework
from projector.batch_projection import ProjectionBatch
from projector.cost.memory import chance_to_fit
from projector.errors import ShardwiseError
from projector.legality import check
from projector.project import project_many
from projector.search_space import explore
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import DEFAULT_OBJECTIVE
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

PROPOSALS = 3
OBJECTIVE = DEFAULT_OBJECTIVE["training"]


@dataclass(frozen=True)
class Problem:
    """What the planner is told."""

    workload: WorkloadSpec
    architecture: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile


@dataclass(frozen=True)
class RankedLayout:
    """A layout with its best plan that fits. value: of the objective times the chance to fit, more is better."""

    layout: Degrees
    plan: ParallelismPlan
    step_time_s: float
    value: float


@dataclass(frozen=True)
class Ranking:
    """Layouts that fit, best first; those that only have plans that do not fit; how many plans were scored."""

    layouts: tuple[RankedLayout, ...]
    too_large: frozenset[Degrees]
    plans: int

    def place(self, layouts: Sequence[Degrees] | frozenset[Degrees]) -> int | None:
        """The best rank, from 1, of any of the layouts; None where none of them fits."""
        return next((place for place, one in enumerate(self.layouts, start=1) if one.layout in layouts), None)

    def within(self, frac: float) -> int:
        """How many layouts come within a fraction of the best."""
        best = max(one.value for one in self.layouts)
        return sum(one.value * (1 + frac) >= best for one in self.layouts)


def rank_layouts(problem: Problem, frameworks: Sequence[Framework]) -> Ranking:
    """Rank the space of a problem by expected throughput.

    frameworks: those that may run it, none for all that the projector knows. Equal values keep the order of the search,
    simplest first. Refused where the projector refuses the problem, or where no plan is legal.
    """
    given = (problem.workload, problem.architecture, problem.cluster, problem.hardware)
    try:
        projected = [one for framework in frameworks or (UNKNOWN,) if (one := _projected(given, framework)) is not None]
    except ShardwiseError as error:
        raise Refused(str(error)) from error
    if not projected:
        raise Refused("no legal plan in the search space")
    return _ranking(
        PlanBatch.concat([one.batch for one in projected]),
        np.concatenate([one.objective(OBJECTIVE) * chance_to_fit(one.memory, problem.hardware) for one in projected]),
        np.concatenate([one.step_time_s for one in projected]),
        np.concatenate([one.fits for one in projected]),
    )


Given = tuple[WorkloadSpec, ModelArchitecture, ClusterSpec, HardwareProfile]


def _projected(given: Given, framework: Framework) -> ProjectionBatch | None:
    """What the stack can run; None where that is nothing. One whose recipes do not accumulate does so to fit."""
    plans = explore(*given, framework.limits(), None).plans
    plans = framework.runs(plans.take(framework.allows(plans)))
    found = project_many(plans, *given, software=framework.software) if len(plans) else None
    if framework.accumulates or (found is not None and found.fits.any()):
        return found
    return _projected(given, replace(framework, accumulates=True))


def is_legal(plan: ParallelismPlan, problem: Problem) -> bool:
    """Whether a plan breaks no rule, looked at on its own and not as one of a search."""
    return not check(plan, problem.workload, problem.architecture, problem.cluster, problem.hardware)


def _ranking(
    plans: PlanBatch, value: NDArray[np.float64], step_time_s: NDArray[np.float64], fits: NDArray[np.bool_]
) -> Ranking:
    layouts = np.stack([plans.columns[degree] for degree in DEGREES], axis=1)
    distinct, group = np.unique(layouts, axis=0, return_inverse=True)
    group = group.ravel()
    rows = np.flatnonzero(fits)
    # the first row of each group in this order is its best plan, ties going to the earlier row
    order = rows[np.lexsort((rows, -value[rows], group[rows]))]
    firsts = order[np.unique(group[order], return_index=True)[1]]
    best = firsts[np.lexsort((firsts, -value[firsts]))]
    fitting = set(group[best].tolist())
    return Ranking(
        layouts=tuple(
            RankedLayout(_degrees(layouts[row]), plans[row], float(step_time_s[row]), float(value[row]))
            for row in best.tolist()
        ),
        too_large=frozenset(_degrees(row) for place, row in enumerate(distinct) if place not in fitting),
        plans=len(plans),
    )


def _degrees(row: NDArray[Any]) -> Degrees:
    tp, pp, cp, ep = (int(degree) for degree in row)
    return (tp, pp, cp, ep)
