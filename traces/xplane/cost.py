"""What the compiler says an operator costs: arithmetic and bytes per memory, from the stats of its event metadata."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.xplane.space import Kind, Span
from traces.xplane.wire import DELIMITED, WireFault, read_fields

_READ: Final = 1
_WRITE: Final = 2
_HBM: Final = 1
_CMEM: Final = 2
_VMEM: Final = 3


@dataclass(frozen=True, slots=True)
class Cost:
    """Work of some occurrences of an operator."""

    flop: int = 0
    hbm_bytes: int = 0
    cmem_read_bytes: int = 0
    cmem_write_bytes: int = 0
    vmem_read_bytes: int = 0
    vmem_write_bytes: int = 0

    def times(self, count: int) -> "Cost":
        """Cost of `count` such."""
        return Cost(*(figure * count for figure in self.figures()))

    def plus(self, other: "Cost") -> "Cost":
        """Cost of both."""
        return Cost(*(mine + others for mine, others in zip(self.figures(), other.figures(), strict=True)))

    def figures(self) -> tuple[int, int, int, int, int, int]:
        """All figures, in order."""
        return (
            self.flop,
            self.hbm_bytes,
            self.cmem_read_bytes,
            self.cmem_write_bytes,
            self.vmem_read_bytes,
            self.vmem_write_bytes,
        )


def cost_of(kind: Kind, data: bytes | bytearray) -> Cost | None:
    """Cost of one occurrence; None where the profile states neither arithmetic nor bytes above 0.

    Bytes come from `memory_access_breakdown` (read or write, of HBM, CMEM or VMEM); a profile without it counts all of
    `bytes_accessed` as HBM, as XProf does. XLA writes 0 for what it cannot cost (custom calls), so 0 is not a cost.
    """
    flop, accessed = kind.count("flops") or 0, kind.count("bytes_accessed") or 0
    found = dict.fromkeys(((_HBM, 0), *((memory, way) for memory in (_CMEM, _VMEM) for way in (_READ, _WRITE))), 0)
    stated = kind.stats.get("memory_access_breakdown")
    entries = list(_accesses(stated, data)) if isinstance(stated, Span) else []
    for way, memory, size in entries:
        key = (memory, 0 if memory == _HBM else way)
        if key in found:
            found[key] += size
    if not entries:
        found[_HBM, 0] = accessed
    cost = Cost(flop, *found.values())
    return cost if any(cost.figures()) else None


def _accesses(span: Span, data: bytes | bytearray) -> Iterator[tuple[int, int, int]]:
    """(operation, memory space, bytes) of each entry of a MemoryAccessBreakdown; nothing where it is damaged."""
    try:
        outer = read_fields(data, np.array([span.start]), np.array([span.end])).of(1, DELIMITED)
        inner = read_fields(data, outer.start, outer.end)
    except WireFault:
        return
    entries = len(outer.start)
    columns = (inner.last_word(number, entries).tolist() for number in (1, 2, 3))
    for way, memory, size in zip(*columns, strict=True):
        if size > 0:
            yield way, memory, size
