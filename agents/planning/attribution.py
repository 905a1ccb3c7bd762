"""Which of a plan's changes its gain comes from: each is taken back alone and the plan projected again.

The degrees of the layout multiply to the device count, so they are taken back together, as one step; every other lever
is one by itself. An effect is that of the last step, everything else changed already; effects need not add up.
"""

from collections.abc import Sequence

from pydantic import ValidationError

from agents.advisors.protocol import Step
from agents.planning.job import Job
from agents.planning.reference import Reference
from agents.planning.scores import score
from projector.legality import legal_mask
from projector.levers import Lever, changed_levers
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch

LAYOUT_FIELDS = frozenset(
    {
        "dp",
        "fsdp",
        "zero_stage",
        "tp",
        "sp",
        "pp",
        "vp",
        "schedule",
        "first_stage_layers",
        "last_stage_layers",
        "cp",
        "ep",
        "etp",
        "attention_dp",
    }
)


def steps_of(plans: Sequence[ParallelismPlan], job: Job, reference: Reference) -> list[tuple[Step, ...]]:
    """For each plan its steps, in the order of expected impact. All plans taken back are projected in one batch."""
    grouped = [_groups(plan, job, reference) for plan in plans]
    variants = [
        (index, place, without)
        for index, groups in enumerate(grouped)
        for place, levers in enumerate(groups)
        if (without := _taken_back(plans[index], levers, job, reference)) is not None
    ]
    effects = _effects(plans, variants, job)
    return [
        tuple(_step(levers, effects.get((index, place))) for place, levers in enumerate(groups))
        for index, groups in enumerate(grouped)
    ]


def _groups(plan: ParallelismPlan, job: Job, reference: Reference) -> list[tuple[Lever, ...]]:
    levers = [lever for lever in changed_levers(reference.plan, plan) if job.phase in lever.phases]
    layout = tuple(lever for lever in levers if LAYOUT_FIELDS.intersection(lever.fields))
    return [*([layout] if layout else []), *((lever,) for lever in levers if lever not in layout)]


def _taken_back(
    plan: ParallelismPlan, levers: Sequence[Lever], job: Job, reference: Reference
) -> ParallelismPlan | None:
    """The plan with these levers as in the reference; None where that is no valid plan."""
    names = {field for lever in levers for field in lever.fields}
    names |= LAYOUT_FIELDS if names & LAYOUT_FIELDS else set()
    changed = plan.model_dump() | {field: getattr(reference.plan, field) for field in names}
    if job.phase == "training" and job.workload.global_batch is not None:
        a_pass = changed["dp"] * changed["micro_batch"]
        if job.workload.global_batch % a_pass:
            return None
        changed["grad_accum"] = job.workload.global_batch // a_pass
    try:
        return ParallelismPlan.model_validate(changed)
    except ValidationError:
        return None


def _effects(
    plans: Sequence[ParallelismPlan], variants: Sequence[tuple[int, int, ParallelismPlan]], job: Job
) -> dict[tuple[int, int], tuple[float, float | None]]:
    """(plan, step) -> (gain of the step, bytes the plan would need without it, None where it fits or nobody knows)."""
    if not variants:
        return {}
    batch = PlanBatch.from_plans([without for _, _, without in variants])
    legal = legal_mask(batch, job.workload, job.architecture, job.cluster, job.hardware)
    kept = [variant for variant, is_legal in zip(variants, legal, strict=True) if is_legal]
    if not kept:
        return {}
    before = score(PlanBatch.from_plans([without for _, _, without in kept]), job)
    own = score(PlanBatch.from_plans(list(plans)), job).good
    found: dict[tuple[int, int], tuple[float, float | None]] = {}
    for row, (index, place, _) in enumerate(kept):
        if before.good[row] > 0:
            needed = None if before.projections.fits[row] else float(before.projections.memory_bytes[row])
            found[index, place] = (float(own[index] / before.good[row] - 1), needed)
    return found


def _step(levers: tuple[Lever, ...], effect: tuple[float, float | None] | None) -> Step:
    names = tuple(lever.name for lever in levers)
    gain, needed = effect if effect is not None else (None, None)
    return Step(levers=names, gain_frac=gain, too_large_without_bytes=needed)
