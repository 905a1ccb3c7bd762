"""Lining up two ranks' collectives of one group by their order, where no numbers are stated.

The same collectives of the same sizes happen in the same order on all ranks of a group. Windows may begin at different
ones, so the second rank's list is shifted until all that overlap agree. Where several shifts agree (a model repeats its
layers), the ends decide: a collective ends on all ranks together, so at the true shift the ends differ by the clocks
alone, always by about the same amount, while at a wrong one they differ by compute as well.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.trace import ABSENT, Ints, Mask

LEAST_OVERLAP: Final = 3
LEAST_OVERLAP_FRAC: Final = 0.5
MOST_SHIFT: Final = 16
_AS_GOOD: Final = 1.5
_RESOLUTION_NS: Final = 1_000  # many files state whole microseconds
_SHORT_TOGETHER_NS: Final = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """One rank's collectives of one group, in order. kind: a number for each; size: bytes, ABSENT agrees with any."""

    kind: Ints
    size: Ints
    end_ns: Ints
    duration_ns: Ints

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True)
class Shift:
    """Entry i of the reference is entry i + by of the other. why: the reason there is none, as a clause."""

    by: int | None
    why: str = ""


def best_shift(reference: Sequence, other: Sequence) -> Shift:
    """How far `other` is shifted against the reference, or why no shift fits."""
    shifts = _shifts_to_try(len(reference), len(other))
    agreeing = [by for by in shifts if _agree(reference, other, by).all()]
    if not agreeing:
        shares = [_agree(reference, other, by) for by in shifts]
        best = max(shares, key=lambda agree: float(agree.mean()), default=np.zeros(1, dtype=np.bool_))
        return Shift(None, f"at best {int(best.sum())} of {len(best)} collectives agree in kind and size")
    spread = {by: _spread_ns(reference, other, by) for by in agreeing}
    best_by = min(agreeing, key=lambda by: (spread[by], abs(by)))
    if spread[best_by] > together_ns(_duration_ns(reference, other, best_by)):
        return Shift(None, f"their ends differ by {spread[best_by]:,} ns beyond the clocks, about as long as they last")
    as_good = [by for by in agreeing if spread[by] <= _AS_GOOD * spread[best_by] + _RESOLUTION_NS]
    if len(as_good) > 1 and (len(reference) != len(other) or 0 not in as_good):
        return Shift(None, f"{len(as_good)} shifts fit equally well")
    return Shift(0 if len(as_good) > 1 else best_by)


def overlap(reference: int, other: int, by: int) -> tuple[slice, slice]:
    """Entries of two lists of the given lengths that face each other at a shift."""
    first, last = max(0, -by), min(reference, other - by)
    last = max(first, last)
    return slice(first, last), slice(first + by, last + by)


def _shifts_to_try(reference: int, other: int) -> list[int]:
    """Shifts, small ones first, that leave enough of the shorter list in common and lose few entries at either end."""
    shorter = min(reference, other)
    least = max(min(LEAST_OVERLAP, shorter), round(LEAST_OVERLAP_FRAC * shorter))
    low = max(least - reference, min(0, other - reference) - MOST_SHIFT)
    high = min(other - least, max(0, other - reference) + MOST_SHIFT)
    return sorted(range(low, high + 1), key=abs)


def _agree(reference: Sequence, other: Sequence, by: int) -> Mask:
    mine, theirs = overlap(len(reference), len(other), by)
    a, b = reference.size[mine], other.size[theirs]
    same: Mask = (reference.kind[mine] == other.kind[theirs]) & ((a == b) | (a == ABSENT) | (b == ABSENT))
    return same


def _spread_ns(reference: Sequence, other: Sequence, by: int) -> int:
    mine, theirs = overlap(len(reference), len(other), by)
    return spread_ns(other.end_ns[theirs] - reference.end_ns[mine])


def _duration_ns(reference: Sequence, other: Sequence, by: int) -> Ints:
    """The median over the collectives of the shorter of two durations, which holds less waiting."""
    mine, theirs = overlap(len(reference), len(other), by)
    return np.array(middle(np.minimum(reference.duration_ns[mine], other.duration_ns[theirs])))


def together_ns(duration_ns: Ints) -> Ints:
    """By how much ends of a collective may differ, clocks apart, for each duration.

    A tenth of what it lasts; 10 us, up to a quarter of it, where it is short; a microsecond for the file's resolution.
    """
    short = np.minimum(duration_ns // 4, _SHORT_TOGETHER_NS)
    allowed: Ints = np.maximum(duration_ns // 10, short) + _RESOLUTION_NS
    return allowed


def middle(values: Ints) -> int:
    """Lower median, exact in integers."""
    place = (len(values) - 1) // 2
    return int(np.partition(values, place)[place])


def spread_ns(differences: Ints) -> int:
    """Median distance from the median."""
    return middle(np.abs(differences - middle(differences)))
