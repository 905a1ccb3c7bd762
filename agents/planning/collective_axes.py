"""Which axis a collective serves that the trace gives to none, from its kind and the layout that ran.

An XLA profile names a collective and not who takes part. With the layout known most kinds have one axis to serve:
  all-reduce                    tensor parallelism, or the gradients of data parallelism
  all-gather, reduce-scatter    tensor parallelism (over the sequence), or weights and gradients sharded over data
  permute, send and receive     context parallelism (a ring), or the pipeline
  all-to-all                    expert parallelism, or context parallelism over heads
A kind with one of its axes in the layout serves that one. Between tensor and data parallelism the number of calls
decides: tensor parallelism calls twice a layer in the forward pass and twice in the backward one (arXiv:1909.08053,
section 3), so fewer than 32 calls a step cannot be its of 8 layers; as many or more are taken for it, as gradients are
reduced in buckets. Anything else stays unknown.
"""

from collections.abc import Mapping, Sequence

from agents.findings import Assumption
from agents.wording import listed
from projector.breakdown import Axis, AxisTime, TimeBreakdown
from projector.specs.plan import ParallelismPlan
from traces.summary_types import CollectiveTime, TraceSummary

SERVES: Mapping[str, tuple[Axis, ...]] = {
    "all_reduce": ("tp", "dp"),
    "all_gather": ("tp", "fsdp"),
    "reduce_scatter": ("tp", "fsdp"),
    "collective_permute": ("cp", "pp"),
    "p2p": ("cp", "pp"),
    "all_to_all": ("ep", "cp"),
}
# 2 collectives a layer in each of 2 passes over 8 layers, the fewest of a language model of use
FEWEST_LAYER_CALLS = 32


def with_axes(
    measured: TimeBreakdown, summary: TraceSummary, plan: ParallelismPlan | None
) -> tuple[TimeBreakdown, tuple[Assumption, ...]]:
    """The measured step with its unknown traffic given to axes where kind and layout tell, and what that assumes.

    Totals stay. Unchanged without a layout, or where every collective has its axis.
    """
    unknown = [one for one in summary.collectives if one.axis == "unknown" and one.total_ns > 0]
    before = {time.axis: time for time in measured.by_axis}
    if plan is None or not unknown or "unknown" not in before:
        return measured, ()
    found = [(one, _axis(one, plan, _calls_a_step(one, summary))) for one in unknown]
    if all(axis == "unknown" for _, axis in found):
        return measured, ()
    total_ns, exposed_ns = sum(one.total_ns for one in unknown), sum(one.exposed_ns for one in unknown)
    whole = before.pop("unknown")
    for one, axis in found:
        known = before.get(axis, AxisTime(axis=axis, total_s=0.0, exposed_s=0.0))
        before[axis] = AxisTime(
            axis=axis,
            total_s=known.total_s + whole.total_s * one.total_ns / total_ns,
            exposed_s=known.exposed_s + (whole.exposed_s * one.exposed_ns / exposed_ns if exposed_ns else 0.0),
        )
    return measured.model_copy(update={"by_axis": tuple(before.values())}), (_assumption(found),)


def _axis(one: CollectiveTime, plan: ParallelismPlan, calls_a_step: float | None) -> Axis:
    possible = [axis for axis in SERVES.get(one.collective, ()) if _in_use(axis, plan)]
    if len(possible) == 1:
        return possible[0]
    if "tp" not in possible or calls_a_step is None:
        return "unknown"
    return "tp" if calls_a_step >= FEWEST_LAYER_CALLS else next(axis for axis in possible if axis != "tp")


def _in_use(axis: Axis, plan: ParallelismPlan) -> bool:
    """Data parallelism reduces over context ranks too, and shards over them; stage 1 and 2 scatter gradients."""
    if axis == "dp":
        return plan.dp * plan.cp > 1 and plan.phase == "training"
    if axis == "fsdp":
        return plan.dp * plan.cp > 1 and plan.phase == "training" and (plan.fsdp > 1 or plan.zero_stage >= 1)
    return bool(getattr(plan, axis) > 1)


def _calls_a_step(one: CollectiveTime, summary: TraceSummary) -> float | None:
    steps = sum(len(rank.steps) for rank in summary.ranks)
    return one.count / steps if steps else None


def _assumption(found: Sequence[tuple[CollectiveTime, Axis]]) -> Assumption:
    named = {f"{one.collective.replace('_', '-')} for {axis}" for one, axis in found if axis != "unknown"}
    return Assumption(
        field="measured.by_axis",
        value=listed(sorted(named)),
        reason="the profile does not say who takes part in a collective: its kind, its calls a step and the layout do",
        matters="another axis scales otherwise with the mesh, so gains of other layouts would differ",
    )
