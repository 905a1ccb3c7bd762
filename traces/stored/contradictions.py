"""What cannot be true of a summary: sums that do not hold, and figures that no trace, machine or model has."""

from collections.abc import Sequence
from typing import Final

from projector.specs.record import MOST_DEVICES, Record
from traces.measure_types import CopyTime, IdleSplit
from traces.pattern_types import SequencePattern
from traces.summary_types import CollectiveTime, Implied, KernelClassTime, RankSummary, TimeShares, TraceSummary

_MOST: Final = 2**62
_MOST_WORK: Final = 10**30
"""FLOP, bytes and rates may pass 64 bits, and stay where products of two are numbers still."""
_WORK: Final = ("flop", "bytes", "_per_s", "_per_byte", "_frac", "_ps")
_SIGNED: Final = ("start_ns", "end_ns", "offset_ns")
_DEGREES: Final = ("devices_per_host", "world_size", "tp", "dp", "fsdp", "pp", "cp", "ep")
_LARGEST_SIZE: Final = 2**44


def contradictions(summary: TraceSummary) -> list[tuple[str, str]]:
    """(where, what) for every sum that does not hold, and every figure that nothing can have."""
    if not summary.ranks:
        return [("summary", "it holds no rank")]
    of_the_job = (*_of_implied(summary.implied), *_impossible(summary), *_of_shares(summary), *_of_job(summary))
    wrong = [("summary", text) for text in of_the_job]
    for rank in summary.ranks:
        title = f"rank {rank.rank}" if rank.rank is not None else "a rank"
        wrong += [(title, text) for text in (*_of_shares(rank), *_of_rank(rank))]
        wrong += [(f"{title}, one step", text) for step in rank.steps for text in _of_shares(step)]
    return wrong


def _of_job(summary: TraceSummary) -> list[str]:
    wrong = []
    for name in TimeShares.model_fields:
        total = sum(getattr(rank, name) for rank in summary.ranks)
        if total != getattr(summary, name):
            wrong.append(f"{name} is {getattr(summary, name)}, its ranks sum to {total}")
    if any(count < 0 for count in summary.event_counts.values()):
        wrong.append("it counts less than no event")
    longest_ns = max(rank.window_ns for rank in summary.ranks)
    return [
        *wrong,
        *_of_idle(summary.idle, summary.idle_ns),
        *_of_parts(summary, longest_ns),
        *_of_patterns(summary.patterns, summary.window_ns),
    ]


def _of_patterns(patterns: Sequence[SequencePattern], window_ns: int) -> list[str]:
    """Patterns that take longer than their windows, or of which more is exposed than there is."""
    return [
        f"a pattern takes {one.total_ns} ns, {one.exposed_ns} ns of it exposed, of windows of {window_ns} ns"
        for one in patterns
        if not one.exposed_ns <= one.total_ns <= window_ns
    ]


def _of_shares(shares: TimeShares) -> list[str]:
    parts = shares.compute_ns + shares.exposed_communication_ns + shares.exposed_copy_ns + shares.idle_ns
    wrong = []
    if parts != shares.window_ns:
        wrong.append(f"its parts sum to {parts} ns, its window is {shares.window_ns} ns")
    if shares.exposed_communication_ns > shares.communication_ns or shares.exposed_copy_ns > shares.copy_ns:
        wrong.append("more is exposed than there is")
    if shares.unclassified_ns > shares.compute_ns:
        wrong.append("more is unclassified than is compute")
    return wrong


def _of_rank(rank: RankSummary) -> list[str]:
    wrong = []
    length = rank.window.end_ns - rank.window.start_ns
    if length != rank.window_ns:
        wrong.append(
            f"its window is from {rank.window.start_ns} to {rank.window.end_ns} ns and {rank.window_ns} ns long"
        )
    in_steps = sum(step.idle_ns for step in rank.steps if step.role == "measured")
    return [
        *wrong,
        *_of_idle(rank.idle, rank.idle_ns),
        *_of_idle(rank.step_idle, in_steps),
        *_of_parts(rank, rank.window_ns),
    ]


def _of_idle(split: IdleSplit | None, idle_ns: int) -> list[str]:
    if split is None:
        return []
    parts = split.host_bound_ns + split.launch_gap_ns + split.dependency_ns + split.unknown_ns
    wrong = [] if parts == idle_ns else [f"its idle time splits into {parts} ns, it has {idle_ns} ns"]
    if max(split.input_ns, split.pause_ns) > split.host_bound_ns:
        wrong.append("the host's parts of the idle time are longer than all the host is to blame for")
    return wrong


def _of_parts(shares: RankSummary | TraceSummary, window_ns: int) -> list[str]:
    """Kernels, collectives and copies that last longer than their window, or are exposed for longer than they last."""
    may_hide: tuple[CollectiveTime | CopyTime, ...] = (*shares.collectives, *shares.copies)
    timed: tuple[KernelClassTime | CollectiveTime | CopyTime, ...] = (*shares.kernel_classes, *may_hide)
    too_long = [
        f"{one.count} events last {one.total_ns} ns in a window of {window_ns} ns"
        for one in timed
        if one.total_ns > one.count * window_ns
    ]
    exposed = [
        f"{one.exposed_ns} of {one.total_ns} ns of a collective or copy are exposed"
        for one in may_hide
        if one.exposed_ns > one.total_ns
    ]
    return [*too_long, *exposed]


def _of_implied(implied: Implied) -> list[str]:
    """Sizes and degrees that no machine and no model has: all that the planner divides and multiplies by."""
    degrees = {name: found.value for name in _DEGREES if (found := getattr(implied, name)) is not None}
    sizes = {name: value for name, value in implied.shapes if isinstance(value, int)}
    if implied.hbm_bytes is not None:
        sizes["hbm_bytes"] = implied.hbm_bytes.value
    return [
        *(_told(name, value) for name, value in degrees.items() if not 1 <= value <= MOST_DEVICES),
        *(_told(name, value) for name, value in sizes.items() if not 1 <= value <= _LARGEST_SIZE),
    ]


def _impossible(record: Record) -> list[str]:
    """Numbers below zero or beyond any trace in the record and in those it holds, and shares of idle above one."""
    wrong: list[str] = []
    for name, value in record:
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Record):
                wrong += _impossible(one)
            elif isinstance(one, (int, float)) and not _is_possible(name, one):
                wrong.append(_told(name, one))
    return wrong


def _is_possible(name: str, number: float) -> bool:
    if name in _SIGNED:
        return abs(number) < _MOST
    if name in ("launch_bound_frac", "ideal_frac"):
        return 0 <= number <= 1
    return 0 <= number < (_MOST_WORK if name.endswith(_WORK) else _MOST)


def _told(name: str, number: float) -> str:
    return f"{name} is {number:.6g}" if abs(number) < _MOST else f"{name} is beyond any trace"
