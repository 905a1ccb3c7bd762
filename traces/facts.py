"""What inference looks at: one trace, its classes, and how often each name occurs."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from traces.collectives import Communication
from traces.kernel_names import LONGEST_NAME
from traces.naming import Classified
from traces.trace import Category, Ints, Trace


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


def any_case(pattern: str) -> re.Pattern[str]:
    """A pattern that ignores case."""
    return re.compile(pattern, re.IGNORECASE)
