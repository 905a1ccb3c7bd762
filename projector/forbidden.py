"""Forbidden: why constraints leave no legal plan, where there would be one without them.

A value that a constraint fixes is to blame where it leaves no plan by itself; otherwise all of them are together. Which
rule forbids it is read off the plans that would be legal without: with the value put in, the one that breaks the fewest
rules is the nearest, and its refusals are the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from pydantic import ValidationError

from projector.legality import check
from projector.search_space import candidates, usable_cluster
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints, Value
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Rejection
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

MOST_TRIED = 200
MOST_VALUES = 12


@dataclass(frozen=True)
class Forbidden:
    """What is to blame (plan field -> value), the rules that the nearest plan with it breaks, and what would do.

    rejections is () where no rule forbids it and the search has no such plan. allowed: of a single field, the values
    that legal plans have otherwise.
    """

    fixed: Mapping[str, Value]
    rejections: tuple[Rejection, ...]
    allowed: tuple[Value, ...]

    @property
    def text(self) -> str:
        """'constraints.fixed tp 3: attention heads of the model 3 does not divide 64'."""
        what = ", ".join(f"{field} {value}" for field, value in self.fixed.items())
        why = "; ".join(rejection.text for rejection in self.rejections)
        return f"constraints.fixed asks for {what}: {why or 'no plan that is searched has it'}"

    @property
    def hint(self) -> str:
        """The values that would do, where one field alone is to blame."""
        if not self.allowed:
            return "free one of the fixed fields"
        field = next(iter(self.fixed))
        return f"{field} can be {', '.join(map(str, self.allowed))}"


def forbidden(
    workload: WorkloadSpec,
    architecture: ModelArchitecture | None,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
    constraints: Constraints,
    current: ParallelismPlan | None,
) -> Forbidden | None:
    """What forbids every plan; None where nothing is fixed, where plans keep it, or where there are none without it."""
    if not constraints.fixed:
        return None

    def legal(fixed: Mapping[str, Value]) -> PlanBatch:
        changed = constraints.model_copy(update={"fixed": dict(fixed)})
        return candidates(workload, architecture, cluster, hardware, changed, current)

    free = legal({})
    if len(free) == 0 or len(legal(constraints.fixed)) > 0:
        return None
    alone = next(({field: value} for field, value in constraints.fixed.items() if not len(legal({field: value}))), None)
    blamed = alone or dict(constraints.fixed)
    usable = usable_cluster(cluster, constraints, hardware)
    tried = islice(_with(free, blamed), MOST_TRIED)
    broken = [_essential(found) for plan in tried if (found := check(plan, workload, architecture, usable, hardware))]
    allowed: tuple[Value, ...] = ()
    if alone is not None:
        allowed = tuple(np.unique(free.columns[next(iter(alone))]).tolist())[:MOST_VALUES]
    return Forbidden(blamed, min(broken, key=len, default=()), allowed)


def _essential(broken: tuple[Rejection, ...]) -> tuple[Rejection, ...]:
    """Without the device count, which another degree would mend, where another rule is broken too."""
    return tuple(rejection for rejection in broken if rejection.rule != "device_count") or broken


def _with(free: PlanBatch, fixed: Mapping[str, Value]) -> list[ParallelismPlan]:
    """Distinct legal plans with the fixed values put in; data parallelism and accumulation make room where they can."""
    step = max(len(free) // (4 * MOST_TRIED), 1)
    found: list[ParallelismPlan] = []
    for index in range(0, len(free), step):
        plan = free[index]
        values = plan.model_dump() | dict(fixed)
        shape = values["tp"] * values["pp"] * values["cp"]
        if "dp" not in fixed and (plan.devices - plan.prefill_devices) % shape == 0:
            values["dp"] = (plan.devices - plan.prefill_devices) // shape
            values["fsdp"] = values["dp"] if 1 < plan.fsdp == plan.dp else values["fsdp"]
            passed = values["dp"] * values["micro_batch"]
            sequences = plan.dp * plan.micro_batch * plan.grad_accum
            if plan.phase == "training" and sequences % passed == 0:
                values["grad_accum"] = sequences // passed
        try:
            found.append(ParallelismPlan.model_validate(values))
        except ValidationError:
            continue
    return list(dict.fromkeys(found))
