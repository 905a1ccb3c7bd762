"""Traces of one job to its TraceSummary, and the summary to the measured TimeBreakdown."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from projector.breakdown import Axis, AxisTime, KindTime, TimeBreakdown
from projector.units import ns_to_s
from traces.content import open_content
from traces.job_plan import JobPlan, plan_job
from traces.measures.bubble import bubble_s_of_step
from traces.merge import SHARES, merge_parts
from traces.naming import Evidence
from traces.pool import map_ranks
from traces.rank import RankParts, rank_parts
from traces.read import DEFAULT_LIMITS, Limits, told_of_job
from traces.rules.kernel_rules import BUILT_IN, KernelRules
from traces.sources import find_sources
from traces.stored.document import read_summary_document
from traces.summary_types import RankSummary, StepShares, TimeShares, TraceSummary
from traces.task import RankTask, Unread, run_task
from traces.trace import Trace

OnProgress = Callable[[int, int, int, str], None]
"""Told of files done, files in all, bytes done, and the name of the last file."""

_POOL_FROM_BYTES: Final = 8 << 20


def read_summary(
    paths: Sequence[Path],
    *,
    limits: Limits = DEFAULT_LIMITS,
    names: Sequence[str] | None = None,
    rules: KernelRules = BUILT_IN,
    workers: int | None = None,
    ray_address: str | None = None,
    on_progress: OnProgress | None = None,
    scratch: Path | None = None,
) -> TraceSummary:
    """Read and summarise the files, folders and archives of one job, each file in a process that lets go of its events.

    rules: what names of kernels say (`traces.rules`). workers: processes; where None as many as there are CPUs, and
    none but this one where the files are small. ray_address: a Ray cluster to read on instead (`traces.ray_pool`).
    on_progress: told after each file how many are done of how many, their bytes on disk, and the name of the last; what
    it raises ends the reading. scratch: where archives are unpacked, the system's place for temporary files where None;
    on Ray a folder all nodes see. One file that holds a stored summary gives that.

    The result does not depend on the order of the files, nor on where they are read.
    Raises as `read_traces` and `summarise`, `TraceError` where a process dies, `WorkersUnavailable` of Ray.
    """
    with find_sources(paths, limits, names, scratch) as sources:
        plan = plan_job(sources, limits, rules=rules)
        if plan.summary is not None:
            content = open_content(plan.summary.path, limits, plan.summary.name)
            return read_summary_document(content).summary
        parts, unread, joined = _read_parts(plan, workers, ray_address, on_progress)
        told = told_of_job(plan, unread, joined, read=len(parts))
    return merge_parts(parts, told)


def _read_parts(
    plan: JobPlan, workers: int | None, ray_address: str | None, on_progress: OnProgress | None
) -> tuple[list[RankParts], list[Unread], list[str]]:
    tasks = plan.tasks
    if workers is None and sum(task.size_bytes for task in tasks) < _POOL_FROM_BYTES:
        workers = 1
    parts: list[RankParts] = []
    unread: list[Unread] = list(plan.unread)
    joined: list[str] = []
    done_bytes = 0
    if on_progress is not None and tasks:
        on_progress(0, len(tasks), 0, tasks[0].name)
    results = map_ranks(run_task, tasks, workers=workers, ray_address=ray_address, title=_title)
    with closing(results):
        for done, finished in enumerate(results, 1):
            task = tasks[finished.index]
            if finished.result is not None:
                parts += finished.result.parts
                unread += finished.result.unread
                joined += finished.result.joined
            elif finished.error is not None:
                unread.append(Unread(task.files[0], finished.error))
            done_bytes += task.size_bytes
            if on_progress is not None:
                on_progress(done, len(tasks), done_bytes, task.name)
    return parts, unread, joined


def _title(task: RankTask) -> str:
    return task.name


def summarise(traces: Sequence[Trace], *, evidence: Evidence = "provenance") -> TraceSummary:
    """One summary for the ranks of one job: the sums of their figures, and each rank's own.

    `evidence="names"` classifies by event category and kernel name alone, for comparison with other tools.
    Raises `InvalidDescription` without a trace, `EmptyTrace` where a trace has nothing to measure, or none has
    anything that takes time.
    """
    files = {(trace.file, id(trace.event_counts)): number for number, trace in enumerate(traces)}
    return merge_parts(rank_parts(trace, evidence, files[trace.file, id(trace.event_counts)]) for trace in traces)


def measured_breakdown(summary: TraceSummary) -> TimeBreakdown:
    """Seconds a step on one device, from the measured window.

    Where the trace marks steps: the mean over the measured steps of all ranks (warm-up and cut ones left out), with
    kinds and axes scaled by the share of their class that lies in those. Otherwise the whole window, once for each
    rank. Kinds and axes are sums of durations, so they may exceed the unions above them where kernels overlap. bubble_s
    is the idle part of the pipeline bubble, None unless every rank shows one.
    """
    windows: Sequence[TimeShares] = [step for rank in summary.ranks for step in complete_steps(rank)] or summary.ranks
    mean = {name: ns_to_s(sum(getattr(window, name) for window in windows)) / len(windows) for name in SHARES}
    compute_scale = _scale(mean["compute_ns"], summary.compute_ns)
    communication_scale = _scale(mean["communication_ns"], summary.communication_ns)
    return TimeBreakdown(
        source="measured",
        total_s=mean["window_ns"],
        compute_s=mean["compute_ns"],
        exposed_communication_s=mean["exposed_communication_ns"],
        overlapped_communication_s=mean["communication_ns"] - mean["exposed_communication_ns"],
        exposed_copy_s=mean["exposed_copy_ns"],
        idle_s=mean["idle_ns"],
        bubble_s=bubble_s_of_step(summary.ranks),
        by_kind=tuple(KindTime(kind=one.kind, time_s=one.total_ns * compute_scale) for one in summary.kernel_classes),
        by_axis=_by_axis(summary, communication_scale),
    )


def complete_steps(rank: RankSummary) -> tuple[StepShares, ...]:
    """Steps that count: profiled whole, and none of the warm-up (`measures.step_statistics`)."""
    return tuple(step for step in rank.steps if step.role == "measured")


def _scale(mean_s: float, whole_ns: int) -> float:
    return mean_s / whole_ns if whole_ns else 0.0


def _by_axis(summary: TraceSummary, scale: float) -> tuple[AxisTime, ...]:
    totals: Counter[Axis] = Counter()
    exposed: Counter[Axis] = Counter()
    for one in summary.collectives:
        totals[one.axis] += one.total_ns
        exposed[one.axis] += one.exposed_ns
    return tuple(
        AxisTime(axis=axis, total_s=total * scale, exposed_s=exposed[axis] * scale)
        for axis, total in totals.most_common()
    )
