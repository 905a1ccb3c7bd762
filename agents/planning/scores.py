"""One way to score plans, whatever is known of the job, and how good each is beside the measured step.

absolute  model and chip are known: every figure is projected.
anchored  absolute, and the steps that a trace marks measured the current plan: every projection is corrected by what
          they showed (`projector.anchor`), and gains are against the measured step.
idle      absolute, and a window that is no such step shows idle time that the cost model does not: the projected ratio
          applies to the busy part only, and the idle part scales as `projector.relative` scales it.
relative  model or chip is unknown: the measured step is scaled.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agents.frameworks import Framework, framework_called, stack_of
from agents.planning.job import Job
from projector import catalog
from projector.anchor.anchored_batch import AnchoredBatch
from projector.breakdown import Projection, TimeBreakdown
from projector.errors import InvalidDescription
from projector.project import project_many
from projector.ranking.task import within
from projector.relative import RelativeBatch, project_relative_many
from projector.search_space import Space, explore
from projector.specs.objective import Rejection, Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import FIELDS, PlanBatch

Column = NDArray[np.float64]

LEAST_UNSEEN_IDLE = 0.05
# objectives that a measured idle time does not scale
NOT_TIME = frozenset(
    {
        *("memory_per_chip_gb", "memory_per_gpu_gb", "weights_gb", "kv_cache_gb", "activation_gb", "replica_gpus"),
        *("max_concurrent_sequences", "max_sustainable_concurrency", "mixed_step_fraction_pct", "tpot_pollution_pct"),
        *("energy_per_token_j", "avg_power_w", "joules_per_output_token", "joules_per_total_token"),
        *("prefill_comm_ms", "decode_comm_ms"),
    }
)


class Projections(Protocol):
    """What both projections give: columns of shape [n], and one record on demand."""

    @property
    def step_time_s(self) -> Column:
        """Seconds a step."""
        ...

    @property
    def memory_bytes(self) -> Column:
        """Bytes on the fullest device; NaN where nobody knows."""
        ...

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether they fit; True where nobody knows."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Projection: ...

    def objective(self, name: str) -> Column:
        """The objective's value, in its own unit."""
        ...

    def slo_misses(self, slo: Slo) -> list[tuple[Rejection, ...]]:
        """Latency budgets each plan misses."""
        ...


@dataclass(frozen=True)
class Scores:
    """Columns of shape [n].

    good         the objective as a figure of which more is better; the ratio of two is a gain. 0: not defined
    model_good   the same by the projection alone, without the idle time of a window that is no step
    step_time_s  expected seconds a step
    idle_factor  idle time over that of the current plan, where that of a window is scaled beside the projection
    """

    batch: PlanBatch
    projections: Projections
    good: Column
    model_good: Column
    step_time_s: Column
    idle_factor: Column | None

    def __len__(self) -> int:
        return len(self.batch)


def legal_space(job: Job) -> Space:
    """Every legal plan that keeps the constraints and that the named stack runs, the current one included when it is
    legal, and what was left out."""
    if job.framework is None:
        return explore(job.workload, job.architecture, job.cluster, job.hardware, job.constraints, job.current)
    framework = framework_called(job.framework)
    space = _run_by(framework, job)
    if framework.accumulates or job.mode != "absolute":
        return space
    if len(space.plans) and _project(space.plans, job).fits.any():
        return space
    # recipes that do not accumulate do so where nothing fits otherwise
    return _run_by(replace(framework, accumulates=True), job)


def scored_space(job: Job) -> tuple[Space, Scores | None]:
    """The legal space with its scores, None where it is empty. The last one asked for is kept: the steps of one run ask
    for the same. InvalidDescription as `score`."""
    return _scored_space(job.model_dump_json(round_trip=True), catalog.catalog_fingerprint())


@lru_cache(maxsize=1)
def _scored_space(job_json: str, catalogue: str) -> tuple[Space, Scores | None]:
    del catalogue  # a chip that changed makes another key
    job = Job.model_validate_json(job_json)
    space = legal_space(job)
    return space, score(space.plans, job) if len(space.plans) else None


def _run_by(framework: Framework, job: Job) -> Space:
    stack = stack_of(framework)
    limits = within(job.constraints, stack)
    space = explore(job.workload, job.architecture, job.cluster, job.hardware, limits, job.current)
    plans = stack.runs(space.plans)
    note = f"{framework.name}: only what it has is searched"
    if job.current is not None and _holds(space.plans, job.current) and not _holds(plans, job.current):
        plans = PlanBatch.concat([plans, PlanBatch.from_plans([job.current])])
        note += ", and the current plan, which it is not known to run"
    return Space(plans, (*space.notes, note))


