"""Reference: the plan that proposals are compared with, the current one or, without it, the plainest that fits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agents.planning.job import Job
from agents.planning.plan_text import plan_text
from agents.planning.scores import feasible, score_one, scored_space
from projector.breakdown import Projection
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.record import Record

LEAST_SHARE_OF_BEST = 0.5


class Reference(Record):
    """The plan, its projection, and how to name it. is_current False: nothing runs, it only anchors comparisons.

    step_time_s: the measured step where scores are anchored to one (`scores`), the projected one otherwise.
    """

    plan: ParallelismPlan
    projection: Projection
    label: str
    is_current: bool
    anchored: bool
    step_time_s: float = Field(ge=0)
    good: float = Field(ge=0, description="the objective as a figure of which more is better")
    model_good: float = Field(ge=0, description="the same by the projection alone")


def reference_of(job: Job) -> Reference | None:
    """The current plan; without one the traced layout scaled to these devices, else a plain feasible one.

    None when nothing can be scored or is legal.

    Without a current plan the reference keeps the workload's own precision where such a plan fits: narrower types are
    then a change that a proposal names.
    """
    if job.mode == "none":
        return None
    if job.current is not None:
        return _reference(job.current, job, f"the current plan ({plan_text(job.current)})", is_current=True)
    if job.baseline is not None:
        return _scaled_reference(job.baseline, job)
    space, scores = scored_space(job)
    if scores is None:
        return None
    batch, passing = space.plans, feasible(scores, job)
    unchanged = passing & _stated_numerics(batch, job)
    passing = unchanged if unchanged.any() else passing
    if passing.any():
        plan = batch[_plainest(batch, scores.good, passing)]
        return _reference(plan, job, f"the plainest layout that fits ({plan_text(plan)})", is_current=False)
    plan = batch[int(np.argmin(scores.projections.memory_bytes))]
    label = f"the legal layout that needs least memory ({plan_text(plan)}), which passes no gate"
    return _reference(plan, job, label, is_current=False)


def _scaled_reference(baseline: ParallelismPlan, job: Job) -> Reference:
    """The traced layout on these devices, with the least recompute under which it fits: a trace does not show that."""
    modes: tuple[dict[str, Any], ...] = ({}, {"recompute": "selective"}, {"recompute": "full"})
    tried = [baseline.model_copy(update=mode) for mode in (modes if job.phase == "training" else modes[:1])]
    plan = next((plan for plan in tried if score_one(plan, job).projections.fits[0]), baseline)
    return _reference(plan, job, f"the traced layout scaled to these devices ({plan_text(plan)})", is_current=False)


def _reference(plan: ParallelismPlan, job: Job, label: str, *, is_current: bool) -> Reference:
    scores = score_one(plan, job)
    return Reference(
        plan=plan,
        projection=scores.projections[0],
        label=label,
        is_current=is_current,
        anchored=scores.idle_factor is not None or job.anchor is not None,
        step_time_s=float(scores.step_time_s[0]),
        good=float(scores.good[0]),
        model_good=float(scores.model_good[0]),
    )


def _plainest(batch: PlanBatch, good: NDArray[np.float64], passing: NDArray[np.bool_]) -> int:
    """Of the plans at least half as good as the best: fewest axes in use, then the best, then the first in order.

    Half as good: a layout that nobody would run makes every other one look like a find.
    """
    sensible = passing & (good >= LEAST_SHARE_OF_BEST * good[passing].max())
    axes = np.stack([batch.columns[axis] > 1 for axis in ("tp", "pp", "cp", "ep")]).sum(axis=0)
    order = np.lexsort((np.arange(len(batch)), -good, axes, ~sensible))
    return int(order[0])


def _stated_numerics(batch: PlanBatch, job: Job) -> NDArray[np.bool_]:
    """Plans that compute and store in the workload's precision, where the search has such; shape [n]."""
    field = "compute_dtype" if job.phase == "training" else "weight_dtype"
    cache = ParallelismPlan.model_fields["kv_cache_dtype"].default
    stored = np.asarray(batch.columns["kv_cache_dtype"] == cache, dtype=np.bool_)
    return stored & np.asarray(batch.columns[field] == job.workload.precision, dtype=np.bool_)
