"""Baseline: the layout of a trace from another machine, scaled to the devices that are planned for.

Data parallelism takes the change first, as only it leaves a rank's work alone; where it is used up, context, pipeline
and tensor parallelism shrink in this order, the axes whose traffic is smallest first.
"""

from math import gcd

from pydantic import ValidationError

from agents.planning.infer_plan import infer_plan
from agents.planning.origins import Origins
from agents.planning.plan_text import plan_text
from agents.planning.resolve_cluster import Placed
from agents.request import PlanRequest
from projector.legality import check
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec
from traces.summary_types import TraceSummary

SHRINK = ("dp", "cp", "pp", "tp")


def baseline_of(
    request: PlanRequest,
    summary: TraceSummary | None,
    architecture: ModelArchitecture | None,
    placed: Placed,
    workload: WorkloadSpec,
    origins: Origins,
    *,
    experts: bool,
) -> ParallelismPlan | None:
    """The traced layout on the devices that are planned for; None where it is stated, not known or does not scale."""
    world = summary.implied.world_size if summary is not None else None
    if summary is None or world is None or not placed.moved or placed.capped or request.current_plan is not None:
        return None
    traced = infer_plan(summary, world.value, workload.phase, experts=experts)
    if traced.plan is None or traced.assumed:
        return None
    scaled = scaled_to(traced.plan, placed.devices, workload.global_batch)
    if scaled is None or check(scaled, workload, architecture, placed.cluster, placed.hardware):
        origins.warnings.append(
            f"the traced layout ({plan_text(traced.plan)}) does not scale to {placed.devices} devices: proposals are "
            "compared with a plain layout instead"
        )
        return None
    origins.assumed(
        "baseline",
        plan_text(scaled),
        f"the trace shows {plan_text(traced.plan)} on {world.value} devices, which is scaled to {placed.devices}",
        "changes and gains are told against it; nothing of its time was measured",
    )
    return scaled


def scaled_to(plan: ParallelismPlan, devices: int, global_batch: int | None) -> ParallelismPlan | None:
    """The plan on `devices`; None where its degrees cannot make that number, or the batch does not divide."""
    if plan.prefill_replicas or (devices % plan.devices and plan.devices % devices):
        return None
    values = plan.model_dump()
    if devices >= plan.devices:
        values["dp"] *= devices // plan.devices
    left = max(plan.devices // devices, 1)
    for axis in SHRINK:
        taken = gcd(values[axis], left)
        values[axis] //= taken
        left //= taken
    full = 1 < plan.fsdp == plan.dp
    values["fsdp"] = values["dp"] if full else gcd(plan.fsdp, values["dp"])
    values["zero_stage"] = 0 if full and values["dp"] == 1 else plan.zero_stage
    values["etp"] = values["tp"] if plan.etp == plan.tp else plan.etp
    if plan.phase == "training" and global_batch is not None:
        values["grad_accum"], rest = divmod(global_batch, values["dp"] * values["micro_batch"])
        if rest or values["grad_accum"] == 0:
            return None
    try:
        return ParallelismPlan.model_validate(values) if left == 1 else None
    except ValidationError:
        return None
