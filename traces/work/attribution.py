"""Kernels -> the operator whose work they do: the innermost one around their launch that has a formula and shapes.

Each operator's work counts once, over the summed durations of all its kernels (a split product's reduction, the layout
changes around a convolution). Two rules keep it from counting twice:
  * a kernel of an operator without a formula goes to an operator around it only if that one's formula covers all that
    runs inside it (products, attention, convolutions, experts), never to a pointwise one;
  * of such covering operators inside one another only the innermost counts; the outer one's own kernels stay unknown.
And one keeps its time whole: an operator with a launch whose kernel is not in the trace (lost, or after its end) has
unknown work, as the kernels that are there do only a part of it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.grouping import places_by
from traces.linking import NONE, enclosing, innermost_open
from traces.naming import Classified, EventClass
from traces.trace import Category, Ints, Mask, OpInputs, Trace
from traces.work.call import Call, Work
from traces.work.table import formula_of, is_covering, work_of_call

_LAUNCH: Final = re.compile(r"(?:cuda|cu|hip)\w{0,20}Launch(?:Cooperative)?Kernel")


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Compute kernels of a trace and the calls whose work they do.

    rows, kinds   trace row and kind (index into `naming.KINDS`) of each kernel; all kernels of a call have the kind of
                  its costliest one
    call          index into `calls` and `works`, or NONE
    calls, works  operator row and work of each call
    """

    rows: Ints
    kinds: Ints
    call: Ints
    calls: Ints
    works: tuple[Work, ...]


def attribute(trace: Trace, classified: Classified) -> Attribution:
    """Every compute kernel of a trace with its call, by the rules of this module."""
    chosen = np.flatnonzero(classified.event_class == EventClass.COMPUTE)
    rows, kinds = classified.links.rows[chosen], classified.kind[chosen].astype(np.int64)
    operator = _without_outer(trace, _operators(trace, classified.links.operator[chosen]))
    operator = _complete(trace, operator, classified.links.launch)
    calls, call = np.unique(operator, return_inverse=True)
    costliest = _costliest(call, trace.duration_ns[rows], len(calls))
    works = _works(trace, calls, rows[costliest])
    known = np.array([work is not None for work in works], dtype=np.bool_)
    kinds = np.where(known[call], kinds[costliest][call], kinds)
    place = np.where(known, np.cumsum(known) - 1, NONE)
    return Attribution(rows, kinds, place[call], calls[known], tuple(work for work in works if work is not None))


def _operators(trace: Trace, innermost: Ints) -> Ints:
    """For each kernel's innermost operator itself if it has a formula, else a covering one around it, or NONE."""
    names = np.unique(trace.name_id[trace.rows(Category.CPU_OP)]).tolist()
    recorded = np.zeros(len(trace), dtype=np.bool_)
    recorded[np.fromiter(trace.inputs, dtype=np.int64, count=len(trace.inputs))] = True
    with_formula = recorded & _named(trace, (name for name in names if formula_of(trace.names[name]) is not None))
    found = np.where((innermost != NONE) & with_formula[innermost], innermost, NONE)
    open_ones = np.flatnonzero((found == NONE) & (innermost != NONE))
    if len(open_ones) and with_formula.any():
        covering = with_formula & _named(trace, (name for name in names if is_covering(trace.names[name])))
        inner = innermost[open_ones]
        around = innermost_open(trace, inner, _with_work(trace, np.flatnonzero(covering)))
        contained = (around != NONE) & (trace.end_ns[around] >= trace.end_ns[inner])
        found[open_ones] = np.where(contained, around, NONE)
    return found


def _named(trace: Trace, name_ids: Iterable[int]) -> Mask:
    """One flag a row: whether its name is one of these."""
    flags = np.zeros(len(trace.names), dtype=np.bool_)
    flags[list(name_ids)] = True
    chosen: Mask = flags[trace.name_id]
    return chosen


def _with_work(trace: Trace, operators: Ints) -> Ints:
    """Those of the operators whose shapes their formula can use."""
    works = _works(trace, operators, operators)
    return operators[np.array([work is not None for work in works], dtype=np.bool_)]


def _without_outer(trace: Trace, operator: Ints) -> Ints:
    """The operators with NONE for covering ones that contain another of them."""
    calls = np.array([row for row in np.unique(operator[operator != NONE]) if is_covering(trace.name(row))], np.int64)
    outer: list[Ints] = []
    for _, places in places_by(trace.thread[calls]):
        mine = calls[places]
        starts = trace.start_ns[mine]
        ends = starts + trace.duration_ns[mine]
        parent = enclosing(starts, ends)
        contained = (parent != NONE) & (ends <= ends[parent])
        outer.append(mine[parent[contained]])
    return np.where(np.isin(operator, np.concatenate(outer)), NONE, operator) if outer else operator


def _complete(trace: Trace, operator: Ints, launches_seen: Ints) -> Ints:
    """The operators with NONE for those that launched a kernel the trace does not hold."""
    is_launch = np.fromiter((_LAUNCH.match(name) is not None for name in trace.names), np.bool_, len(trace.names))
    launches = trace.named(trace.rows(Category.RUNTIME), is_launch)
    missing = launches[~np.isin(launches, launches_seen)]
    calls = np.unique(operator[operator != NONE])
    if not len(missing) or not len(calls):
        return operator
    return np.where(np.isin(operator, innermost_open(trace, missing, calls)), NONE, operator)


def _costliest(call: Ints, durations: Ints, calls: int) -> Ints:
    """For each call the position of its longest kernel."""
    order = np.lexsort((durations, call))
    last = np.searchsorted(call[order], np.arange(calls), side="right") - 1
    longest: Ints = order[last]
    return longest


def _works(trace: Trace, operators: Ints, kernels: Ints) -> list[Work | None]:
    """Work of each operator row, None for NONE, with the row of its costliest kernel; calls alike are done once."""
    known: dict[tuple[int, int, int], Work | None] = {}
    found: list[Work | None] = []
    names, kernel_names = (trace.name_id[rows].tolist() for rows in (operators, kernels))
    for row, name, kernel in zip(operators.tolist(), names, kernel_names, strict=True):
        inputs = trace.inputs[row] if row != NONE else OpInputs()
        key = (name, id(inputs), kernel)
        if row == NONE:
            found.append(None)
            continue
        if key not in known:
            known[key] = work_of_call(Call(trace.names[name], inputs, trace.names[kernel]))
        found.append(known[key])
    return found
