"""Profiler steps and serving iterations of a trace, as windows on the device's time line."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from traces.linking import NONE, Links
from traces.trace import Category, Ints, Trace

_XLA_STEP: Final = re.compile(r"XLA step .*", re.DOTALL)
_PROFILER_STEP: Final = re.compile(r"ProfilerStep#\d+")
_JAX_STEP: Final = re.compile(r"JAX step .*", re.DOTALL)
_ITERATIONS: Final = (
    re.compile(r"step\[(?:DECODE|EXTEND|PREFILL|MIXED|IDLE)\b.*", re.DOTALL),
    re.compile(r"execute_(?:\d+_)?context_.*", re.DOTALL),
)
_MEDIAN_FROM_STEPS = 3


class StepWindow(NamedTuple):
    """One step; half-open."""

    name: str
    start_ns: int
    end_ns: int


def step_windows(trace: Trace, links: Links) -> tuple[StepWindow, ...]:
    """Steps in order of start; () where the trace marks none.

    The steps a TPU core marks itself are taken as they are. Otherwise ProfilerStep#n marks are preferred, then JAX's
    StepTraceAnnotation, SGLang's and vLLM's iterations. A step begins where the device begins its work: at the mark on
    the device where the profiler drew one, otherwise at the first event launched within the mark on the host. Profiler
    and JAX steps follow one another, so each lasts until the next begins, and the time a device waits for its next step
    belongs to the step before; serving iterations end with their own work. Where no event can be traced to its launch,
    the marks on the host are taken as they are.
    """
    for pattern in (_XLA_STEP, _PROFILER_STEP, _JAX_STEP, *_ITERATIONS):
        for windows in (_marked(trace, pattern, Category.DEVICE_ANNOTATION), _launched(trace, links, pattern)):
            if windows:
                return _back_to_back(windows) if pattern in (_PROFILER_STEP, _JAX_STEP) else windows
    return ()


def complete(durations_ns: Sequence[int]) -> list[bool]:
    """Which of three or more steps lasted at least half the median; the profile's start or end cut off the others."""
    if len(durations_ns) < _MEDIAN_FROM_STEPS:
        return [True] * len(durations_ns)
    median = sorted(durations_ns)[len(durations_ns) // 2]
    return [2 * duration >= median for duration in durations_ns]


def _marked(trace: Trace, pattern: re.Pattern[str], category: Category) -> tuple[StepWindow, ...]:
    """Windows of the marks of one category; marks of one name (one a stream) are one step."""
    matches = np.fromiter((pattern.fullmatch(name) is not None for name in trace.names), np.bool_, len(trace.names))
    found: dict[str, StepWindow] = {}
    for row in trace.named(trace.rows(category), matches):
        name, start, end = trace.name(row), int(trace.start_ns[row]), int(trace.end_ns[row])
        known = found.get(name)
        if category is Category.ANNOTATION or known is None:
            key = name if known is None else f"{name} at {start}"
            found[key] = StepWindow(name, start, end)
        else:
            found[name] = StepWindow(name, known.start_ns, max(known.end_ns, end))
    return tuple(sorted(found.values(), key=lambda window: window.start_ns))


def _launched(trace: Trace, links: Links, pattern: re.Pattern[str]) -> tuple[StepWindow, ...]:
    """Windows of the device events that were launched within the marks on the host."""
    marks = _marked(trace, pattern, Category.ANNOTATION)
    known = links.launch != NONE
    if not marks or not known.any():
        return marks
    launched_at = trace.start_ns[links.launch[known]]
    order = np.argsort(launched_at, kind="stable")
    rows, launched_at = links.rows[known][order], launched_at[order]
    windows = (
        _extent(trace, mark, rows[slice(*np.searchsorted(launched_at, (mark.start_ns, mark.end_ns)))]) for mark in marks
    )
    return tuple(sorted((window for window in windows if window is not None), key=lambda window: window.start_ns))


def _extent(trace: Trace, mark: StepWindow, rows: Ints) -> StepWindow | None:
    if not len(rows):
        return None
    return StepWindow(mark.name, int(trace.start_ns[rows].min()), int(trace.end_ns[rows].max()))


def _back_to_back(windows: tuple[StepWindow, ...]) -> tuple[StepWindow, ...]:
    following = [window.start_ns for window in windows[1:]]
    ends = [*following, windows[-1].end_ns]
    return tuple(
        window._replace(end_ns=end) for window, end in zip(windows, ends, strict=True) if end > window.start_ns
    )
