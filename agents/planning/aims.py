"""Aims: what a plan relieves most and which axis it enlarges most, both against the reference.

resource  the term that falls most. Terms of the step are compared as shares of the reference's step, and counted for
          the same work, tokens being what is counted:

              fall = share_reference - share_plan * r_reference / r_plan        r: tokens a second and chip

          terms of memory as shares of the device. They lead where memory binds (the reference does not fit, the cause
          is capacity, or memory is the objective), and stand in where no term of the step falls by more than the noise.
axis      the degree that grows by the largest factor; the first in the order of AXES where several do. A pool of
          prefill engines is one axis, of as many devices as it has.
"""

from collections.abc import Mapping
from math import log2

from agents.planning.expected import SAME_FRAC, Outlook
from agents.planning.job import Job
from agents.planning.reference import Reference
from agents.planning.titles import DEGREES
from agents.proposal_parts import Resource
from projector.breakdown import MemoryBreakdown, Projection
from projector.specs.bottleneck import Cause
from projector.specs.plan import ParallelismPlan

TIME_TERMS: dict[Resource, str] = {
    "compute": "compute_s",
    "exposed_communication": "exposed_communication_s",
    "exposed_copy": "exposed_copy_s",
    "idle": "idle_s",
}
MEMORY_TERMS: dict[Resource, tuple[str, ...]] = {
    "weights_memory": ("weights_bytes", "draft_bytes"),
    "gradients_memory": ("gradients_bytes",),
    "optimizer_memory": ("optimizer_bytes",),
    "activations_memory": ("activations_bytes",),
    "kv_cache_memory": ("kv_cache_bytes", "prefix_cache_bytes"),
    "buffers_memory": ("buffers_bytes", "graphs_bytes"),
}
MEMORY_OBJECTIVES = frozenset({"memory_per_chip_gb", "memory_per_gpu_gb", "weights_gb", "kv_cache_gb", "activation_gb"})
AXES = (*(field for field in DEGREES if not field.startswith("prefill_")), "prefill_devices")


def resource_of(after: Projection, outlook: Outlook, reference: Reference, cause: Cause, job: Job) -> Resource:
    """The term that falls most; "none" where none falls by more than 1 % of the step or of the device's memory."""
    times, memory = _time_falls(after, outlook, reference, job), _memory_falls(reference.projection, after)
    binds = reference.projection.fit == "too_large" or cause == "hbm_capacity" or job.objective in MEMORY_OBJECTIVES
    for falls in (memory, times) if binds else (times, memory):
        most = max(falls, key=lambda term: falls[term], default=None)
        if most is not None and falls[most] > SAME_FRAC:
            return most
    return "none"


def enlarged_axis(before: ParallelismPlan, after: ParallelismPlan) -> str | None:
    """The degree that grows by the largest factor, by its name; None where none grows."""
    growth = {field: log2(_size(after, field) / _size(before, field)) for field in AXES}
    most = max(growth, key=lambda field: growth[field])
    return most if growth[most] > 0 else None


def _size(plan: ParallelismPlan, field: str) -> float:
    """The degree; half of one for a pool that does not exist, so that the first device of one counts as a doubling."""
    degree: int = getattr(plan, field)
    return degree or 0.5


def _time_falls(after: Projection, outlook: Outlook, reference: Reference, job: Job) -> Mapping[Resource, float]:
    before = reference.projection
    if before.breakdown.total_s <= 0 or after.breakdown.total_s <= 0:
        return {}
    work = seconds_for_the_work(after) / seconds_for_the_work(before)
    falls = {term: _share(before, field) - _share(after, field) * work for term, field in TIME_TERMS.items()}
    measured = job.measured
    if outlook.idle_factor is None or measured is None or measured.total_s <= 0:
        return falls
    # the projection covers the busy part of the measured window only; its idle part scales by itself
    idle = measured.idle_s / measured.total_s
    return {term: fall * (1 - idle) for term, fall in falls.items()} | {"idle": idle * (1 - outlook.idle_factor)}


def _share(projection: Projection, field: str) -> float:
    time_s: float = getattr(projection.breakdown, field)
    return time_s / projection.breakdown.total_s


def seconds_for_the_work(projection: Projection) -> float:
    """Chip-seconds a token; of a step that is only scaled, its length, as all plans do the same work."""
    rate = projection.tokens_per_s_per_chip
    rate = projection.decode_tokens_per_s_per_chip if rate is None else rate
    return 1 / rate if rate else projection.step_time_s


def _memory_falls(before: Projection, after: Projection) -> Mapping[Resource, float]:
    if before.memory is None or after.memory is None:
        return {"memory": 1.0} if after.memory_direction == "less" else {}
    capacity = before.memory.capacity_bytes
    return {
        term: (_bytes(before.memory, fields) - _bytes(after.memory, fields)) / capacity
        for term, fields in MEMORY_TERMS.items()
    }


def _bytes(memory: MemoryBreakdown, fields: tuple[str, ...]) -> float:
    return float(sum(getattr(memory, field) for field in fields))
