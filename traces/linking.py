"""Which runtime call launched a device event, and which host operator that call stood in.

An operator is found through the event's External id where the file uses one, otherwise through time: the innermost host
operator or annotation that was open on the launching thread. Files before 2023 write the correlation id in place of the
External id; such ids point at unrelated operators and are not followed. Some files of ROCm profilers state no
correlation at all and write its number as the External id of kernel and call alone: there it joins the two.
"""

from dataclasses import dataclass

import numpy as np

from traces.grouping import places_by
from traces.trace import ABSENT, Category, Ints, Mask, Trace

NONE = -1


@dataclass(frozen=True, slots=True)
class Links:
    """For each of `rows` (device rows of a trace): row of the launching call and of the innermost operator, or NONE."""

    rows: Ints
    launch: Ints
    operator: Ints


def link(trace: Trace) -> Links:
    """Links of every device event; both joins run over whole columns."""
    rows = trace.device_rows
    launch = _launches(trace, rows)
    operator = np.full(len(rows), NONE, dtype=np.int64)
    if external_ids_are_real(trace, rows) and not _joined_by_external_id(trace, rows):
        operator = _by_external_id(trace, rows)
    open_ones = np.flatnonzero((operator == NONE) & (launch != NONE))
    if len(open_ones):
        operator[open_ones] = innermost_open(trace, launch[open_ones], trace.rows(Category.CPU_OP, Category.ANNOTATION))
    return Links(rows, launch, operator)


def external_ids_are_real(trace: Trace, rows: Ints) -> bool:
    """False where the file repeats the correlation id as External id."""
    known = rows[(trace.external_id[rows] != ABSENT) & (trace.correlation[rows] != ABSENT)]
    if not len(known):
        return True
    copied = trace.external_id[known] == trace.correlation[known]
    return bool(copied.mean() < 0.5)


def _launches(trace: Trace, rows: Ints) -> Ints:
    calls = trace.rows(Category.RUNTIME)
    number = trace.external_id if _joined_by_external_id(trace, rows) else trace.correlation
    calls = calls[number[calls] != ABSENT]
    return _join(number[rows], number[calls], calls)


def _joined_by_external_id(trace: Trace, rows: Ints) -> bool:
    """Whether no device event states a correlation, so that calls and events have only the External id in common."""
    if not len(rows) or (trace.correlation[rows] != ABSENT).any():
        return False
    calls = trace.rows(Category.RUNTIME)
    return bool(np.isin(trace.external_id[rows], trace.external_id[calls][trace.external_id[calls] != ABSENT]).any())


def _by_external_id(trace: Trace, rows: Ints) -> Ints:
    """Operators before annotations where both carry the id."""
    operators = trace.rows(Category.CPU_OP, Category.ANNOTATION)
    operators = operators[trace.external_id[operators] != ABSENT]
    operators = operators[np.argsort(trace.category[operators], kind="stable")]
    return _join(trace.external_id[rows], trace.external_id[operators], operators)


def _join(wanted: Ints, keys: Ints, values: Ints) -> Ints:
    """For each wanted key the first value filed under it, or NONE."""
    if not len(keys):
        return np.full(len(wanted), NONE, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where((wanted != ABSENT) & (keys[order][at] == wanted), values[order][at], NONE)


def innermost_open(trace: Trace, calls: Ints, among: Ints) -> Ints:
    """For each runtime call the innermost of the host rows `among` open on its thread when it began, or NONE."""
    found = np.full(len(calls), NONE, dtype=np.int64)
    of_thread = dict(places_by(trace.thread[among]))
    for thread, mine in places_by(trace.thread[calls]):
        if thread in of_thread:
            operators = among[of_thread[thread]]
            starts = trace.start_ns[operators]
            open_one = _latest_open(starts, starts + trace.duration_ns[operators], trace.start_ns[calls[mine]])
            found[mine] = np.where(open_one != NONE, operators[open_one], NONE)
    return found


def _latest_open(starts: Ints, ends: Ints, times: Ints) -> Ints:
    """For each time the interval open then that began last, or NONE. Intervals are sorted as for `enclosing`."""
    found = np.full(len(times), NONE, dtype=np.int64)
    begins, until = starts.tolist(), ends.tolist()
    order = np.argsort(times, kind="stable")
    answers: list[int] = []
    stack: list[int] = []
    begun = 0
    for time in times[order].tolist():
        while begun < len(begins) and begins[begun] <= time:
            while stack and until[stack[-1]] <= begins[begun]:
                stack.pop()
            stack.append(begun)
            begun += 1
        while stack and until[stack[-1]] <= time:
            stack.pop()
        answers.append(stack[-1] if stack else NONE)
    found[order] = answers
    return found


def enclosing(starts: Ints, ends: Ints) -> Ints:
    """For intervals of one thread, sorted by start with the longer first: index of the one around each, or NONE."""
    parent: list[int] = []
    until = ends.tolist()
    stack: list[int] = []
    for index, start in enumerate(starts.tolist()):
        while stack and until[stack[-1]] <= start:
            stack.pop()
        parent.append(stack[-1] if stack else NONE)
        stack.append(index)
    return np.array(parent, dtype=np.int64)


def inside(trace: Trace, calls: Ints, annotations: Ints) -> Mask:
    """For each runtime call (or NONE) whether one of `annotations` was open on its thread when it began."""
    found = np.zeros(len(calls), dtype=np.bool_)
    known = np.flatnonzero(calls != NONE)
    of_thread = dict(places_by(trace.thread[calls[known]]))
    for thread, places in places_by(trace.thread[annotations]):
        if thread in of_thread:
            mine, on_thread = annotations[places], known[of_thread[thread]]
            times, starts = trace.start_ns[calls[on_thread]], trace.start_ns[mine]
            begun = np.searchsorted(starts, times, side="right")
            ends = np.maximum.accumulate(starts + trace.duration_ns[mine])
            found[on_thread] = np.concatenate(([np.iinfo(np.int64).min], ends))[begun] > times
    return found
