"""What has to hold of every Trace and every summary, whatever bytes they came from."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from projector import catalog
from traces.content import Content
from traces.cross_rank.placed import place_links
from traces.stored.document import document_of, read_summary_document
from traces.stored.redact import redact
from traces.summary import measured_breakdown, summarise
from traces.summary_types import RankSummary, TimeShares, TraceSummary
from traces.trace import ABSENT, Category, Trace
from traces.work.placed import place_work

_MOST_WARNINGS: Final = 500
_LONGEST_WARNING: Final = 4_000
_CHIP: Final = "h100-sxm"
_BY_ROW: Final = ("collectives", "inputs", "copy_kinds", "stated_flop")


def check_traces(traces: Sequence[Trace]) -> None:
    """Columns fit together, times are in order, everything refers to something, every text can be written."""
    assert traces, "a reader gives at least one trace, or raises"
    for trace in traces:
        for name in Trace.__slots__:
            value = getattr(trace, name)
            if isinstance(value, np.ndarray):
                assert value.shape == (len(trace),), name
        assert (trace.duration_ns >= 0).all()
        assert (np.diff(trace.start_ns) >= 0).all()
        assert (trace.end_ns >= trace.start_ns).all(), "no end overflows"
        assert np.isin(trace.category, list(map(int, Category))).all()
        assert np.isin(trace.name_id, np.arange(len(trace.names))).all()
        host = ~np.isin(
            trace.category, [int(Category[name]) for name in ("KERNEL", "MEMCPY", "MEMSET", "DEVICE_ANNOTATION")]
        )
        assert (trace.stream[host] == ABSENT).all()
        for name in _BY_ROW:
            assert all(0 <= row < len(trace) for row in getattr(trace, name)), name
        for text in (*trace.names, *trace.warnings, trace.metadata.trace_name):
            text.encode()
        _check_warnings(trace.warnings)


def check_summary(summary: TraceSummary) -> None:
    """Identities to the nanosecond, and a document that says the same when it is read again."""
    for shares in (summary, *summary.ranks, *(step for rank in summary.ranks for step in rank.steps)):
        check_shares(shares)
    for rank in summary.ranks:
        _check_rank(rank)
    _check_warnings(summary.warnings)
    for name in TimeShares.model_fields:
        assert getattr(summary, name) == sum(getattr(rank, name) for rank in summary.ranks), name
    for one in (*summary.kernel_classes, *summary.top_kernels, *summary.classification, *summary.collectives):
        assert one.count >= 0
        assert one.total_ns >= 0
    written = document_of(summary, redacted=False).model_dump_json().encode()
    assert read_summary_document(Content("summary.json", written)).summary == summary
    redact(summary)
    placed = place_links(place_work(summary, catalog.chip(_CHIP)), catalog.chip(_CHIP))
    assert TraceSummary.model_validate_json(placed.model_dump_json()) == placed
    assert measured_breakdown(summary).total_s >= 0


def _check_warnings(warnings: Sequence[str]) -> None:
    """Few and short, however much is wrong: people read them."""
    assert len(warnings) <= _MOST_WARNINGS, f"{len(warnings)} warnings"
    assert all(len(warning) <= _LONGEST_WARNING for warning in warnings), "a warning without end"


def check_shares(shares: TimeShares) -> None:
    parts = shares.compute_ns + shares.exposed_communication_ns + shares.exposed_copy_ns + shares.idle_ns
    assert parts == shares.window_ns
    assert shares.exposed_communication_ns <= shares.communication_ns
    assert shares.exposed_copy_ns <= shares.copy_ns
    assert shares.unclassified_ns <= shares.compute_ns


def _check_rank(rank: RankSummary) -> None:
    assert rank.window.end_ns - rank.window.start_ns == rank.window_ns
    if rank.idle is not None:
        idle = rank.idle
        assert idle.host_bound_ns + idle.launch_gap_ns + idle.dependency_ns + idle.unknown_ns == rank.idle_ns
    if rank.launch_bound_frac is not None:
        assert 0 <= rank.launch_bound_frac <= 1


def checked(traces: Sequence[Trace]) -> TraceSummary:
    """The summary of traces that are sound, sound itself."""
    check_traces(traces)
    summary = summarise(traces)
    check_summary(summary)
    return summary


def difference(one: Trace, other: Trace) -> str:
    """The first field in which two traces differ, and how; "" where they are the same."""
    for name in Trace.__slots__:
        mine, theirs = getattr(one, name), getattr(other, name)
        same = np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
        if not same:
            return f"{name}: {mine!r:.300} and {theirs!r:.300}"
    return ""
