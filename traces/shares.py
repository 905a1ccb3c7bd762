"""The window identity: compute + exposed communication + exposed copy + idle == window, exact in nanoseconds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traces import intervals
from traces.grouping import places_by
from traces.intervals import EMPTY, Intervals
from traces.naming import By, Classified, EventClass
from traces.summary_types import TimeShares
from traces.trace import Category, Ints, Mask, Trace


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """Times covered by each class, and the whole window. `unclassified` is a part of `compute`."""

    start_ns: int
    end_ns: int
    compute: Intervals
    communication: Intervals
    copy: Intervals
    unclassified: Intervals

    def clipped(self, start_ns: int, end_ns: int) -> "Cover":
        """The part inside [start_ns, end_ns)."""
        return Cover(
            start_ns,
            end_ns,
            *(
                intervals.clip(covered, start_ns, end_ns)
                for covered in (self.compute, self.communication, self.copy, self.unclassified)
            ),
        )

    @property
    def idle(self) -> Intervals:
        """Times nothing covers."""
        busy = intervals.union(intervals.union(self.compute, self.communication), self.copy)
        return intervals.gaps(busy, self.start_ns, self.end_ns)


def device_cover(trace: Trace, classified: Classified) -> Cover:
    """Cover of a trace with device events; the window runs from their first start to their last end."""
    rows = classified.links.rows
    return Cover(
        start_ns=int(trace.start_ns[rows].min()),
        end_ns=int(trace.end_ns[rows].max()),
        compute=union_of(trace, classified.rows(EventClass.COMPUTE)),
        communication=union_of(trace, classified.rows(EventClass.COMMUNICATION)),
        copy=union_of(trace, classified.rows(EventClass.COPY)),
        unclassified=union_of(trace, rows[classified.by == By.UNCLASSIFIED]),
    )


def host_cover(trace: Trace) -> Cover | None:
    """Cover of a trace without device events, from its host operators; None where it has none.

    At every instant a thread does what its innermost operator does, so an operator around a collective computes only
    while the collective is not running. Host copies are operators like others: the copy class stays empty.
    """
    collective = host_communication_mask(trace)
    named = np.fromiter(
        (trace.rules.kind_of_operator(name) is not None for name in trace.names), np.bool_, len(trace.names)
    )
    operators = trace.rows(Category.CPU_OP)
    collectives = trace.named(trace.rows(Category.CPU_OP, Category.ANNOTATION), collective)
    rows = np.union1d(operators, collectives)
    if not len(rows):
        return None
    compute, unclassified = [EMPTY], [EMPTY]
    for _, places in places_by(trace.thread[rows]):
        mine = rows[places]
        communicating = union_of(trace, trace.named(mine, collective))
        computing = intervals.subtract(union_of(trace, trace.named(mine, ~collective)), communicating)
        known = union_of(trace, trace.named(mine, named & ~collective))
        compute.append(computing)
        unclassified.append(intervals.subtract(computing, known))
    return Cover(
        start_ns=int(trace.start_ns[rows].min()),
        end_ns=int(trace.end_ns[rows].max()),
        compute=_joined(compute),
        communication=union_of(trace, collectives),
        copy=EMPTY,
        unclassified=_joined(unclassified),
    )


def host_communication_mask(trace: Trace) -> Mask:
    """For each name whether a host operator of that name is a collective."""
    return np.fromiter(
        (trace.rules.host_communication_of(name) is not None for name in trace.names), np.bool_, len(trace.names)
    )


def union_of(trace: Trace, rows: Ints) -> Intervals:
    """Times covered by the given rows."""
    starts = trace.start_ns[rows]
    return intervals.merge(starts, starts + trace.duration_ns[rows])


def _joined(parts: Sequence[Intervals]) -> Intervals:
    """Union of many sets."""
    together = np.concatenate(parts)
    return intervals.merge(together[:, 0], together[:, 1])


def time_shares(cover: Cover) -> TimeShares:
    """The terms of the identity for a cover."""
    exposed_communication = intervals.subtract(cover.communication, cover.compute)
    exposed_copy = intervals.subtract(cover.copy, intervals.union(cover.compute, cover.communication))
    return TimeShares(
        window_ns=cover.end_ns - cover.start_ns,
        compute_ns=intervals.length(cover.compute),
        communication_ns=intervals.length(cover.communication),
        exposed_communication_ns=intervals.length(exposed_communication),
        copy_ns=intervals.length(cover.copy),
        exposed_copy_ns=intervals.length(exposed_copy),
        idle_ns=intervals.length(cover.idle),
        unclassified_ns=intervals.length(cover.unclassified),
    )
