"""Steps of a trace: what marks them, and the window of each on the device's time line."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from traces.grouping import over_ranges
from traces.linking import NONE, Links
from traces.measures.iterations import is_numbered, stem_of
from traces.measures.serving_names import family_of
from traces.trace import Category, Trace

_XLA_STEP: Final = re.compile(r"XLA step .*", re.DOTALL)
_PROFILER_STEP: Final = re.compile(r"ProfilerStep#\d+")
_JAX_STEP: Final = re.compile(r"JAX step .*", re.DOTALL)
_OPTIMIZER_STEP: Final = re.compile(r"Optimizer\.step#.*", re.DOTALL)
_MEDIAN_FROM_STEPS = 3
_FEWEST_OPTIMIZER_STEPS = 3
_UNEVEN_FROM = 10
_LEAST_COVER = 0.5
_NAME_SHOWN = 80

SERVING_ITERATIONS: Final = "serving iterations"


class StepWindow(NamedTuple):
    """One step; half-open."""

    name: str
    start_ns: int
    end_ns: int


Windows = tuple[StepWindow, ...]


class Steps(NamedTuple):
    """Steps in order of start, and what marks them; no windows: the trace marks none."""

    marks: str
    windows: Windows


def find_steps(trace: Trace, links: Links) -> Steps:
    """The steps of a trace by the first kind of mark it has, in this order:

      XLA steps           a TPU core marks them itself; taken as they are
      profiler steps      ProfilerStep#n of the PyTorch profiler
      JAX steps           StepTraceAnnotation
      serving iterations  what vLLM, SGLang and others write (`measures.serving_names`)
      annotations         "iteration 12", "train_step", "batch 3" and the like, of Kineto or NVTX
                          (`measures.iterations`): those of one name that take most of the time from their first to
                          their last, where they are numbered or come twice, and do not overlap
      optimizer steps     from the end of one Optimizer.step to that of the next: where there are three or more, and
                          none lasts more than ten times their median (an optimizer that steps inside the backward
                          pass marks no iterations)

    A step begins where the device begins its work: at the mark on the device where the profiler drew one, otherwise at
    the first event launched within the mark on the host. All but serving iterations follow one another, so each lasts
    until the next begins, and the time a device waits for its next step belongs to the step before; serving iterations
    end with their own work. Where no event can be traced to its launch, the marks on the host are taken as they are.
    """
    if steps := _drawn_or_launched(trace, links, _XLA_STEP):
        return Steps("XLA steps", steps)
    for marks, pattern in (("profiler steps", _PROFILER_STEP), ("JAX steps", _JAX_STEP)):
        if steps := _drawn_or_launched(trace, links, pattern):
            return Steps(marks, _back_to_back(steps))
    if steps := serving_windows(trace, links):
        return Steps(SERVING_ITERATIONS, steps)
    named, steps = _named_iterations(trace, links)
    if steps:
        return Steps(f"annotations '{named}'", _back_to_back(steps))
    if steps := _optimizer_steps(trace, links):
        return Steps("optimizer steps", steps)
    return Steps("", ())


def step_windows(trace: Trace, links: Links) -> Windows:
    """The windows of `find_steps`; () where the trace marks none."""
    return find_steps(trace, links).windows


def serving_windows(trace: Trace, links: Links) -> Windows:
    """Iterations of a serving engine, whatever else marks steps: each ends with its own work.

    Of engines that mark an iteration twice only the form that tells more counts. Names repeat, so marks on the device
    count only where they are as many as on the host, or all there is.
    """
    families = {family for name in _names_of_marks(trace) if (family := family_of(name)) is not None}
    if not families:
        return ()
    best = min(families)

    def chosen(name: str) -> bool:
        return family_of(name) == best

    on_device = _marked(trace, chosen, Category.DEVICE_ANNOTATION, one_a_name=False)
    on_host = _marked(trace, chosen, Category.ANNOTATION)
    if on_device and (len(on_device) == len(on_host) or not (links.launch != NONE).any()):
        return on_device
    return _launched(trace, links, chosen) or on_device


def complete(durations_ns: Sequence[int]) -> list[bool]:
    """Which of three or more steps were profiled whole: a first or last one of less than half the median was cut off.

    A short step between others was not cut off; it is an uneven one.
    """
    if len(durations_ns) < _MEDIAN_FROM_STEPS:
        return [True] * len(durations_ns)
    middle = sorted(durations_ns)[len(durations_ns) // 2]
    last = len(durations_ns) - 1
    return [0 < at < last or 2 * duration >= middle for at, duration in enumerate(durations_ns)]


def _drawn_or_launched(trace: Trace, links: Links, pattern: re.Pattern[str]) -> Windows:
    def chosen(name: str) -> bool:
        return pattern.fullmatch(name) is not None

    return _marked(trace, chosen, Category.DEVICE_ANNOTATION) or _launched(trace, links, chosen)


def _named_iterations(trace: Trace, links: Links) -> tuple[str, Windows]:
    """(what marks them, windows) of the annotations that mark iterations; of several kinds the one that takes most."""
    best: tuple[int, str, Windows] = (0, "", ())
    stems = {name: stem for name in _names_of_marks(trace) if (stem := stem_of(name)) is not None}
    for stem in sorted(set(stems.values())):
        names = {name for name, its_stem in stems.items() if its_stem == stem}
        marks = _marked(trace, names.__contains__, Category.ANNOTATION)
        if not marks or (len(marks) == 1 and not is_numbered(marks[0].name)):
            continue
        taken = sum(mark.end_ns - mark.start_ns for mark in marks)
        span = max(mark.end_ns for mark in marks) - marks[0].start_ns
        overlap = any(later.start_ns < mark.end_ns for mark, later in pairwise(marks))
        if not overlap and taken > best[0] and taken >= _LEAST_COVER * span:
            best = (taken, stem, _launched(trace, links, names.__contains__))
    return best[1:]


def _optimizer_steps(trace: Trace, links: Links) -> Windows:
    """Windows between the ends of the updates of the optimizer that steps most often."""
    marks = _launched(trace, links, lambda name: _OPTIMIZER_STEP.fullmatch(name) is not None)
    if not marks:
        return ()
    chosen, _ = Counter(mark.name for mark in marks).most_common(1)[0]
    ends = sorted({mark.end_ns for mark in marks if mark.name == chosen})
    if len(ends) < _FEWEST_OPTIMIZER_STEPS:
        return ()
    apart = [later - end for end, later in pairwise(ends)]
    if max(apart) > _UNEVEN_FROM * median(apart):
        return ()
    return tuple(
        StepWindow(f"{chosen[:_NAME_SHOWN]} {number}", start, end)
        for number, (start, end) in enumerate(pairwise(ends), 2)
    )


def _names_of_marks(trace: Trace) -> list[str]:
    rows = trace.rows(Category.ANNOTATION, Category.DEVICE_ANNOTATION)
    return [trace.names[index] for index in np.unique(trace.name_id[rows])]


def _marked(trace: Trace, chosen: Callable[[str], bool], category: Category, *, one_a_name: bool = True) -> Windows:
    """Windows of the marks of one category, by start.

    Marks on the host are taken one by one. On the device there is one for each stream: those of one name are one step
    (`one_a_name`), or, where names repeat, those that overlap.
    """
    rows = trace.rows(category)
    found = [index for index in np.unique(trace.name_id[rows]) if chosen(trace.names[index])]
    rows = rows[np.isin(trace.name_id[rows], found)]
    starts = trace.start_ns[rows]
    ends = starts + trace.duration_ns[rows]
    columns = zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
    windows = [StepWindow(trace.name(row), start, end) for row, start, end in columns]
    return tuple(windows) if category is Category.ANNOTATION else _joined(windows, one_a_name)


def _joined(windows: Sequence[StepWindow], one_a_name: bool) -> Windows:
    open_ones: dict[str, StepWindow] = {}
    done: list[StepWindow] = []
    for window in windows:
        known = open_ones.get(window.name)
        if known is not None and (one_a_name or window.start_ns < known.end_ns):
            open_ones[window.name] = known._replace(end_ns=max(known.end_ns, window.end_ns))
        else:
            if known is not None:
                done.append(known)
            open_ones[window.name] = window
    return tuple(sorted((*done, *open_ones.values()), key=lambda window: window.start_ns))


def _launched(trace: Trace, links: Links, chosen: Callable[[str], bool]) -> Windows:
    """Windows of the device events that were launched within the marks on the host, by start."""
    marks = _marked(trace, chosen, Category.ANNOTATION)
    known = links.launch != NONE
    if not marks or not known.any():
        return marks
    launched_at = trace.start_ns[links.launch[known]]
    order = np.argsort(launched_at, kind="stable")
    rows, launched_at = links.rows[known][order], launched_at[order]
    first = np.searchsorted(launched_at, [mark.start_ns for mark in marks])
    behind = np.searchsorted(launched_at, [mark.end_ns for mark in marks])
    with_work = np.flatnonzero(behind > first)
    first, behind, starts = first[with_work], behind[with_work], trace.start_ns[rows]
    windows = [
        StepWindow(marks[mark].name, start, end)
        for mark, start, end in zip(
            with_work.tolist(),
            over_ranges(starts, first, behind, np.minimum).tolist(),
            over_ranges(starts + trace.duration_ns[rows], first, behind, np.maximum).tolist(),
            strict=True,
        )
    ]
    return tuple(sorted(windows, key=lambda window: window.start_ns))


def _back_to_back(windows: Windows) -> Windows:
    ends = [*(window.start_ns for window in windows[1:]), windows[-1].end_ns]
    return tuple(
        window._replace(end_ns=end) for window, end in zip(windows, ends, strict=True) if end > window.start_ns
    )
