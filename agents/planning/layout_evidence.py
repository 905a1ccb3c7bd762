"""How the layout that runs bears on the bottleneck of a trace: which axes cause the traffic, or keep weights whole."""

from agents.findings import Diagnosis, Evidence
from agents.planning.job import Job
from agents.wording import listed
from projector.specs.bottleneck import Bottleneck

AXES = {
    "tp": "tensor parallelism",
    "cp": "context parallelism",
    "pp": "pipeline parallelism",
    "ep": "expert parallelism",
    "fsdp": "weight sharding",
    "dp": "data parallelism",
}


def with_layout(diagnosis: Diagnosis, job: Job) -> Diagnosis:
    """The diagnosis of a trace with one more claim, where the layout is known and says something about the class."""
    if job.current is None or diagnosis.cause == "unknown":
        return diagnosis
    claim = _claim(diagnosis.bottleneck, job)
    if claim is None:
        return diagnosis
    source = "stated" if job.current_source == "stated" else "assumed"
    entry = Evidence(id="ev-layout", claim=claim, source=source, ref="current.plan")
    return diagnosis.model_copy(update={"evidence": (*diagnosis.evidence, entry)})


def _claim(bottleneck: Bottleneck, job: Job) -> str | None:
    plan = job.current
    if plan is None or plan.devices == 1:
        return None
    if bottleneck == "memory" and plan.tp == plan.pp == plan.ep == plan.fsdp == 1:
        return (
            f"The layout that runs splits no weights: each of the {plan.devices} devices holds, reads and updates the "
            "whole model."
        )
    if bottleneck == "communication":
        used = [f"{words} {getattr(plan, axis)}" for axis, words in AXES.items() if getattr(plan, axis) > 1]
        return f"The layout that runs communicates over {listed(used)}." if used else None
    return None
