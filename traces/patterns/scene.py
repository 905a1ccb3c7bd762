"""What patterns are looked for in, the device events of one rank in order of time and stream; and what is found.

All masks and columns here have one entry a device event ("position"), in the order of `Links.rows`: by start.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from projector.breakdown import Axis
from traces import intervals
from traces.collectives import Communication
from traces.intervals import Intervals
from traces.launches import is_thinned, lacks_kernels
from traces.linking import NONE
from traces.naming import KINDS, Classified, EventClass
from traces.pattern_types import PatternKind
from traces.patterns.hlo_graph import HloGraph, Node, hlo_graph
from traces.summary_types import StepShares
from traces.trace import Ints, Mask, Trace

SHARDED_AXES: Final = ("dp", "fsdp")
"""Axes whose collectives carry weights and gradients, which no activation depends on in between."""

MOST_EXAMPLES: Final = 3
_EXAMPLE_SHOWN: Final = 200
_MATRIX: Final = [KINDS.index("gemm"), KINDS.index("attention"), KINDS.index("moe")]


@dataclass(frozen=True, slots=True)
class Found:
    """One pattern in one rank; small and picklable. Fields as those of `SequencePattern`.

    events, event_ns   what the occurrences consist of, and the sum of their durations
    message_bytes      sum over `messages` collectives of known size
    steps              measured steps of the rank, 0 where none is marked
    """

    kind: PatternKind
    occurrences: int
    events: int
    event_ns: int
    total_ns: int
    exposed_ns: int
    basis: str
    certain: bool
    moved_bytes: int | None = None
    messages: int = 0
    message_bytes: int = 0
    steps: int = 0
    examples: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Lacking:
    """Why a pattern was not looked for."""

    kind: PatternKind
    why: str


@dataclass(frozen=True, eq=False)
class Scene:
    """One rank. `axis_of`: of its communications; `steps`: as `RankSummary.steps`."""

    trace: Trace
    classified: Classified
    communications: tuple[Communication, ...]
    idle: Intervals
    steps: tuple[StepShares, ...]
    axis_of: Callable[[Communication], Axis]

    @property
    def rows(self) -> Ints:
        """Rows of the trace by position."""
        return self.classified.links.rows

    @cached_property
    def start_ns(self) -> Ints:
        """Start by position, ascending."""
        return self.trace.start_ns[self.rows]

    @cached_property
    def end_ns(self) -> Ints:
        """End by position."""
        return self.start_ns + self.trace.duration_ns[self.rows]

    @cached_property
    def why_gaps_say_nothing(self) -> str:
        """Why no idle gap can be laid to the host, '' where they can."""
        links = self.classified.links
        if not (links.launch != NONE).any():
            return "no call of the host can be joined to a device event"
        if lacks_kernels(self.trace, links) is not None or is_thinned(self.trace, links):
            return "most events are missing, and idle gaps say nothing"
        return ""

    @cached_property
    def gap_ends(self) -> Ints:
        """Position of the event at the end of each idle gap."""
        return np.searchsorted(self.start_ns, self.idle[:, 1], side="left")

    @cached_property
    def measured_steps(self) -> tuple[StepShares, ...]:
        """Steps that count."""
        return tuple(step for step in self.steps if step.role == "measured")

    @cached_property
    def communicates(self) -> Mask:
        """Communication."""
        found: Mask = self.classified.event_class == EventClass.COMMUNICATION
        return found

    @cached_property
    def computes(self) -> Mask:
        """Computation."""
        found: Mask = self.classified.event_class == EventClass.COMPUTE
        return found

    @cached_property
    def is_matrix(self) -> Mask:
        """Matrix products, convolutions, attention and experts: all else is cheap beside them."""
        found: Mask = self.computes & (np.isin(self.classified.kind, _MATRIX) | self.named(self._is_convolution))
        return found

    def _is_convolution(self, name: str) -> bool:
        rule = self.trace.rules.of_kernel(name).rule
        return rule is not None and rule.id == "convolution"

    @cached_property
    def places(self) -> Ints:
        """Position of each of `communications`, ascending."""
        return np.searchsorted(self.rows, [one.row for one in self.communications])

    @cached_property
    def operator_names(self) -> Ints:
        """Index of the name of each event's innermost operator, NONE without one."""
        operator = self.classified.links.operator
        return np.where(operator != NONE, self.trace.name_id[operator], NONE)

    def named(self, chosen: Callable[[str], bool]) -> Mask:
        """Events whose own name is chosen; each name is asked for once."""
        ids = self.trace.name_id[self.rows]
        flags = np.zeros(len(self.trace.names), dtype=np.bool_)
        for index in np.unique(ids).tolist():
            flags[index] = chosen(self.trace.names[index])
        found: Mask = flags[ids]
        return found

    @cached_property
    def graph(self) -> HloGraph | None:
        """Operators of an XLA program by whose result they take."""
        return hlo_graph(self.trace.profile)

    def places_of(self, nodes: Sequence[Node]) -> Ints:
        """Events of operators of an XLA program; of a title that several operators share none."""
        graph = self.graph
        titles = {node.op.name for node in nodes if graph is not None and graph.of_title[node.op.name] == 1}
        return np.flatnonzero(self.named(titles.__contains__))

    def neighbours(self, skipped: Mask) -> tuple[Ints, Ints]:
        """For each event the nearest one before and after it on its stream that is not skipped, or NONE."""
        count = len(self.rows)
        streams = self.trace.stream[self.rows]
        order = np.argsort(streams, kind="stable")
        kept = ~skipped[order]
        at = np.arange(count)
        last = np.maximum.accumulate(np.where(kept, at, NONE))
        following = np.minimum.accumulate(np.where(kept, at, count)[::-1])[::-1]
        before, after = np.append(NONE, last[:-1]), np.append(following[1:], count)
        found = []
        for near in (before, after):
            known = (near >= 0) & (near < count)
            near = np.where(known, near, 0)
            known &= streams[order[near]] == streams[order]
            placed = np.empty(count, dtype=np.int64)
            placed[order] = np.where(known, order[near], NONE)
            found.append(placed)
        return found[0], found[1]

    def union_of(self, places: Ints | Mask) -> Intervals:
        """Times the events cover."""
        return intervals.merge(self.start_ns[places], self.end_ns[places])

    def found(
        self,
        kind: PatternKind,
        places: Ints,
        *,
        occurrences: int,
        basis: str,
        certain: bool,
        collectives: Sequence[Communication] = (),
        moved_bytes: int | None = None,
    ) -> Found:
        """A pattern that consists of device events; exposed is what of them no other computation covers.

        A collective or copy beside them hides nothing: it can move, and then their time is gained.
        """
        chosen = np.zeros(len(self.rows), dtype=np.bool_)
        chosen[places] = True
        taken = self.union_of(chosen)
        messages = [one.message_bytes for one in collectives if one.message_bytes is not None]
        return Found(
            kind=kind,
            occurrences=occurrences,
            events=int(chosen.sum()),
            event_ns=int((self.end_ns - self.start_ns)[chosen].sum()),
            total_ns=intervals.length(taken),
            exposed_ns=intervals.length(intervals.subtract(taken, self.union_of(self.computes & ~chosen))),
            basis=basis,
            certain=certain,
            moved_bytes=moved_bytes,
            messages=len(messages),
            message_bytes=sum(messages),
            steps=len(self.measured_steps),
            examples=self.examples(np.flatnonzero(chosen)),
        )

    def gaps_found(self, kind: PatternKind, lengths: Ints, named: Ints, *, basis: str) -> Found:
        """A pattern that consists of idle gaps of these lengths; named: the row of the trace to name each after."""
        length = int(lengths.sum())
        return Found(
            kind=kind,
            occurrences=len(lengths),
            events=len(lengths),
            event_ns=length,
            total_ns=length,
            exposed_ns=length,
            basis=basis,
            certain=True,
            steps=len(self.measured_steps),
            examples=self._named_by_cost(named, lengths),
        )

    def examples(self, places: Ints) -> tuple[tuple[str, int], ...]:
        """The costliest names of events, each with its time."""
        return self._named_by_cost(self.rows[places], (self.end_ns - self.start_ns)[places])

    def _named_by_cost(self, rows: Ints, cost: Ints) -> tuple[tuple[str, int], ...]:
        ids, place = np.unique(self.trace.name_id[rows], return_inverse=True)
        sums = np.zeros(len(ids), dtype=np.int64)
        np.add.at(sums, place.ravel(), cost)
        times: Counter[str] = Counter()
        for index, took in zip(ids.tolist(), sums.tolist(), strict=True):
            times[self.trace.names[index][:_EXAMPLE_SHOWN]] += took
        return tuple(sorted(times.items(), key=lambda item: (-item[1], item[0]))[:MOST_EXAMPLES])
