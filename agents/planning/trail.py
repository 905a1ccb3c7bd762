"""Trail: the lever steps from the reference to a plan, each a legal projected plan, in the order that pays soonest.

Atoms are the levers that differ; the degree of data parallelism takes the devices the other axes leave, so it belongs
to each of them. Every set of atoms is a plan, all of them are projected in one batch, and of the ways from none to all
of them the one is taken that
  1. passes only plans that are legal, run on the named stack, and fit (where the reference does not: fit soonest),
  2. has the smallest steps, atoms that only work together being taken together,
  3. gains soonest.
Behind each step stand the figures of its plan, so what the steps gain adds up to what the plan gains.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from agents.frameworks import framework_called
from agents.gains import objective_change
from agents.planning.expected import outlook_of
from agents.planning.job import Job
from agents.planning.reference import Reference
from agents.planning.scores import Scores, score
from agents.planning.titles import KEEP_TITLE, title_of
from agents.proposal_parts import TrailPoint, TrailStep
from agents.wording import listed
from projector.legality import legal_mask
from projector.levers import Lever, changed_levers
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import FIELDS, PlanBatch

# 2**7 plans a proposal: more levers than this share their last atom
MOST_ATOMS = 7
# what the other fields leave: never a step of its own
FOLLOWING = frozenset({"phase", "dp", "grad_accum"})
LEFT_OVER = "other settings"
# of a step's title: as good as all of one lever's fields
MOST_PARTS = 6


@dataclass(frozen=True)
class Atom:
    """Fields that change together, and the levers they belong to."""

    levers: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Trail:
    """steps: from the reference on. note: what had to be taken together, '' where nothing had to."""

    steps: tuple[TrailStep, ...] = ()
    note: str = ""


def trails_of(plans: Sequence[ParallelismPlan], job: Job, reference: Reference) -> tuple[Trail, ...]:
    """One trail a plan, empty for the reference itself. All plans in between are projected in one batch."""
    if not plans:
        return ()
    atoms = [_atoms(plan, job, reference.plan) for plan in plans]
    between = [
        (index, taken, made)
        for index, plan in enumerate(plans)
        for taken in range(1, 2 ** len(atoms[index]) - 1)
        if (made := _with(taken, atoms[index], plan, job, reference.plan)) is not None
    ]
    ends = [(index, 2 ** len(atoms[index]) - 1, plan) for index, plan in enumerate(plans)]
    kept = [*_legal(between, job), *ends]
    scores = score(PlanBatch.from_plans([plan for _, _, plan in kept]), job)
    passable = scores.good > 0
    if reference.projection.fit != "too_large":
        passable &= scores.projections.fits
    rows: list[dict[int, int]] = [{} for _ in plans]
    for row, (index, taken, _) in enumerate(kept):
        if passable[row] or taken == 2 ** len(atoms[index]) - 1:
            rows[index][taken] = row
    return tuple(_trail(atoms[index], rows[index], scores, reference, job) for index in range(len(plans)))


def _atoms(plan: ParallelismPlan, job: Job, before: ParallelismPlan) -> list[Atom]:
    levers = [lever for lever in changed_levers(before, plan) if job.phase in lever.phases]
    changed = {field for field in FIELDS if getattr(before, field) != getattr(plan, field)} - FOLLOWING
    if is_fully_sharded(before) and is_fully_sharded(plan):
        changed -= {"fsdp"}
    elif is_fully_sharded(before) or is_fully_sharded(plan):
        changed |= {"fsdp"}
    atoms = [atom for lever in levers if (atom := _atom(lever, changed)).fields]
    covered = {field for atom in atoms for field in atom.fields}
    rest = tuple(sorted(changed - covered))
    atoms += [Atom((), rest)] if rest else []
    head, tail = atoms[: MOST_ATOMS - 1], atoms[MOST_ATOMS - 1 :]
    if len(tail) > 1:
        names = tuple(name for atom in tail for name in atom.levers)
        tail = [Atom(names, tuple(field for atom in tail for field in atom.fields))]
    return [*head, *tail]


def is_fully_sharded(plan: ParallelismPlan) -> bool:
    """Whether weights are sharded over all data-parallel ranks, however many these are."""
    return 1 < plan.fsdp == plan.dp


def _atom(lever: Lever, changed: set[str]) -> Atom:
    return Atom((lever.name,), tuple(field for field in lever.fields if field in changed))


def _with(
    taken: int, atoms: Sequence[Atom], plan: ParallelismPlan, job: Job, before: ParallelismPlan
) -> ParallelismPlan | None:
    """The reference with the atoms that are set in the bits of `taken`; None where that is no plan of the devices."""
    chosen = {field for place, atom in enumerate(atoms) if taken >> place & 1 for field in atom.fields}
    values = before.model_dump() | {field: getattr(plan, field) for field in chosen}
    pool = values["prefill_replicas"] * values["prefill_attention_dp"] * values["prefill_tp"] * values["prefill_pp"]
    model_devices = values["tp"] * values["cp"] * values["pp"]
    values["dp"], left = divmod(job.devices - pool, model_devices)
    if left or values["dp"] < 1:
        return None
    if is_fully_sharded(plan if "fsdp" in chosen else before):
        values["fsdp"] = values["dp"]
    if job.phase == "training" and job.workload.global_batch is not None:
        values["grad_accum"], left = divmod(job.workload.global_batch, values["dp"] * values["micro_batch"])
        if left:
            return None
    try:
        return ParallelismPlan.model_validate(values)
    except ValidationError:
        return None


def _legal(between: Sequence[tuple[int, int, ParallelismPlan]], job: Job) -> list[tuple[int, int, ParallelismPlan]]:
    if not between:
        return []
    batch = PlanBatch.from_plans([plan for _, _, plan in between])
    legal = legal_mask(batch, job.workload, job.architecture, job.cluster, job.hardware)
    if job.framework is not None:
        legal &= framework_called(job.framework).allows(batch)
    return [entry for entry, is_legal in zip(between, legal, strict=True) if is_legal]


def _trail(atoms: Sequence[Atom], rows: dict[int, int], scores: Scores, reference: Reference, job: Job) -> Trail:
    everything = 2 ** len(atoms) - 1
    if everything == 0:
        return Trail()
    path = _path(everything, rows, scores, reference)
    before, plan_before = _start(reference), reference.plan
    steps, together = [], []
    for at, to in zip([0, *path[:-1]], path, strict=True):
        row, moved = rows[to], [atom for place, atom in enumerate(atoms) if (at ^ to) >> place & 1]
        after, plan = _point(scores, row, reference, job), scores.batch[row]
        steps.append(
            TrailStep(
                title=_title(plan_before, plan),
                levers=tuple(name for atom in moved for name in atom.levers),
                plan=plan,
                before=before,
                after=after,
                fit=scores.projections[row].fit,
            )
        )
        if len(moved) > 1:
            together.append(listed([_name(atom) for atom in moved]))
        before, plan_before = after, plan
    return Trail(tuple(steps), _note(together, reference))


def _path(everything: int, rows: dict[int, int], scores: Scores, reference: Reference) -> list[int]:
    """The cheapest way over the sets of atoms that have a plan, by (squares of step sizes, plans on the way that do
    not fit, what is not gained yet behind each step).
    """
    cost: dict[int, tuple[int, int, float, tuple[int, ...]]] = {0: (0, 0, 0.0, ())}
    for to in sorted(rows):
        row = rows[to]
        unfit, gained = int(not scores.projections.fits[row]), float(scores.good[row]) / (reference.good or 1.0)
        cost[to] = min(
            (before[0] + (at ^ to).bit_count() ** 2, before[1] + unfit, before[2] - gained, (*before[3], to))
            for at, before in cost.items()
            if at & to == at
        )
    return list(cost[everything][3])


def _start(reference: Reference) -> TrailPoint:
    memory = reference.projection.memory
    return TrailPoint(
        step_time_s=reference.step_time_s,
        memory_bytes=None if memory is None else memory.total_bytes,
        gain_frac=0.0,
    )


def _point(scores: Scores, row: int, reference: Reference, job: Job) -> TrailPoint:
    memory_bytes = float(scores.projections.memory_bytes[row])
    return TrailPoint(
        step_time_s=float(scores.step_time_s[row]),
        memory_bytes=memory_bytes if np.isfinite(memory_bytes) else None,
        gain_frac=objective_change(outlook_of(scores, row, reference).gain_frac, job.target.direction),
    )


def _title(before: ParallelismPlan, after: ParallelismPlan) -> str:
    title = title_of(before, after, most_parts=MOST_PARTS)
    return LEFT_OVER.capitalize() if title == KEEP_TITLE else title


def _name(atom: Atom) -> str:
    return listed([name.replace("_", " ") for name in atom.levers]) or LEFT_OVER


def _note(together: Sequence[str], reference: Reference) -> str:
    if not together:
        return ""
    needs = "is legal" if reference.projection.fit == "too_large" else "is legal and fits"
    return (
        f"{'; '.join(together)}: taken in one step, as no order of single steps passes only plans of which each {needs}"
    )
