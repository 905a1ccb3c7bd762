"""How the layout that runs bears on the bottleneck: which axes cause the traffic, keep weights whole, leave no room."""

from agents.findings import Diagnosis, Evidence
from agents.planning.capacity import with_fewer_devices, with_stated_memory
from agents.planning.job import Job
from agents.planning.layout_words import AXES
from agents.planning.mesh_reasons import mesh_reasons
from agents.planning.reference import Reference
from agents.request import PlanRequest
from agents.wording import listed
from projector.specs.bottleneck import Bottleneck
from projector.specs.plan import ParallelismPlan
from projector.units import GIGA
from traces.summary_types import TraceSummary


def with_request(diagnosis: Diagnosis, job: Job, request: PlanRequest, summary: TraceSummary | None) -> Diagnosis:
    """The diagnosis with what the request adds of memory: what it states, and the devices it asks for."""
    observed = request.observed
    if observed is not None:
        limit_gb = observed.memory_limit_gb
        own = job.hardware.hbm_bytes.value / job.hardware.devices_per_chip if job.hardware is not None else None
        diagnosis = with_stated_memory(
            diagnosis,
            out_of_memory=observed.out_of_memory,
            peak_bytes=observed.peak_memory_gb * GIGA if observed.peak_memory_gb is not None else None,
            capacity_bytes=limit_gb * GIGA if limit_gb is not None else own,
            phase=job.phase,
        )
    world = summary.implied.world_size if summary is not None else None
    if world is not None:
        diagnosis = with_fewer_devices(diagnosis, ran_on=world.value, wanted=job.devices)
    return diagnosis


def with_layout(diagnosis: Diagnosis, job: Job, reference: Reference | None = None) -> Diagnosis:
    """The diagnosis with a claim for each way in which the layout that runs causes it; as it was where none is known.

    reference: the projection of what runs; links and modelled memory are left out without it.
    """
    plan = job.current
    if plan is None or plan.devices == 1 or diagnosis.cause == "unknown":
        return diagnosis
    own = reference if reference is not None and reference.is_current else None
    reasons = mesh_reasons(diagnosis.cause, plan, job, own)
    claim = _claim(diagnosis.bottleneck, plan)
    if claim is not None:
        source = "stated" if job.current_source == "stated" else "assumed"
        reasons = (Evidence(id="ev-layout", claim=claim, source=source, ref="current.plan"), *reasons)
    return diagnosis.model_copy(update={"evidence": (*diagnosis.evidence, *reasons), "mesh": reasons})


def _claim(bottleneck: Bottleneck, plan: ParallelismPlan) -> str | None:
    if bottleneck == "memory" and plan.tp == plan.pp == plan.ep == plan.fsdp == 1:
        return (
            f"The layout that runs splits no weights: each of the {plan.devices} devices holds, reads and updates the "
            "whole model."
        )
    if bottleneck == "communication":
        used = [f"{words} {getattr(plan, axis)}" for axis, words in AXES.items() if getattr(plan, axis) > 1]
        return f"The layout that runs communicates over {listed(used)}." if used else None
    return None