def _holds(batch: PlanBatch, plan: ParallelismPlan) -> bool:
    return bool(np.logical_and.reduce([batch.columns[field] == getattr(plan, field) for field in FIELDS]).any())


def score(batch: PlanBatch, job: Job) -> Scores:
    """The batch on the job's own cluster. InvalidDescription for a job whose mode is none."""
    projections = _project(batch, job)
    model_good = _goodness(batch, projections, job)
    unseen_idle = job.mode == "absolute" and job.anchor is None
    if unseen_idle and job.current is not None and job.measured is not None:
        current = PlanBatch.from_plans([job.current])
        now = _project(current, job)
        unseen = _unseen_idle_frac(job.measured, now[0].breakdown)
        good_now = float(_goodness(current, now, job)[0])
        if unseen >= LEAST_UNSEEN_IDLE and good_now > 0 and job.objective not in NOT_TIME:
            launching = batch if job.phase == "training" else _only_graphs(batch, job.current)
            idle_s = _relative(launching, job, job.current, job.measured).idle.total.estimate
            idle_factor = idle_s / job.measured.idle_s
            idle = unseen * idle_factor
            steps = (1 - unseen) * projections.step_time_s / now.step_time_s[0] + idle
            made = _made_a_step(batch, job) / _made_a_step(current, job)[0]
            return Scores(
                batch=batch,
                projections=projections,
                good=_inverse((1 - unseen) * good_now * _inverse(model_good) + idle / made) * (model_good > 0),
                model_good=model_good / good_now,
                step_time_s=job.measured.total_s * steps,
                idle_factor=idle_factor,
            )
    return Scores(batch, projections, model_good, model_good, projections.step_time_s, None)


def score_one(plan: ParallelismPlan, job: Job) -> Scores:
    """One plan: a batch of one."""
    return score(PlanBatch.from_plans([plan]), job)


def feasible(scores: Scores, job: Job) -> NDArray[np.bool_]:
    """Plans that pass the gates, shape [n]: memory fits (unknown passes), and no latency budget is missed."""
    misses = scores.projections.slo_misses(job.slo)
    return scores.projections.fits & np.array([not missed for missed in misses], dtype=np.bool_)


def _project(batch: PlanBatch, job: Job) -> Projections:
    hardware = job.hardware
    if job.architecture is not None and hardware is not None:
        modelled = project_many(batch, job.workload, job.architecture, job.cluster, hardware, software=job.software)
        return modelled if job.anchor is None else AnchoredBatch.of(modelled, job.anchor, job.cluster, hardware)
    if job.current is not None and job.measured is not None:
        return _relative(batch, job, job.current, job.measured)
    raise InvalidDescription("neither a known model and chip nor a measured step of a known plan: nothing to score")


def _relative(batch: PlanBatch, job: Job, current: ParallelismPlan, measured: TimeBreakdown) -> RelativeBatch:
    return project_relative_many(batch, current, measured, job.cluster, job.hardware)


def _only_graphs(batch: PlanBatch, current: ParallelismPlan) -> PlanBatch:
    """The current serving plan with each plan's graph replay: no layout saves launches.

    A serving pipeline keeps pp batches in flight and launches each anew, so a stage launches as much as one device did.
    """
    columns = current.model_dump() | {"cuda_graphs": batch.columns["cuda_graphs"]}
    return PlanBatch.from_columns(len(batch), **columns)


def _unseen_idle_frac(measured: TimeBreakdown, modelled: TimeBreakdown) -> float:
    """Share of the measured step that is idle beyond what the model projects for the same plan."""
    if measured.total_s <= 0 or modelled.total_s <= 0:
        return 0.0
    return max(0.0, measured.idle_s / measured.total_s - modelled.idle_s / modelled.total_s)


def _made_a_step(batch: PlanBatch, job: Job) -> Column:
    """What the objective counts, a step: requests that decode one token each, for a throughput of serving; else 1."""
    if job.phase == "training" or job.target.direction == "minimise" or job.workload.concurrency is None:
        return np.ones(len(batch))
    seats = np.asarray(batch.max_num_seqs * (batch.dp // batch.attention_dp), dtype=np.float64)
    return np.minimum(seats, float(job.workload.concurrency))


def _goodness(batch: PlanBatch, projections: Projections, job: Job) -> Column:
    """With the model unknown only the step time is known; throughput is what a step makes over it."""
    if job.mode == "relative" or job.objective == "step_time_s":
        return _made_a_step(batch, job) * _inverse(projections.step_time_s)
    values = np.asarray(projections.objective(job.objective), dtype=np.float64)
    values = np.where(np.isfinite(values), values, 0.0)
    return values if job.target.direction == "maximise" else _inverse(values)


def _inverse(values: Column) -> Column:
    return np.divide(1.0, values, out=np.zeros_like(values, dtype=np.float64), where=values > 0)
