"""What the ranks of a job say of themselves, put together: one TraceSummary, the same in whatever order they come."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from projector.breakdown import Axis
from projector.errors import EmptyTrace, InvalidDescription
from traces.cross_rank.job import cross_rank
from traces.job_ranks import distinct_parts, gaps_told, in_order, job_ranks, numbered
from traces.kernel_table import merged, unpacked
from traces.measures.copies import merged_copies
from traces.measures.idle import merged_idle
from traces.measures.serving import merged_phases
from traces.merge_implied import merge_implied
from traces.patterns.merge import merged_patterns
from traces.rank import RankParts
from traces.summary_types import CollectiveTime, RankSummary, TimeShares, TraceSummary, Window
from traces.work.class_work import merge_work
from traces.xplane.megascale import megascale_table
from traces.xplane.profile_parts import ops_of
from traces.xplane.report import kpis, op_table

SHARES: Final = tuple(TimeShares.model_fields)
_TOP_KERNELS = 20
_TOP_OPS = 500


def merge_parts(all_parts: Iterable[RankParts], told: Sequence[str] = ()) -> TraceSummary:
    """One summary for the ranks of one job: the sums of their figures, and each rank's own, by rank, device and file.

    told: warnings of reading, put before those of the ranks. A profile that is there twice counts once
    (`distinct_parts`); what one rank implies and another does not is true of the job (`merge_implied`).

    Raises `InvalidDescription` without a part, `EmptyTrace` where all windows have no length.
    """
    given, guessed = numbered(in_order(all_parts))
    chosen, repeated = distinct_parts(in_order(given))
    if not chosen:
        raise InvalidDescription("no trace to summarise")
    ranks = tuple(part.summary for part in chosen)
    if not any(rank.window_ns for rank in ranks):
        raise EmptyTrace(
            f"no event of {ranks[0].file} takes any time, and all are at one moment",
            hint="profile at least one whole step, with CPU and device activities",
        )
    table = merged(unpacked(part.table) for part in chosen)
    implied, disagreements = merge_implied(chosen)
    parts_of_profiles = [part.profile for part in chosen if part.profile is not None]
    profiles = [one.profile for one in parts_of_profiles]
    ops = op_table(profiles, map(ops_of, parts_of_profiles))
    job = job_ranks(given, chosen, implied)
    crossed = cross_rank(
        [(part.summary.rank, part.collective_log) for part in chosen if part.collective_log is not None]
    )
    patterns, unknown = merged_patterns([part.patterns for part in chosen], sum(rank.window_ns for rank in ranks))
    of_the_job = (*told, *guessed, *repeated, *gaps_told(job), *disagreements, *crossed.warnings)
    return TraceSummary(
        format=_format(chosen),
        files=tuple(dict.fromkeys(rank.file for rank in ranks)),
        window=_window([rank.window for rank in ranks]),
        ranks=ranks,
        kernel_classes=table.kernel_classes(),
        top_kernels=table.top_kernels(_TOP_KERNELS),
        collectives=_collectives(chosen),
        classification=table.classification(),
        op_table=ops[:_TOP_OPS],
        kpis=kpis(profiles, [one.work for one in parts_of_profiles]),
        megascale=megascale_table(profiles),
        launch_bound_frac=_launch_bound(ranks),
        idle=merged_idle(ranks),
        work=merge_work(part.work for part in chosen),
        copies=merged_copies(rank.copies for rank in ranks),
        serving_phases=merged_phases(part.serving_phases for part in chosen),
        patterns=patterns,
        patterns_unknown=unknown,
        job=job,
        clocks=crossed.clocks,
        skew=crossed.skew,
        lateness=crossed.lateness,
        links=crossed.links,
        implied=implied,
        event_counts=_event_counts(chosen),
        warnings=tuple(dict.fromkeys((*of_the_job, *_of_the_ranks(chosen), *_ops_left_out(len(ops))))),
        **{name: sum(getattr(rank, name) for rank in ranks) for name in SHARES},
    )


def _format(parts: Sequence[RankParts]) -> str:
    """Format of the ranks; of a mixed job the formats, joined."""
    return " and ".join(dict.fromkeys(part.format for part in parts))


def _window(windows: Sequence[Window]) -> Window:
    if len(windows) == 1:
        return windows[0]
    names = {window.name for window in windows}
    name = names.pop() if len(names) == 1 else "windows of different names"
    return Window(
        name=f"{name}, sums over {len(windows)} ranks",
        start_ns=min(window.start_ns for window in windows),
        end_ns=max(window.end_ns for window in windows),
        device=all(window.device for window in windows),
    )


def _collectives(parts: Sequence[RankParts]) -> tuple[CollectiveTime, ...]:
    """The tables of the ranks, lines of one collective and group added up, the costliest first."""
    lines: dict[tuple[str, str], list[tuple[int, CollectiveTime]]] = {}
    for part in parts:
        for line in part.summary.collectives:
            lines.setdefault((line.collective, line.group), []).append((part.event_count, line))
    added = (_added(same) for same in lines.values())
    return tuple(sorted(added, key=lambda line: (-line.total_ns, line.collective, line.group)))


def _added(same: Sequence[tuple[int, CollectiveTime]]) -> CollectiveTime:
    """Lines of several ranks as one, each with the events of its rank."""
    lines = [line for _, line in same]
    messages = [line.message_bytes for line in lines]
    stated = [message for message in messages if message is not None]
    sizes = {line.group_size for line in lines}
    return lines[0].model_copy(
        update={
            "group_size": sizes.pop() if len(sizes) == 1 else None,
            "axis": _axis(same),
            "count": sum(line.count for line in lines),
            "total_ns": sum(line.total_ns for line in lines),
            "exposed_ns": sum(line.exposed_ns for line in lines),
            "message_bytes": sum(stated) if len(stated) == len(messages) else None,
            "on_compute_stream_ns": sum(line.on_compute_stream_ns for line in lines),
            "bus_bytes_per_s": _middle([line.bus_bytes_per_s for line in lines]),
        }
    )


def _axis(same: Sequence[tuple[int, CollectiveTime]]) -> Axis:
    """The axis the ranks know; where they differ, that of the rank with the most events."""
    known = [(-events, line.axis) for events, line in same if line.axis != "unknown"]
    return min(known)[1] if known else "unknown"


def _middle(rates: Sequence[float | None]) -> float | None:
    """Lower median of the ranks' medians."""
    known = sorted(rate for rate in rates if rate is not None)
    return known[(len(known) - 1) // 2] if known else None


def _launch_bound(ranks: Sequence[RankSummary]) -> float | None:
    """Mean over the ranks that know it, by their idle time of known cause: what it is a share of."""
    known = [
        (rank.launch_bound_frac, rank.idle_ns - rank.idle.unknown_ns)
        for rank in ranks
        if rank.launch_bound_frac is not None and rank.idle is not None
    ]
    idle_ns = sum(of_rank_ns for _, of_rank_ns in known)
    return sum(frac * of_rank_ns for frac, of_rank_ns in known) / idle_ns if idle_ns else None


def _event_counts(parts: Sequence[RankParts]) -> dict[str, int]:
    """Events by category, each file once."""
    counts: Counter[str] = Counter()
    for part in {part.source: part for part in parts}.values():
        counts.update(dict(part.event_counts))
    return dict(sorted(counts.items()))


def _ops_left_out(count: int) -> tuple[str, ...]:
    if count <= _TOP_OPS:
        return ()
    return (f"the op table lists {_TOP_OPS} of {count:,} operators, identified ones first, by time",)


def _of_the_ranks(parts: Sequence[RankParts]) -> list[str]:
    """Warnings of the ranks, each with its file where there are several."""
    return [
        (f"{part.summary.file}: " if len(parts) > 1 else "") + warning for part in parts for warning in part.warnings
    ]
