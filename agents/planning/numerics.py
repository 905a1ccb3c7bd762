"""Numerics: which changes alter what is computed beyond the order of sums. Off unless a request allows them."""

from projector.levers import LEVERS, changed_levers
from projector.specs.plan import ParallelismPlan

# What a lever that alters numerics sets. The optimizer is no lever: only a constraint changes it.
NUMERIC_FIELDS = tuple(dict.fromkeys(field for lever in LEVERS if lever.numerics for field in lever.fields))


def numerics_changed(before: ParallelismPlan, after: ParallelismPlan) -> tuple[str, ...]:
    """What alters numerics between two plans, in words: levers that do, the optimizer, the global batch."""
    words = [lever.name.replace("_", " ") for lever in changed_levers(before, after) if lever.numerics]
    if before.optimizer != after.optimizer:
        words.append("optimizer")
    if after.phase == "training" and sequences_a_step(before) != sequences_a_step(after):
        words.append("global batch")
    return tuple(words)


def sequences_a_step(plan: ParallelismPlan) -> int:
    """Sequences of one training step over all devices."""
    return plan.dp * plan.micro_batch * plan.grad_accum
