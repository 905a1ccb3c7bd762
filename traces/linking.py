"""Which runtime call launched a device event, and which host operator that call stood in.

An operator is found through the event's External id where the file uses one, otherwise through time: the innermost host
operator or annotation that was open on the launching thread. Files before 2023 write the correlation id in place of the
External id; such ids point at unrelated operators and are not followed.
"""

from dataclasses import dataclass

import numpy as np

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
    if external_ids_are_real(trace, rows):
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
    calls = calls[trace.correlation[calls] != ABSENT]
    return _join(trace.correlation[rows], trace.correlation[calls], calls)


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
    for thread in np.unique(trace.thread[calls]):
        operators = among[trace.thread[among] == thread]
        if not len(operators):
            continue
        mine = trace.thread[calls] == thread
        times = trace.start_ns[calls[mine]]
        starts, ends = trace.start_ns[operators], trace.end_ns[operators]
        parent = enclosing(starts, ends)
        ends = np.append(ends, np.iinfo(np.int64).max)
        candidate = np.searchsorted(starts, times, side="right") - 1
        while (closed := (candidate != NONE) & (ends[candidate] <= times)).any():
            candidate[closed] = parent[candidate[closed]]
        found[mine] = np.where(candidate != NONE, operators[candidate], NONE)
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
    for thread in np.unique(trace.thread[annotations]):
        mine = annotations[trace.thread[annotations] == thread]
        on_thread = known[trace.thread[calls[known]] == thread]
        times = trace.start_ns[calls[on_thread]]
        begun = np.searchsorted(trace.start_ns[mine], times, side="right")
        latest_end = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(trace.end_ns[mine])))
        found[on_thread] = latest_end[begun] > times
    return found
