"""A whole legal space ranked by an objective: block after block, in memory that does not grow with its plans."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import ProjectionBatch
from projector.breakdown import Projection
from projector.errors import InvalidDescription
from projector.forbidden import Forbidden, forbidden
from projector.graph.columns import Column
from projector.legality import check
from projector.ranking.answer import (
    Told,
    best_layouts,
    nearest_miss,
    pareto_members,
    pareto_plans,
    ranked_plans,
    relieving_layouts,
    relieving_plans,
)
from projector.ranking.pool import Pool
from projector.ranking.records import ParetoSet, ReliefRanking, SpaceRanking
from projector.ranking.relief import Relief
from projector.ranking.task import Task, good
from projector.ranking.ties import TIE_FRAC
from projector.search_space import MOST_IN_BLOCKS, BlockedSpace
from projector.specs.bottleneck import Cause
from projector.specs.objective import DEFAULT_OBJECTIVE, Objective, Slo, alias_note, find_objective
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.plan_batch import PlanBatch

MOST_TOP = 200
MOST_PARETO_OBJECTIVES = 4


@dataclass(frozen=True)
class Wanted:
    """What plans are judged by. now: how good the current plan is; None without one. notes: on names and budgets."""

    objective: Objective
    pareto: tuple[Objective, ...]
    relief: Relief | None
    now: float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tally:
    """What is known after some blocks: counts, the pool, and the plan that passes its worst limit by the least."""

    considered: int = 0
    feasible: int = 0
    pool: Pool | None = None
    nearest: ParallelismPlan | None = None
    overshoot: float = np.inf


def rank_space(
    task: Task,
    *,
    objective: str | None = None,
    top: int = 10,
    pareto: Sequence[str] = (),
    relieve: Cause | None = None,
    most: int = MOST_IN_BLOCKS,
) -> SpaceRanking:
    """The best `top` layouts of the space by the objective (None: the phase's default), each by its best plan.

    pareto: names of two to four objectives, over which the Pareto set of all plans is given too
    relieve: a cause, by whose term in the current plan layouts are ranked as well
    most: plans, beyond which choices are narrowed in a fixed order, which the notes say

    UnknownName for an objective the phase does not have; InvalidDescription where an objective has no figure on this
    chip (no price, no power), relief is asked without a current plan or for a term it spends nothing on, and as
    `explore_in_blocks` and `project_many`.
    """
    _check(top)
    phase = task.workload.phase
    current = None if task.current is None else task.project(PlanBatch.from_plans([task.current]), task.cluster)
    if relieve is not None and current is None:
        raise InvalidDescription(
            f"what relieves {relieve} is told against a plan that runs, and none is given", hint="state current_plan"
        )
    target = find_objective(objective or DEFAULT_OBJECTIVE[phase], phase)
    wanted = Wanted(
        objective=target,
        pareto=_distinct(pareto, phase),
        relief=None if relieve is None or current is None else Relief.of(relieve, current),
        now=None if current is None else float(good(target, current)[0]),
        notes=_notes(objective, pareto, task),
    )
    space, tally = task.space(most), Tally()
    for block in space.blocks:
        tally = _with_block(tally, task.project(block, space.cluster), task, wanted)
    return _answer(task, wanted, space, tally, top).model_copy(
        update={"current": None if current is None else _current(task, current)}
    )


def _current(task: Task, current: ProjectionBatch) -> Projection:
    """The plan that runs, with all that would keep it from being ranked: rules, memory, latency budgets."""
    projection = current[0]
    broken = check(projection.plan, task.workload, task.architecture, task.cluster, task.hardware)
    misses = current.slo_misses(task.slo)[0]
    return projection.model_copy(update={"rejections": (*broken, *projection.rejections, *misses)})


def _notes(objective: str | None, pareto: Sequence[str], task: Task) -> tuple[str, ...]:
    """Which objectives aliases stand for, and budgets that no projection answers."""
    asked = (*(() if objective is None else (objective,)), *pareto)
    notes = (alias_note(name, find_objective(name, task.workload.phase)) for name in asked)
    return (*(note for note in dict.fromkeys(notes) if note is not None), *task.slo.unanswered)


def _check(top: int) -> None:
    if not 1 <= top <= MOST_TOP:
        raise InvalidDescription(f"top {top} lies outside 1 to {MOST_TOP}")


def _distinct(pareto: Sequence[str], phase: Phase) -> tuple[Objective, ...]:
    """The objectives of a Pareto set. InvalidDescription where they are too few, too many, or one twice."""
    found = tuple(find_objective(name, phase) for name in pareto)
    if len(found) == 1 or len(found) > MOST_PARETO_OBJECTIVES or len({one.name for one in found}) < len(found):
        raise InvalidDescription(
            f"a Pareto set over {', '.join(pareto)}", hint=f"name 2 to {MOST_PARETO_OBJECTIVES} distinct objectives"
        )
    return found


def _with_block(tally: Tally, projected: ProjectionBatch, task: Task, wanted: Wanted) -> Tally:
    worth = good(wanted.objective, projected)
    rows = np.flatnonzero(projected.fits & projected.meets(task.slo) & (worth > 0))
    considered, feasible = tally.considered + len(projected), tally.feasible + rows.size
    if feasible == 0:
        return _nearer(tally, projected, task.slo, considered)
    if rows.size == 0:
        return Tally(considered, feasible, tally.pool)
    fresh = _pool(projected, worth, rows, wanted)
    return Tally(considered, feasible, fresh if tally.pool is None else tally.pool.with_more(fresh))


def _pool(projected: ProjectionBatch, worth: Column, rows: NDArray[np.intp], wanted: Wanted) -> Pool:
    with np.errstate(divide="ignore"):
        losses = [1 / good(one, projected)[rows] for one in wanted.pareto]
    return Pool.of(
        plans=projected.batch.take(rows),
        good=worth[rows],
        saved=_saved(projected, worth, wanted)[rows],
        losses=np.stack(losses, axis=1) if losses else np.zeros((len(rows), 1)),
    )


def _saved(projected: ProjectionBatch, worth: Column, wanted: Wanted) -> Column:
    """What each plan saves of the blamed term; nothing counts that makes the objective worse, save for memory."""
    if wanted.relief is None or wanted.now is None:
        return np.zeros(len(projected))
    saved = wanted.relief.saved_frac(projected)
    if wanted.relief.cause == "hbm_capacity":
        return saved
    return np.where(worth * (1 + TIE_FRAC) >= wanted.now, saved, -np.inf)


def _nearer(tally: Tally, projected: ProjectionBatch, slo: Slo, considered: int) -> Tally:
    """With the plan that passes its worst limit by the least so far, then needs the least memory."""
    over = projected.overshoot(slo)
    row = int(np.lexsort((projected.memory_bytes, over))[0])
    if tally.nearest is not None and over[row] >= tally.overshoot:
        return Tally(considered, 0, None, tally.nearest, tally.overshoot)
    return Tally(considered, 0, None, projected.batch[row], float(over[row]))


def _answer(task: Task, wanted: Wanted, space: BlockedSpace, tally: Tally, top: int) -> SpaceRanking:
    """The answer but for the current plan."""
    pool, relief = tally.pool, wanted.relief
    names = tuple(one.name for one in wanted.pareto)
    answer = SpaceRanking(
        objective=wanted.objective,
        candidates_considered=tally.considered,
        candidates_feasible=tally.feasible,
        layouts_count=0,
        leading_count=0,
        ranked=(),
        pareto=ParetoSet(objectives=names, members_count=0, plans=()) if names else None,
        relief=None if relief is None else ReliefRanking(cause=relief.cause, share_frac=relief.share, plans=()),
        current=None,
        nearest_miss=None,
        unknown=(),
        notes=(*space.notes, *wanted.notes),
        assumptions=(),
    )
    if pool is None:
        miss = None if tally.nearest is None else nearest_miss(tally.nearest, task, space.cluster)
        return answer.model_copy(update={"nearest_miss": miss, "why_none": _why_none(tally, task, space)})
    layouts, relieving, (members, count) = best_layouts(pool), relieving_layouts(pool), pareto_members(pool)
    parts = [layouts.first(top), *([relieving.first(top)] if relief else []), *([members] if names else [])]
    told = Told.of(task, space.cluster, wanted.now, pool, parts)
    found: dict[str, object] = {
        "layouts_count": len(layouts.rows),
        "leading_count": int((layouts.ranks == 1).sum()),
        "ranked": ranked_plans(layouts.first(top), told),
        "unknown": told.unknown,
        "assumptions": told.assumptions(),
    }
    if names:
        plans = pareto_plans(members, told, names)
        found["pareto"] = ParetoSet(objectives=names, members_count=count, plans=plans)
    if answer.relief is not None:
        found["relief"] = answer.relief.model_copy(update={"plans": relieving_plans(relieving.first(top), told)})
    return answer.model_copy(update=found)


def _forbidden(task: Task) -> Forbidden | None:
    return forbidden(task.workload, task.architecture, task.cluster, task.hardware, task.constraints, task.current)


def _why_none(tally: Tally, task: Task, space: BlockedSpace) -> str:
    runs = "" if task.stack is None else f" that {task.stack.name} runs"
    if tally.considered == 0:
        devices = space.cluster.chips * task.hardware.devices_per_chip
        none = f"no legal plan{runs} for {devices} device{'' if devices == 1 else 's'} keeps the constraints"
        found = None if task.stack is not None else _forbidden(task)
        return none if found is None else f"{none}: {found.text}; {found.hint}"
    budgets = "" if task.slo == Slo() else " and keeps the latency budgets"
    return f"none of {tally.considered} legal plans{runs} fits the memory{budgets}"
