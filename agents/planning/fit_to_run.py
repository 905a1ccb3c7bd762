"""A plan that was seen running fits: where the memory model says otherwise, what the trace did not show must differ.

A trace shows neither how weights are stored nor what is recomputed. Assuming defaults for them can make the model
refuse the very plan it watched. Then the first of a fixed list of changes under which the plan fits is assumed, aloud.
"""

from typing import Any

from agents.findings import Assumption
from agents.planning.job import Job
from projector.project import project_many
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch

STORED: tuple[dict[str, Any], ...] = ({"weight_dtype": "fp8"}, {"weight_dtype": "fp4"})
KEPT: tuple[dict[str, Any], ...] = ({"recompute": "selective"}, {"recompute": "full"})


def fitted_to_run(job: Job) -> Job:
    """The job with a current plan that fits, or unchanged when it fits, was stated, or nothing on the list helps."""
    current, hardware = job.current, job.hardware
    if current is None or hardware is None or job.architecture is None or job.measured is None:
        return job
    if job.current_source == "stated":
        return job
    changes = _changes(current, job)
    plans = [current, *(current.model_copy(update=change) for change in changes)]
    projections = project_many(
        PlanBatch.from_plans(plans), job.workload, job.architecture, job.cluster, hardware, software=job.software
    )
    if projections.fits[0] or not projections.fits.any():
        return job
    index = int(projections.fits.argmax())
    words = ", ".join(f"{name} {value}" for name, value in changes[index - 1].items())
    assumption = Assumption(
        field="current_plan",
        value=words,
        reason="the job ran, and with the defaults its plan would not fit the device",
        matters="what is stored narrower or recomputed decides memory and step time; state it in current_plan",
    )
    return job.model_copy(update={"current": plans[index], "assumptions": (*job.assumptions, assumption)})


def _changes(current: ParallelismPlan, job: Job) -> list[dict[str, Any]]:
    """What may have been different, the least first."""
    if job.phase == "serving":
        return list(STORED)
    sharded: dict[str, Any] = {"fsdp": current.dp, "zero_stage": 3}
    changes = [*KEPT]
    if current.dp > 1 and current.fsdp == 1:
        changes += [{"zero_stage": 1}, sharded, *(sharded | change for change in KEPT)]
    return changes
