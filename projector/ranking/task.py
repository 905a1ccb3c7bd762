"""What is ranked: a workload with all that bounds its plans, and the columns a projection of some of them gives."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import ProjectionBatch
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
class Task:
    """One search space. current: the plan that runs, where one does."""

    workload: WorkloadSpec
    architecture: ModelArchitecture
    cluster: ClusterSpec
    hardware: HardwareProfile
    constraints: Constraints = field(default_factory=Constraints)
    current: ParallelismPlan | None = None
    slo: Slo = field(default_factory=Slo)
    software: Software = CURRENT

    def space(self, most: int) -> BlockedSpace:
        """Every legal plan, in blocks. Errors as `explore_in_blocks`."""
        return explore_in_blocks(
            self.workload,
            self.architecture,
            self.cluster,
            self.hardware,
            self.constraints,
            self.current,
            most=most,
        )

    def project(self, plans: PlanBatch, cluster: ClusterSpec) -> ProjectionBatch:
        """The plans on a part of the cluster. Errors as `project_many`."""
        return project_many(plans, self.workload, self.architecture, cluster, self.hardware, software=self.software)


def good(objective: Objective, projected: ProjectionBatch) -> NDArray[np.float64]:
    """The objective as a figure of which more is better, shape [n]; the ratio of two is a gain, 0: not defined."""
    values = projected.objective(objective.name)
    if objective.direction == "maximise":
        return np.where(np.isfinite(values), values, 0.0)
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
