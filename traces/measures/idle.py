"""Idle time of a device by cause, and what the host did in the part it is to blame for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces import intervals
from traces.intervals import Intervals
from traces.kernel_names import LONGEST_NAME
from traces.launches import GapCauses
from traces.linking import NONE, Links
from traces.measure_types import IdleSplit
from traces.shares import union_of
from traces.summary_types import RankSummary, StepShares
from traces.trace import Category, Trace

LONGEST_DISPATCH_NS: Final = 1_000_000
"""Longest time from one launch to the next that a framework at work needs: eager PyTorch under a profiler that records
stacks takes 20 to 200 us an operator."""

_INPUT: Final = re.compile(
    r"data_?loader|data_?load(?:ing)?\b|load_?(?:batch|data)\b|wait_for_(?:batch|data|input)"
    r"|(?:next|get|fetch|read)_?(?:batch|data|inputs?)\b|input_pipeline",
    re.IGNORECASE,
)
_LONG_GAP_NS: Final = 10_000_000
_LARGE_GAP_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class IdleTimes:
    """When a device was idle, by cause; the first four are disjoint and all of its idle time, the others parts of
    host_bound.
    """

    host_bound: Intervals
    launch_gap: Intervals
    dependency: Intervals
    unknown: Intervals
    loading: Intervals
    pause: Intervals


def idle_times(trace: Trace, links: Links, causes: GapCauses) -> IdleTimes:
    """The gaps cut up (`launches.gap_causes`): the host's part comes first, a wait last.

    loading: while a thread that launches device events was inside an operator or annotation that loads input data,
    going by its name. pause: where the host let more than a millisecond pass without a launch, longer than issuing one
    takes: it computed, waited, compiled or read.
    """
    start, end = causes.gaps[:, 0], causes.gaps[:, 1]
    issued = start + causes.host_bound_ns
    waits = end - causes.dependency_ns
    known = causes.unknown_ns == 0
    host_bound = intervals.merge(start, issued)
    paused = causes.host_bound_ns > LONGEST_DISPATCH_NS
    return IdleTimes(
        host_bound=host_bound,
        launch_gap=intervals.merge(issued[known], waits[known]),
        dependency=intervals.merge(waits, end),
        unknown=intervals.merge(start[~known], end[~known]),
        loading=intervals.intersection(host_bound, _loading(trace, links)) if len(host_bound) else intervals.EMPTY,
        pause=intervals.merge(start[paused], issued[paused]),
    )


def idle_split(times: IdleTimes) -> IdleSplit:
    """Lengths of the causes."""
    return IdleSplit(
        host_bound_ns=intervals.length(times.host_bound),
        launch_gap_ns=intervals.length(times.launch_gap),
        dependency_ns=intervals.length(times.dependency),
        unknown_ns=intervals.length(times.unknown),
        input_ns=intervals.length(times.loading),
        pause_ns=intervals.length(times.pause),
    )


def step_idle_split(times: IdleTimes, steps: Sequence[StepShares]) -> IdleSplit | None:
    """The same inside the measured steps: the terms sum to their idle time; None without such a step.

    Where a step marked on the host goes beyond the device's first or last event, the cause of that idle time is
    unknown.
    """
    measured = [step for step in steps if step.role == "measured"]
    if not measured:
        return None

    def inside(covered: Intervals) -> int:
        return sum(intervals.length(intervals.clip(covered, step.start_ns, step.end_ns)) for step in measured)

    host, launch, dependency = inside(times.host_bound), inside(times.launch_gap), inside(times.dependency)
    return IdleSplit(
        host_bound_ns=host,
        launch_gap_ns=launch,
        dependency_ns=dependency,
        unknown_ns=sum(step.idle_ns for step in measured) - host - launch - dependency,
        input_ns=inside(times.loading),
        pause_ns=inside(times.pause),
    )


def merged_idle(ranks: Sequence[RankSummary]) -> IdleSplit | None:
    """Sums over the ranks, so that they add up to the job's idle time: of ranks without device events all is unknown.

    None where no rank has device events.
    """
    if all(rank.idle is None for rank in ranks):
        return None
    splits = [
        rank.idle or IdleSplit(host_bound_ns=0, launch_gap_ns=0, dependency_ns=0, unknown_ns=rank.idle_ns)
        for rank in ranks
    ]
    return IdleSplit(**{name: sum(getattr(one, name) for one in splits) for name in IdleSplit.model_fields})


def one_long_gap(causes: GapCauses, window_ns: int) -> tuple[str, ...]:
    """A warning where one gap is most of the window: such a window shows the recording, or a stall, not the job."""
    if not len(causes.gaps):
        return ()
    lengths = causes.gaps[:, 1] - causes.gaps[:, 0]
    longest = int(lengths.argmax())
    gap_ns = int(lengths[longest])
    if gap_ns < _LONG_GAP_NS or gap_ns < _LARGE_GAP_SHARE * window_ns:
        return ()
    return (
        f"one idle gap of {gap_ns:,} ns is {gap_ns / window_ns:.0%} of the window: the start of the recording or a "
        "stall, rather than the pace of the job",
    )


def _loading(trace: Trace, links: Links) -> Intervals:
    """Times in which a launching thread loads input."""
    named = np.fromiter(
        (_INPUT.search(name, 0, LONGEST_NAME) is not None for name in trace.names), np.bool_, len(trace.names)
    )
    rows = trace.named(trace.rows(Category.CPU_OP, Category.ANNOTATION), named)
    launching = np.unique(trace.thread[links.launch[links.launch != NONE]])
    return union_of(trace, rows[np.isin(trace.thread[rows], launching)])
