"""For one sample and one other tool: agreement, or what is wrong there and why; an error where nobody knows why.

What counts as explained, each with its own bound:
- HTA truncates start and duration of every event to whole microseconds: up to one microsecond a kernel, and two at the
  ends. On files that hold whole microseconds it must agree to the digit.
- HTA counts `cuda_sync` events, which wait and do nothing, as device work (fixed for its idle breakdown alone, PR 149).
- TraceLens reads times as doubles (a quarter of a microsecond an event where times are absolute), and drops kernels
  that it cannot link to a host operator.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.validation.peers import (
    HTA_VERSIONS,
    Figures,
    Peer,
    as_hta,
    as_tracelens,
    communication_pattern,
    hta_of,
    tracelens_of,
)
from traces import intervals
from traces.linking import NONE, link
from traces.shares import union_of
from traces.summary_types import TraceSummary
from traces.trace import Trace

_ROUNDING_TOLD_FROM_FRAC = 0.01
_COMMUNICATION_TOLD_FROM_FRAC = 0.01


class Unexplained(AssertionError):
    """A figure of ours differs from another tool's and nobody knows why."""


def verdicts(reference: Path, name: str, rank: int, trace: Trace, summary: TraceSummary) -> Iterator[tuple[str, str]]:
    """(tool, sentence) for every tool that was run on the file; sentences of agreement begin with "agrees"."""
    for version in HTA_VERSIONS:
        peer = hta_of(reference, version, name, rank)
        if peer is not None:
            for sentence in _of_hta(peer, version, trace, summary):
                yield version, sentence
    peer = tracelens_of(reference, name) if rank == 0 else None
    if peer is not None:
        for sentence in _of_tracelens(peer, trace, summary):
            yield peer.tool, sentence


def _of_hta(peer: Peer, version: str, trace: Trace, summary: TraceSummary) -> Iterator[str]:
    if peer.figures is None:
        yield f"fails: {peer.failure[:110]}"
        return
    ours, events = as_hta(trace, version)
    everything = len(trace.device_rows)
    if summary.event_counts.get("cuda_sync"):
        yield (
            f"counts {summary.event_counts['cuda_sync']} cuda_sync events as device work: "
            f"span {peer.figures.span_us:,.0f} us instead of {ours.span_us:,.0f}"
        )
        return
    off_us = _furthest(peer.figures, ours)
    if off_us > events + 2:
        raise Unexplained(f"{version} and ours differ by {off_us} us over {events} events: {peer.figures}, {ours}")
    lost = (ours.compute_us - peer.figures.compute_us) / ours.compute_us if ours.compute_us else 0.0
    if off_us == 0:
        yield f"agrees exactly on its window ({events:,} events)"
    else:
        yield f"agrees within its rounding of 1 us an event (off by {off_us:,.1f} us over {events:,} events)"
    if lost > _ROUNDING_TOLD_FROM_FRAC:
        yield f"loses {lost:.1%} of the compute time by rounding every kernel to whole microseconds"
    if events < everything:
        yield f"leaves out {everything - events:,} of {everything:,} device events: those of the last profiler step"
    yield from _missed_communication(version, trace, summary)


def _of_tracelens(peer: Peer, trace: Trace, summary: TraceSummary) -> Iterator[str]:
    if peer.figures is None:
        yield f"fails: {peer.failure[:110]}"
        return
    ours, events = as_tracelens(trace)
    off_us = _furthest(peer.figures, ours)
    if off_us <= max(0.25 * events, 0.1):
        yield f"agrees (off by {off_us:,.3f} us over {events:,} events read as doubles)"
    else:
        links = link(trace)
        unlinked = int(np.count_nonzero(links.operator == NONE))
        lost_us = ours.compute_us - peer.figures.compute_us
        if lost_us <= 0 or not unlinked:
            raise Unexplained(f"TraceLens and ours differ by {off_us} us: {peer.figures}, {ours}")
        yield (
            "drops kernels it cannot link to a host operator: "
            f"compute {peer.figures.compute_us / 1000:,.3f} ms instead of {ours.compute_us / 1000:,.3f} ms"
        )
    theirs = peer.figures.communication_us or 0.0
    hidden = summary.communication_ns / 1000 - theirs
    if hidden > _COMMUNICATION_TOLD_FROM_FRAC * summary.window_ns / 1000:
        yield f"sees {theirs / 1000:,.3f} of {summary.communication_ns / 1e6:,.3f} ms of communication"


def _missed_communication(version: str, trace: Trace, summary: TraceSummary) -> Iterator[str]:
    pattern = communication_pattern(version)
    rows = trace.device_rows
    named = np.array([pattern.match(name) is not None for name in trace.names], np.bool_)
    theirs_ns = intervals.length(union_of(trace, rows[named[trace.name_id[rows]]]))
    if summary.communication_ns - theirs_ns > _COMMUNICATION_TOLD_FROM_FRAC * summary.window_ns:
        yield f"sees {theirs_ns / 1e6:,.3f} of {summary.communication_ns / 1e6:,.3f} ms of communication"
    elif theirs_ns > summary.communication_ns * 1.01 + 1000:
        yield f"takes {theirs_ns / 1e6:,.3f} ms for communication, of which {summary.communication_ns / 1e6:,.3f} ms is"


def _furthest(a: Figures, b: Figures) -> float:
    return max(abs(a.span_us - b.span_us), abs(a.compute_us - b.compute_us), abs(a.idle_us - b.idle_us))
