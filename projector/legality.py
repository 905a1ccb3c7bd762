"""Whether a plan can exist: every rule it breaks, as values with the limit and the overshoot.

One implementation over columns: a single plan is a batch of one. Memory is a gate too and needs a projection:
`memory_rejection`. What is merely slow is legal.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import Projection
from projector.errors import InvalidDescription
from projector.rules import RULES, Rule, Setting
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Rejection
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec
from projector.units import bytes_to_gb


def check(
    plan: ParallelismPlan,
    workload: WorkloadSpec,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
) -> tuple[Rejection, ...]:
    """Every rule the plan breaks, in the order of RULES; () when it is legal.

    With an unknown model (None) its sizes bind nothing; with an unknown chip nothing about chips beyond their count.
    InvalidDescription when plan and workload are of different phases.
    """
    plans = PlanBatch.from_plans([plan])
    setting = Setting(workload, architecture, cluster, hardware)
    _require_phase(plans, workload)
    rejections = []
    for rule in RULES:
        found = rule.find(plans, setting) if rule.applies(setting) else None
        if found is not None and found.broken[0]:
            rejections.append(rule.reject(plan, setting, found, 0))
    return tuple(rejections)


def legal_mask(
    batch: PlanBatch,
    workload: WorkloadSpec,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    *,
    rules: Sequence[Rule] = RULES,
) -> NDArray[np.bool_]:
    """Shape [n]: True where a plan breaks none of the rules, so where `check` would return (). Errors as there."""
    setting = Setting(workload, architecture, cluster, hardware)
    _require_phase(batch, workload)
    legal = np.ones(len(batch), dtype=bool)
    for rule in rules:
        found = rule.find(batch, setting) if rule.applies(setting) else None
        if found is not None:
            legal &= ~found.broken
    return legal


def memory_rejection(projection: Projection) -> Rejection | None:
    """The refusal of a plan whose projected peak exceeds the chip; None when it fits or memory is unknown."""
    memory = projection.memory
    if memory is None or memory.fit == "fits":
        return None
    return Rejection(
        rule="memory",
        quantity="peak memory a chip",
        value=bytes_to_gb(memory.total_bytes),
        limit=bytes_to_gb(memory.capacity_bytes),
        unit="GB",
    )


def _require_phase(plans: PlanBatch, workload: WorkloadSpec) -> None:
    foreign = set(np.unique(plans.phase).tolist()) - {workload.phase}
    if foreign:
        raise InvalidDescription(f"a {foreign.pop()} plan for a {workload.phase} workload")
