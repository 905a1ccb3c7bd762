"""Which host row of a trace is which call of an execution trace.

Kineto writes the record function id of a host operator since 2023. Before, its External id often was that id, and often
was not: External ids are followed only where nearly all of those that both files have bear the same operator name.
A row and a call are one where their ids and names agree.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.execution_trace.record import ExecutionTrace
from traces.trace import Category, Ints, Trace

_ALIKE: Final = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """rows and entries belong together, one by one.

    host_rows        host rows with an id
    renamed          rows whose id is that of a call of another name
    by               the argument that holds the ids
    """

    rows: Ints
    entries: Ints
    host_rows: int
    renamed: int
    by: str


def pair(trace: Trace, execution_trace: ExecutionTrace) -> Pairing:
    """Pair by record function id, or by External id where the trace has none of those."""
    rows = trace.rows(Category.CPU_OP, Category.ANNOTATION)
    if trace.record_ids is not None and bool((trace.record_ids[rows] > 0).any()):
        return _paired(trace, execution_trace, rows, trace.record_ids[rows], "Record function id")
    found = _paired(trace, execution_trace, rows, trace.external_id[rows], "External id")
    if len(found.rows) < _ALIKE * (len(found.rows) + found.renamed):
        nothing = np.empty(0, dtype=np.int64)
        return Pairing(nothing, nothing, found.host_rows, 0, found.by)
    return found


def _paired(trace: Trace, execution_trace: ExecutionTrace, rows: Ints, ids: Ints, by: str) -> Pairing:
    rows, ids = rows[ids > 0], ids[ids > 0]
    known = execution_trace.record_ids
    at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    both = known[at] == ids
    place = {name: index for index, name in enumerate(trace.names)}
    name_id = np.array([place.get(name, -1) for name in execution_trace.names], dtype=np.int64)
    alike = both & (name_id[execution_trace.name_id[at]] == trace.name_id[rows])
    return Pairing(rows[alike], at[alike], len(rows), int((both & ~alike).sum()), by)


def contradiction(trace: Trace, execution_trace: ExecutionTrace) -> str:
    """Why the two cannot be of one process: what they state of process and rank; "" where nothing speaks against it.

    Ranks of one job run the same operators under the same ids, so ids and names do not tell them apart.
    """
    for what, ours, theirs in (
        ("process", trace.metadata.process_id, execution_trace.process_id),
        ("rank", trace.metadata.rank, execution_trace.rank),
    ):
        if ours is not None and theirs is not None and ours != theirs:
            return f"it is of {what} {theirs}, the trace of {what} {ours}"
    return ""


def same_process(trace: Trace, execution_trace: ExecutionTrace) -> bool:
    """Whether both state a process or a rank, and the same."""
    return not contradiction(trace, execution_trace) and (
        None not in (trace.metadata.process_id, execution_trace.process_id)
        or None not in (trace.metadata.rank, execution_trace.rank)
    )
