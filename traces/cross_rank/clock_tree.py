"""ClockTree: ranks joined by what is known of their clocks' differences, each with its offset."""

from collections.abc import Mapping

import numpy as np

from traces.cross_rank.order import middle


class ClockTree:
    """Ranks joined so far: each rank's offset against the root of its part."""

    def __init__(self) -> None:
        self._root: dict[int, int] = {}
        self._offset: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}

    def join(self, offset_ns: Mapping[int, int]) -> None:
        """Join ranks whose offsets against each other are given; what is joined already keeps its own."""
        first, *others = offset_ns
        for rank in offset_ns:
            if rank not in self._root:
                self._root[rank], self._offset[rank], self._members[rank] = rank, 0, [rank]
        for rank in others:
            if self._root[rank] != self._root[first]:
                self._move(rank, first, offset_ns[rank] - offset_ns[first])

    def contradiction_ns(self, offset_ns: Mapping[int, int]) -> int:
        """By how much the given offsets differ from those of ranks that are joined already, at most."""
        bases: dict[int, int] = {}
        worst = 0
        for rank, offset in offset_ns.items():
            if rank in self._root:
                base = bases.setdefault(self._root[rank], rank)
                worst = max(worst, abs(offset - offset_ns[base] - (self._offset[rank] - self._offset[base])))
        return worst

    def _move(self, rank: int, to: int, difference_ns: int) -> None:
        """Take the part of `rank` into the part of `to`."""
        shift = self._offset[to] + difference_ns - self._offset[rank]
        root = self._root[to]
        for member in self._members.pop(self._root[rank]):
            self._root[member] = root
            self._offset[member] += shift
            self._members[root].append(member)

    def parts(self) -> list[dict[int, int]]:
        """Offsets of the ranks of each part against its lower median."""
        found = []
        for members in self._members.values():
            job = middle(np.array([self._offset[rank] for rank in members]))
            found.append({rank: self._offset[rank] - job for rank in sorted(members)})
        return sorted(found, key=lambda part: min(part))
