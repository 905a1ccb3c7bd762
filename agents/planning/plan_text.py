"""A plan in a few words: its degrees above one."""

from collections.abc import Sequence

from projector.specs.plan import ParallelismPlan


def plan_text(plan: ParallelismPlan) -> str:
    """The degrees above one: 'dp 2 tp 4'; with a prefill pool 'dp 2 tp 4 + prefill 1 x tp 8'."""
    engines = _degrees(plan, ("dp", "fsdp", "tp", "pp", "cp", "ep", "attention_dp")) or "one device"
    if plan.prefill_replicas == 0:
        return engines
    pool = _degrees(plan, ("prefill_tp", "prefill_pp", "prefill_attention_dp", "prefill_ep")) or "one device"
    return f"{engines} + prefill {plan.prefill_replicas} x {pool}"


def _degrees(plan: ParallelismPlan, axes: Sequence[str]) -> str:
    return " ".join(f"{axis.removeprefix('prefill_')} {degree}" for axis in axes if (degree := getattr(plan, axis)) > 1)
