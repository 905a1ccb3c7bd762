"""Traces of one job to its TraceSummary, and the summary to the measured TimeBreakdown."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from projector.breakdown import Axis, AxisTime, KindTime, TimeBreakdown
from projector.errors import InvalidDescription
from projector.units import ns_to_s
from traces.collectives import collective_table
from traces.infer import imply
from traces.infer_mesh import Mesh
from traces.kernel_table import merged
from traces.naming import Evidence
from traces.rank import RankParts, rank_parts
from traces.read import DEFAULT_LIMITS, Limits, read_traces
from traces.steps import complete
from traces.summary_types import CollectiveTime, RankSummary, StepShares, TimeShares, TraceSummary, Window
from traces.trace import Trace
from traces.xplane.report import kpis, op_table

_TOP_KERNELS = 20
_TOP_OPS = 500
_SHARES = tuple(TimeShares.model_fields)


def read_summary(
    paths: Sequence[Path], *, limits: Limits = DEFAULT_LIMITS, names: Sequence[str] | None = None
) -> TraceSummary:
    """Read and summarise the files of one job. Arguments and errors as of `read_traces`, errors of `summarise`."""
    return summarise(read_traces(paths, limits=limits, names=names))


def summarise(traces: Sequence[Trace], *, evidence: Evidence = "provenance") -> TraceSummary:
    """One summary for the ranks of one job: the sums of their figures, and each rank's own.

    `evidence="names"` classifies by event category and kernel name alone, for comparison with other tools.
    Raises `InvalidDescription` without a trace, `EmptyTrace` where a trace has nothing that takes time.
    """
    if not traces:
        raise InvalidDescription("no trace to summarise")
    parts = tuple(rank_parts(trace, evidence) for trace in traces)
    ranks = tuple(part.summary for part in parts)
    table = merged(part.table for part in parts)
    implied, mesh = imply([part.facts for part in parts])
    profiles = [trace.profile for trace in traces if trace.profile is not None]
    ops = op_table(profiles)
    return TraceSummary(
        format=traces[0].format,
        files=tuple(dict.fromkeys(trace.file for trace in traces)),
        window=_window(parts),
        ranks=ranks,
        kernel_classes=table.kernel_classes(),
        top_kernels=table.top_kernels(_TOP_KERNELS),
        collectives=_collectives(parts, mesh),
        classification=table.classification(),
        op_table=ops[:_TOP_OPS],
        kpis=kpis(profiles),
        launch_bound_frac=_launch_bound(parts),
        implied=implied,
        event_counts=_event_counts(traces),
        warnings=_warnings(parts) + _ops_left_out(len(ops)),
        **{name: sum(getattr(rank, name) for rank in ranks) for name in _SHARES},
    )


def measured_breakdown(summary: TraceSummary) -> TimeBreakdown:
    """Seconds a step on one device, from the measured window.

    Where the trace marks steps: the mean over the complete steps of all ranks, with kinds and axes scaled by the share
    of their class that lies in those. Otherwise the whole window, once for each rank. Kinds and axes are sums of
    durations, so they may exceed the unions above them where kernels overlap. bubble_s is None: one rank's trace does
    not show it.
    """
    windows: Sequence[TimeShares] = [step for rank in summary.ranks for step in complete_steps(rank)] or summary.ranks
    mean = {name: ns_to_s(sum(getattr(window, name) for window in windows)) / len(windows) for name in _SHARES}
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
        by_kind=tuple(KindTime(kind=one.kind, time_s=one.total_ns * compute_scale) for one in summary.kernel_classes),
        by_axis=_by_axis(summary, communication_scale),
    )


def complete_steps(rank: RankSummary) -> tuple[StepShares, ...]:
    """Steps that were profiled whole; a step far shorter than the others was cut off."""
    whole = complete([step.window_ns for step in rank.steps])
    return tuple(step for step, is_whole in zip(rank.steps, whole, strict=True) if is_whole)


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


def _window(parts: Sequence[RankParts]) -> Window:
    first = parts[0].summary.window
    if len(parts) == 1:
        return first
    windows = [part.summary.window for part in parts]
    return Window(
        name=f"whole file, sums over {len(parts)} ranks",
        start_ns=min(window.start_ns for window in windows),
        end_ns=max(window.end_ns for window in windows),
        device=all(window.device for window in windows),
    )


def _collectives(parts: Sequence[RankParts], mesh: Mesh) -> tuple[CollectiveTime, ...]:
    """The tables of the ranks, lines of one collective and group added up."""
    lines: dict[tuple[str, str], list[CollectiveTime]] = {}
    for part in parts:
        for line in collective_table(part.facts.trace, part.facts.communications, part.cover.compute, mesh.axis_of):
            lines.setdefault((line.collective, line.group), []).append(line)
    added = (_added(same) for same in lines.values())
    return tuple(sorted(added, key=lambda line: (-line.total_ns, line.collective, line.group)))


def _added(same: list[CollectiveTime]) -> CollectiveTime:
    messages = [line.message_bytes for line in same]
    stated = [message for message in messages if message is not None]
    sizes = {line.group_size for line in same}
    axes = {line.axis for line in same}
    return same[0].model_copy(
        update={
            "group_size": sizes.pop() if len(sizes) == 1 else None,
            "axis": axes.pop() if len(axes) == 1 else "unknown",
            "count": sum(line.count for line in same),
            "total_ns": sum(line.total_ns for line in same),
            "exposed_ns": sum(line.exposed_ns for line in same),
            "message_bytes": sum(stated) if len(stated) == len(messages) else None,
        }
    )


def _launch_bound(parts: Sequence[RankParts]) -> float | None:
    """Mean over the ranks that know it, by their idle time."""
    known = [
        (part.summary.launch_bound_frac, part.summary.idle_ns)
        for part in parts
        if part.summary.launch_bound_frac is not None
    ]
    idle = sum(idle_ns for _, idle_ns in known)
    return sum(frac * idle_ns for frac, idle_ns in known) / idle if idle else None


def _event_counts(traces: Sequence[Trace]) -> dict[str, int]:
    """Events by category, each file once."""
    counts: Counter[str] = Counter()
    for trace in {(trace.file, id(trace.event_counts)): trace for trace in traces}.values():
        counts.update(trace.event_counts)
    return dict(sorted(counts.items()))


def _ops_left_out(count: int) -> tuple[str, ...]:
    if count <= _TOP_OPS:
        return ()
    return (f"the op table lists {_TOP_OPS} of {count:,} operators, identified ones first, by time",)


def _warnings(parts: Sequence[RankParts]) -> tuple[str, ...]:
    ranks = Counter((part.summary.rank, part.summary.device) for part in parts if part.summary.rank is not None)
    told = [f"rank {rank} appears {count} times; each is counted" for (rank, _), count in ranks.items() if count > 1]
    for part in parts:
        prefix = f"{part.summary.file}: " if len(parts) > 1 else ""
        told.extend(prefix + warning for warning in part.warnings)
    return tuple(dict.fromkeys(told))
