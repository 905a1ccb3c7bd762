"""A trace, completed by the execution trace of the same process: input shapes, collective arguments, process groups.

The trace wins: what it states itself is kept, and differences are told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

import numpy as np

from traces.execution_trace.pairing import Pairing, contradiction, pair, same_process
from traces.execution_trace.read import read_execution_trace
from traces.execution_trace.record import ExecutionTrace
from traces.linking import NONE, innermost_open, link
from traces.trace import Category, CollectiveArgs, Ints, Metadata, OpInputs, Trace

__all__ = ["ExecutionTrace", "join", "match", "read_execution_trace"]

T = TypeVar("T")

_WORLD_SIZE_BASIS: Final = "process groups of the execution trace"


@dataclass(frozen=True, slots=True)
class _Filled(Generic[T]):
    """What a trace knows by row, how many rows the execution trace added, and on how many it states something else."""

    by_row: Mapping[int, T]
    added: int
    differ: int


def match(trace: Trace, execution_trace: ExecutionTrace) -> float:
    """How well the two fit, 0 to 1.

    Host operators whose record function id and name agree, over the host operators that have an id or the calls of the
    execution trace, whichever are fewer: the two may cover different parts of a run. 0 where they state different
    processes or ranks; ranks of one job agree in ids and names, so where neither is stated they are not told apart.
    """
    if not len(execution_trace) or contradiction(trace, execution_trace):
        return 0.0
    found = pair(trace, execution_trace)
    fewer = min(found.host_rows, len(execution_trace))
    return min(len(found.rows) / fewer, 1.0) if fewer else 0.0


def join(trace: Trace, execution_trace: ExecutionTrace) -> Trace:
    """The trace with what it lacks and the execution trace has; `warnings` tell what was joined, added and in conflict.

    Shapes go to every host operator that was paired, unless the profile says that it recorded them itself. Arguments of
    a collective go to its record_param_comms row and to the communication kernels that were launched inside it.
    Unchanged but for a warning where the two do not fit.
    """
    told = [f"{execution_trace.file}: {warning}" for warning in execution_trace.warnings]
    wrong = contradiction(trace, execution_trace)
    found = pair(trace, execution_trace) if len(execution_trace) and not wrong else None
    if found is None or not len(found.rows):
        why = wrong or "no host operator of the trace has the id and name of one of its calls"
        told.append(f"{execution_trace.file} was not joined: {why}")
        return replace(trace, warnings=(*trace.warnings, *told))
    inputs = _with_inputs(trace, execution_trace, found)
    collectives = _with_collectives(trace, execution_trace, found)
    metadata, groups_added, groups_differ = _with_groups(trace.metadata, execution_trace)
    unsure = "" if same_process(trace, execution_trace) else " (neither process nor rank could be compared)"
    told.append(
        f"{execution_trace.file}: {len(found.rows):,} of {found.host_rows:,} host operators were joined by {found.by}"
        f"{unsure}; it added inputs to {inputs.added:,} of them, arguments to {collectives.added:,} events of "
        f"collectives, and {groups_added:,} process groups"
    )
    for count, what in (
        (found.renamed, "operators have the id of a call of another name and were not joined"),
        (inputs.differ, "operators have other input shapes there; the trace's were kept"),
        (collectives.differ, "collectives have other arguments there; the trace's were kept"),
        (groups_differ, "process groups have another size there; the trace's was kept"),
    ):
        if count:
            told.append(f"{execution_trace.file}: {count:,} {what}")
    return replace(
        trace,
        inputs=inputs.by_row,
        collectives=collectives.by_row,
        metadata=metadata,
        warnings=(*trace.warnings, *told),
    )


def _with_inputs(trace: Trace, execution_trace: ExecutionTrace, found: Pairing) -> _Filled[OpInputs]:
    by_row = dict(trace.inputs)
    recorded = "record_shapes" in trace.metadata.flags
    added = differ = 0
    for row, entry in zip(found.rows.tolist(), found.entries.tolist(), strict=True):
        given = execution_trace.inputs.get(entry)
        if given is None:
            continue
        stated = by_row.get(row)
        if stated is None and not recorded:
            by_row[row] = given
            added += 1
        elif stated is not None and stated.dims and stated.dims != given.dims:
            differ += 1
    return _Filled(by_row, added, differ)


def _with_collectives(trace: Trace, execution_trace: ExecutionTrace, found: Pairing) -> _Filled[CollectiveArgs]:
    given = {
        row: execution_trace.collectives[entry]
        for row, entry in zip(found.rows.tolist(), found.entries.tolist(), strict=True)
        if entry in execution_trace.collectives
    }
    by_row = dict(trace.collectives)
    added = differ = 0
    for row, args in (*given.items(), *_of_kernels(trace, given)):
        stated = by_row.get(row)
        if stated is None:
            by_row[row] = args
            added += 1
        elif _differ(stated, args):
            differ += 1
    return _Filled(by_row, added, differ)


def _of_kernels(trace: Trace, given: Mapping[int, CollectiveArgs]) -> list[tuple[int, CollectiveArgs]]:
    """Communication kernels launched inside one of the host rows that were given arguments, with those.

    Copies and arithmetic that a collective launches beside its kernel are none, so the kernel's name has to agree.
    """
    if not given:
        return []
    links = link(trace)
    among = np.array(sorted(given), dtype=np.int64)
    named = np.fromiter(
        (trace.rules.communication_of(name) is not None for name in trace.names), np.bool_, len(trace.names)
    )
    kernels = (trace.category[links.rows] == Category.KERNEL) & named[trace.name_id[links.rows]]
    rows, launch, operator = links.rows[kernels], links.launch[kernels], links.operator[kernels]
    inside: Ints = np.where(np.isin(operator, among), operator, NONE)
    open_ones = np.flatnonzero((inside == NONE) & (launch != NONE))
    if len(open_ones):
        inside[open_ones] = innermost_open(trace, launch[open_ones], among)
    return [(row, given[outer]) for row, outer in zip(rows.tolist(), inside.tolist(), strict=True) if outer != NONE]


def _differ(stated: CollectiveArgs, given: CollectiveArgs) -> bool:
    """Whether both state a thing and not the same; names are spelled in several ways and not compared."""
    pairs = (
        (stated.group, given.group),
        (stated.group_size, given.group_size),
        (stated.in_elements, given.in_elements),
        (stated.out_elements, given.out_elements),
    )
    return any(ours not in (None, "") and theirs not in (None, "") and ours != theirs for ours, theirs in pairs)


def _with_groups(metadata: Metadata, execution_trace: ExecutionTrace) -> tuple[Metadata, int, int]:
    """Metadata with groups, rank and world size it lacks; how many groups were added, how many differ."""
    stated = {group.name: group for group in metadata.groups}
    added = tuple(group for group in execution_trace.groups if group.name not in stated)
    differ = sum(group.name in stated and stated[group.name].size != group.size for group in execution_trace.groups)
    if metadata.world_size is None and execution_trace.world_size is not None:
        metadata = replace(metadata, world_size=execution_trace.world_size, world_size_basis=_WORLD_SIZE_BASIS)
    rank = execution_trace.rank if metadata.rank is None else metadata.rank
    return replace(metadata, groups=(*metadata.groups, *added), rank=rank), len(added), differ
