"""Trace files to Traces: open under limits, recognise the format by content, hand over to its reader."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traces.content import Limits, open_content
from traces.job_plan import JobPlan, no_summary, plan_job, told_of, unmatched
from traces.reader import find_reader
from traces.rules.kernel_rules import BUILT_IN, KernelRules
from traces.sources import find_sources
from traces.task import Unread, read_task
from traces.trace import Trace

DEFAULT_LIMITS = Limits()

__all__ = ["DEFAULT_LIMITS", "Limits", "find_reader", "read_trace", "read_traces"]


def read_traces(
    paths: Sequence[Path],
    *,
    limits: Limits = DEFAULT_LIMITS,
    names: Sequence[str] | None = None,
    rules: KernelRules = BUILT_IN,
) -> tuple[Trace, ...]:
    """Read the files of one job, one Trace for each file and device, in the order given; all are held in memory.

    paths: files, folders and archives (zip, tar) of ranks. names: what to call each in errors and answers; the names in
    their paths where None. rules: what names of kernels say. Warnings of the job as a whole stand with the first Trace:
    files that were left out, as they have the very bytes of another one, are no traces, or lie broken in a folder or an
    archive.

    Of a JAX profile given as protobuf and as Chrome JSON only the protobuf counts, with a warning; an execution trace
    is joined with the trace of its process.

    Raises `InvalidDescription` (no path, no such file) and the `TraceError`s of files that were named, or where nothing
    can be read at all: `UnknownTraceFormat`, `UnsupportedTrace` (recognised, not read), `EmptyTrace`, `CorruptTrace`,
    `TraceTooLarge`.
    """
    with find_sources(paths, limits, names) as sources:
        plan = plan_job(sources, limits, rules=rules)
        no_summary(plan)
        traces: list[Trace] = []
        unread = list(plan.unread)
        joined: list[str] = []
        for task in plan.tasks:
            found = read_task(task)
            traces += (trace for _, trace in found.traces)
            unread += found.unread
            joined += found.joined
    told = told_of_job(plan, unread, joined, read=len(traces))
    if told:
        traces[0] = replace(traces[0], warnings=(*told, *traces[0].warnings))
    return tuple(traces)


def told_of_job(plan: JobPlan, unread: Sequence[Unread], joined: Sequence[str], *, read: int) -> tuple[str, ...]:
    """Warnings of the reading as a whole; raises where nothing was read, or a named file was not."""
    accounted_for = [*joined, *(one.source.name for one in unread)]
    return (*plan.warnings, *told_of(unread, read=read), *unmatched(plan.companions, accounted_for))


def read_trace(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Trace, ...]:
    """Read one file that is no archive; same errors as `read_traces`."""
    content = open_content(path, limits)
    return find_reader(content).read(content, limits)
