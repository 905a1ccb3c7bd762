"""What is ranked: a workload with all that bounds its plans, and the columns a projection of some of them gives."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from projector.anchor.serving_point import MeasuredServing, ServingPoint, anchored_serving, serving_point
from projector.batch_projection import ProjectionBatch
from projector.errors import InvalidDescription
from projector.project import project_many
from projector.search_space import BlockedSpace, explore_in_blocks
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Objective, Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import CURRENT, Software
from projector.specs.workload import WorkloadSpec


@dataclass(frozen=True)
class Stack:
    """A training stack that bounds a space: what it fixes, which plans it runs and as what, and its kernels."""

    name: str
    limits: Constraints
    runs: Callable[[PlanBatch], PlanBatch]
    software: Software


@dataclass(frozen=True)
class Task:
    """One search space. current: the plan that runs, where one does; stack: what runs it, None for any current one;
    point: what was measured of a serving plan, which corrects the projections of its neighbours."""

    workload: WorkloadSpec
    architecture: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile
    constraints: Constraints = field(default_factory=Constraints)
    current: ParallelismPlan | None = None
    slo: Slo = field(default_factory=Slo)
    stack: Stack | None = None
    point: ServingPoint | None = None

    def space(self, most: int) -> BlockedSpace:
        """Every legal plan that the stack runs, in blocks.

        InvalidDescription as `explore_in_blocks`, and where a constraint fixes what the stack fixes to another value.
        """
        space = explore_in_blocks(
            self.workload,
            self.architecture,
            self.cluster,
            self.hardware,
            self.constraints if self.stack is None else within(self.constraints, self.stack),
            self.current,
            most=most,
        )
        if self.stack is None:
            return space
        kept = (self.stack.runs(block) for block in space.blocks)
        return replace(space, blocks=(block for block in kept if len(block)))

    def project(self, plans: PlanBatch, cluster: ClusterSpec) -> ProjectionBatch:
        """The plans on a part of the cluster; serving plans with all seats taken where no load is stated.

        Errors as `project_many`.
        """
        found = project_many(
            plans,
            self.workload,
            self.architecture,
            cluster,
            self.hardware,
            software=CURRENT if self.stack is None else self.stack.software,
            all_seats_taken=True,
        )
        return found if self.point is None else anchored_serving(found, self.point, self.workload)

    def anchored(self, measured: MeasuredServing) -> "Task":
        """With what was measured of the plan that runs, under this workload. InvalidDescription as `serving_point`, and
        without such a plan or in training, where a trace is what corrects."""
        if self.workload.phase != "serving":
            raise InvalidDescription("measured is of a serving plan", hint="give a trace of a training run")
        if self.current is None:
            raise InvalidDescription(
                "measured figures of no plan", hint="state current_plan, the plan that was measured"
            )
        now = self.project(PlanBatch.from_plans([self.current]), self.cluster)
        return replace(self, point=serving_point(now, self.workload, measured))


def good(objective: Objective, projected: ProjectionBatch) -> NDArray[np.float64]:
    """The objective as a figure of which more is better, shape [n]; the ratio of two is a gain, 0: not defined."""
    values = projected.objective(objective.name)
    if objective.direction == "maximise":
        return np.where(np.isfinite(values), values, 0.0)
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def within(constraints: Constraints, stack: Stack) -> Constraints:
    """The constraints with what the stack fixes. InvalidDescription where both fix a field, to different values."""
    for name, value in stack.limits.fixed.items():
        asked = constraints.fixed.get(name, value)
        if asked != value:
            raise InvalidDescription(f"constraints.fixed asks for {name} {asked}, and {stack.name} has {value} only")
    return constraints.model_copy(update={"fixed": stack.limits.fixed | constraints.fixed})
