"""The current layout as the trace implies it."""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.planning.signals import signals_of_trace
from projector.specs.plan import ParallelismPlan, Phase
from traces.summary_types import Implied, TraceSummary

DEVICE_AXES = ("tp", "dp", "pp", "cp")
EAGER_IDLE_FRAC = 0.3
UNSEEN_GROUPS_CONFIDENCE = 0.3


@dataclass(frozen=True)
class InferredPlan:
    """plan None: the trace does not say, `basis` why. assumed: no group was seen, plain data parallelism was taken."""

    plan: ParallelismPlan | None
    confidence: float
    basis: str
    assumed: bool = False


def infer_plan(summary: TraceSummary, devices: int, phase: Phase, *, experts: bool) -> InferredPlan:
    """The layout from the process groups and collectives of a trace; micro-batch and accumulation stay at 1.

    Of a mixture of experts without an expert-parallel group, experts are sliced like every other weight: etp = tp.
    """
    implied = summary.implied
    contradictory = [f"{axis}: {why}" for axis, why in implied.unresolved if axis in DEVICE_AXES]
    if contradictory and devices > 1:
        return InferredPlan(None, 0.0, "; ".join(contradictory))
    tp, pp, cp = _value(implied.tp), _value(implied.pp), _value(implied.cp)
    inner = f"tp {tp} x pp {pp}" + (f" x cp {cp}" if cp > 1 else "")
    if devices % (tp * pp * cp):
        return InferredPlan(None, 0.0, f"{inner} does not divide {devices} devices")
    dp = implied.dp.value if implied.dp else devices // (tp * pp * cp)
    if dp * tp * pp * cp != devices:
        return InferredPlan(None, 0.0, f"the groups say dp {dp} x {inner}, the job has {devices} devices")
    found = (implied.tp, implied.dp, implied.pp, implied.cp, implied.ep)
    seen = [entry for entry in found if entry is not None]
    fields: dict[str, Any] = {"phase": phase, "dp": dp, "tp": tp, "pp": pp, "cp": cp, "ep": _value(implied.ep)}
    if experts and implied.ep is None:
        fields["etp"] = tp
    fields |= _dtypes(implied, phase)
    fields |= _training_fields(summary, dp, tp) if phase == "training" else _serving_fields(summary)
    try:
        plan = ParallelismPlan.model_validate(fields)
    except ValidationError as error:
        return InferredPlan(None, 0.0, f"the groups in the trace contradict each other: {error.errors()[0]['msg']}")
    if devices == 1:
        return InferredPlan(plan, 1.0, "one device has one layout")
    if not seen:
        return InferredPlan(plan, UNSEEN_GROUPS_CONFIDENCE, "the trace declares no process group", assumed=True)
    return InferredPlan(plan, min(entry.confidence for entry in seen), "; ".join(entry.basis for entry in seen))


def runs_eagerly(summary: TraceSummary) -> bool:
    """Whether single kernel launches set the pace, which replayed graphs would have avoided."""
    late, signals = summary.launch_bound_frac, signals_of_trace(summary)
    if signals.idle is not None and signals.idle.apart >= 0.5 * signals.idle.launching:
        return False  # the host paused or loaded input: what it launched says nothing of how it launches
    return late is not None and late >= 0.5 and signals.shares.idle > EAGER_IDLE_FRAC


def _value(inferred: Any) -> int:
    return inferred.value if inferred is not None else 1


def _dtypes(implied: Implied, phase: Phase) -> dict[str, Any]:
    if implied.dtype is None:
        return {}
    dtype = implied.dtype.value
    if phase == "training":
        return {"compute_dtype": dtype}
    return {"compute_dtype": dtype, "weight_dtype": implied.weight_dtype.value if implied.weight_dtype else dtype}


def _training_fields(summary: TraceSummary, dp: int, tp: int) -> dict[str, Any]:
    implied = summary.implied
    scattered = any(
        entry.axis == "tp" and "scatter" in entry.collective.lower() and entry.total_ns for entry in summary.collectives
    )
    sequence = implied.sp.value if implied.sp is not None else scattered
    fields: dict[str, Any] = {"sp": sequence and tp > 1}
    sharded = any(entry.axis == "fsdp" and entry.total_ns for entry in summary.collectives)
    shards = implied.fsdp.value if implied.fsdp is not None else dp if sharded else 1
    if shards > 1 and dp % shards == 0:
        fields |= {"fsdp": shards, "zero_stage": 3}
    return fields


def _serving_fields(summary: TraceSummary) -> dict[str, Any]:
    return {"cuda_graphs": not runs_eagerly(summary)}
