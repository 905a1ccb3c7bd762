"""What inference looks at: one trace, its classes, and how often each name occurs."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from traces.collectives import Communication
from traces.linking import inside
from traces.naming import Classified
from traces.rules.rule import LONGEST_NAME
from traces.trace import Category, Ints, OpInputs, Trace

_BACKWARD: Final = re.compile(r"backward|autograd::engine::evaluate_function", re.IGNORECASE)


class OpCall(NamedTuple):
    """One host operator with the inputs the profiler recorded."""

    row: int
    name: str
    inputs: OpInputs


@dataclass(frozen=True, eq=False)
class Facts:
    """A trace with its classes and communication; names count as evidence only by how often they occur."""

    trace: Trace
    classified: Classified
    communications: tuple[Communication, ...]

    @cached_property
    def operators(self) -> Mapping[str, int]:
        """Host operators by name, and framework operators a compiler made device events from."""
        counts = Counter(self._counts(self.trace.rows(Category.CPU_OP)))
        counts.update(self.trace.framework_ops)
        return counts

    @cached_property
    def forward_rows(self) -> Ints:
        """Host operators outside the backward pass; what a checkpoint recomputes is inside it, and so is left out."""
        trace = self.trace
        rows = trace.rows(Category.CPU_OP)
        backward = np.fromiter((_is_backward(name) for name in trace.names), np.bool_, len(trace.names))
        around = trace.named(rows, backward)
        return rows[~inside(trace, rows, around)] if len(around) else rows

    @cached_property
    def forward_operators(self) -> Mapping[str, int]:
        """Host operators outside the backward pass by name."""
        return self._counts(self.forward_rows)

    @cached_property
    def forward_calls(self) -> tuple[OpCall, ...]:
        """Those of them whose inputs were recorded, in order of start."""
        trace = self.trace
        with_inputs = np.fromiter(trace.inputs, dtype=np.int64, count=len(trace.inputs))
        rows = self.forward_rows[np.isin(self.forward_rows, with_inputs)]
        return tuple(OpCall(row, trace.name(row), trace.inputs[row]) for row in rows.tolist())

    @property
    def kernels_are_opcodes(self) -> bool:
        """Whether device events bear HLO opcodes as names: on a TPU a matrix product is called convolution."""
        stated = self.trace.stated_kind
        return stated is not None and bool((stated >= 0).any())

    @cached_property
    def annotations(self) -> Mapping[str, int]:
        """Annotations on the host by name, or those on the device where the host has none."""
        rows = self.trace.rows(Category.ANNOTATION)
        return self._counts(rows if len(rows) else self.trace.rows(Category.DEVICE_ANNOTATION))

    @cached_property
    def kernels(self) -> Mapping[str, int]:
        """Kernels by name."""
        return self._counts(self.trace.rows(Category.KERNEL))

    def _counts(self, rows: Ints) -> Mapping[str, int]:
        ids, counts = np.unique(self.trace.name_id[rows], return_counts=True)
        return {self.trace.names[index]: int(count) for index, count in zip(ids, counts, strict=True)}


def matching(counts: Mapping[str, int], pattern: re.Pattern[str]) -> int:
    """How many events have a name that `pattern` finds."""
    return sum(count for name, count in counts.items() if pattern.search(name, 0, LONGEST_NAME))


def _is_backward(name: str) -> bool:
    return _BACKWARD.search(name, 0, LONGEST_NAME) is not None


def any_case(pattern: str) -> re.Pattern[str]:
    """A pattern that ignores case."""
    return re.compile(pattern, re.IGNORECASE)
