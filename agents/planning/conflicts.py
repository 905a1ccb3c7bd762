"""Where a request and the trace differ: the request wins, and each difference is told with both values."""

from collections.abc import Iterator
from typing import Any

from agents.planning.match_model import degrees
from agents.planning.model_sizes import size_checks
from agents.request import PlanRequest
from agents.wording import quoted
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan, Phase
from traces.summary_types import Implied, Inferred, TraceSummary

# A value no surer than this is a hint or a lower bound: it contradicts nobody.
LEAST_SURE = 0.5
DEGREES = ("tp", "pp", "dp", "fsdp", "cp", "ep")


def conflict(shown: str, stated: str, confidence: float) -> str:
    """One difference: 'the trace shows tp 8, request.current_plan says 4; the request wins (...)'."""
    return f"the trace shows {shown}, {stated}; the request wins (the trace's value has confidence {confidence:.2f})"


def conflicts(
    request: PlanRequest, summary: TraceSummary | None, phase: Phase, model: ModelArchitecture | None
) -> tuple[str, ...]:
    """Every stated value the trace contradicts: sizes of the model, degrees, sequence, micro-batch, precision.

    model: the one the request states, None where the trace chose it. Chip, device count and phase are told where they
    are resolved.
    """
    if summary is None:
        return ()
    implied = summary.implied
    told: list[str] = []
    if model is not None:
        told += _of_model(model, request.current_plan, summary)
    if request.current_plan is not None:
        told += _of_layout(request.current_plan, implied, phase)
    told += _of_sizes(request, implied, phase)
    told += _of_precision(request, implied, phase)
    return tuple(told)


def _of_model(model: ModelArchitecture, plan: ParallelismPlan | None, summary: TraceSummary) -> Iterator[str]:
    """Sizes that are not the model's, under the degree at which fewest differ."""
    implied = summary.implied
    shapes, sure = implied.shapes, dict(implied.shapes.confidences)
    traced = implied.tp.value if implied.tp else None
    world = implied.world_size.value if implied.world_size else len(summary.ranks)
    stages = implied.pp.value if implied.pp else (plan.pp if plan else 1)
    candidates = dict.fromkeys((*degrees(traced, world), *((plan.tp,) if plan else ())))
    differing = min(
        ([check for check in size_checks(shapes, tp, stages, model) if check.agrees is False] for tp in candidates),
        key=len,
    )
    for check in differing:
        confidence = sure.get(check.field, LEAST_SURE + 0.1)
        if confidence > LEAST_SURE:
            yield conflict(check.shown, f"{model.name} has {check.expected}", confidence)


def _of_layout(plan: ParallelismPlan, implied: Implied, phase: Phase) -> Iterator[str]:
    for axis in DEGREES:
        if axis == "fsdp" and phase != "training":
            continue
        yield from _differs(axis, getattr(implied, axis), getattr(plan, axis))
    if phase == "training" and "sp" in plan.model_fields_set:
        yield from _differs("sp", implied.sp, plan.sp)


def _differs(name: str, seen: Inferred[Any] | None, stated: object) -> Iterator[str]:
    if seen is not None and seen.confidence > LEAST_SURE and seen.value != stated:
        yield conflict(f"{name} {seen.value}", f"request.current_plan says {name} {stated}", seen.confidence)


def _of_sizes(request: PlanRequest, implied: Implied, phase: Phase) -> Iterator[str]:
    """Sequence length and micro-batch of a trainer. With context parallelism a rank sees a part of each sequence."""
    if phase != "training":
        return
    shapes, sure, plan = implied.shapes, dict(implied.shapes.confidences), request.current_plan
    stated = request.workload.seq_len if request.workload is not None else None
    if stated is not None and shapes.sequence_length is not None and sure.get("sequence_length", 0.0) > LEAST_SURE:
        parts = implied.cp.value if implied.cp else (plan.cp if plan else 1)
        seen = shapes.sequence_length * parts
        if seen != stated:
            shown = f"sequences of {seen} tokens" + (
                f" ({shapes.sequence_length} on each of {parts} ranks)" * (parts > 1)
            )
            yield conflict(shown, f"request.workload says seq_len {stated}", sure["sequence_length"])
    if (
        plan is not None
        and "micro_batch" in plan.model_fields_set
        and shapes.micro_batch is not None
        and sure.get("micro_batch", 0.0) > LEAST_SURE
        and shapes.micro_batch != plan.micro_batch
    ):
        shown = f"micro-batches of {shapes.micro_batch} sequences"
        yield conflict(shown, f"request.current_plan says micro_batch {plan.micro_batch}", sure["micro_batch"])


def _of_precision(request: PlanRequest, implied: Implied, phase: Phase) -> Iterator[str]:
    """Formats of the products, and of stored weights where they are served."""
    stated: list[tuple[str, str, Inferred[Any] | None]] = []
    if request.workload is not None and "precision" in request.workload.model_fields_set:
        stated.append(("request.workload says precision", request.workload.precision, implied.dtype))
    if request.current_plan is not None and "compute_dtype" in request.current_plan.model_fields_set:
        dtype = request.current_plan.compute_dtype
        stated.append(("request.current_plan says compute_dtype", dtype, implied.dtype))
    if (
        phase == "serving"
        and request.current_plan is not None
        and "weight_dtype" in request.current_plan.model_fields_set
    ):
        dtype = request.current_plan.weight_dtype
        stated.append(("request.current_plan says weight_dtype", dtype, implied.weight_dtype))
    for says, value, seen in stated:
        if seen is not None and seen.confidence > LEAST_SURE and seen.value != value:
            what = "weights" if says.endswith("weight_dtype") else "products"
            yield conflict(f"{what} in {quoted(str(seen.value))}", f"{says} {value}", seen.confidence)
