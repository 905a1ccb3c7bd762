"""Interval algebra in exact integer nanoseconds.

A set of intervals is an int64 array of shape (n, 2): half-open [start, end), sorted, disjoint, not touching, none
empty. `merge` makes one from anything; every function here takes and returns such sets. An interval of zero length
covers nothing and disappears.
"""

import numpy as np
from numpy.typing import NDArray

from traces.trace import Ints, Mask

Intervals = NDArray[np.int64]

EMPTY: Intervals = np.empty((0, 2), dtype=np.int64)


def merge(starts: Ints, ends: Ints) -> Intervals:
    """Union of the intervals [starts[i], ends[i]); those with end <= start cover nothing."""
    covers = ends > starts
    starts, ends = starts[covers], ends[covers]
    if not len(starts):
        return EMPTY
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.ones(len(starts), dtype=np.bool_)
    first[1:] = starts[1:] > reach[:-1]
    last = np.append(np.flatnonzero(first)[1:] - 1, len(starts) - 1)
    return np.column_stack((starts[first], reach[last]))


def length(intervals: Intervals) -> int:
    """Total length in nanoseconds."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def union(a: Intervals, b: Intervals) -> Intervals:
    """Covered by a or b."""
    cuts, in_a, in_b = _segments(a, b)
    return _collect(cuts, in_a | in_b)


def intersection(a: Intervals, b: Intervals) -> Intervals:
    """Covered by a and b."""
    cuts, in_a, in_b = _segments(a, b)
    return _collect(cuts, in_a & in_b)


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """Covered by a and not by b."""
    cuts, in_a, in_b = _segments(a, b)
    return _collect(cuts, in_a & ~in_b)


def clip(intervals: Intervals, start: int, end: int) -> Intervals:
    """The part inside [start, end)."""
    clipped = np.clip(intervals, start, end)
    return clipped[clipped[:, 1] > clipped[:, 0]]


def gaps(intervals: Intervals, start: int, end: int) -> Intervals:
    """The part of [start, end) that is not covered."""
    return subtract(np.array([[start, end]], dtype=np.int64) if end > start else EMPTY, intervals)


def contains(intervals: Intervals, points: Ints) -> Mask:
    """For each point whether an interval covers it."""
    return (np.searchsorted(intervals.ravel(), points, side="right") & 1).astype(np.bool_)


def _segments(a: Intervals, b: Intervals) -> tuple[Ints, Mask, Mask]:
    """Every boundary in order, and for each piece between two boundaries whether a and b cover it.

    Flattened, a set is a strictly rising list of starts and ends in turn, so the number of boundaries at or before a
    point is odd exactly when the set covers it.
    """
    cuts = np.unique(np.concatenate((a.ravel(), b.ravel())))
    left = cuts[:-1]
    return cuts, contains(a, left), contains(b, left)


def _collect(cuts: Ints, keep: Mask) -> Intervals:
    """The kept pieces between neighbouring cuts, joined where they touch."""
    if not keep.any():
        return EMPTY
    edges = np.diff(np.concatenate(([0], keep.astype(np.int8), [0])))
    return np.column_stack((cuts[np.flatnonzero(edges == 1)], cuts[np.flatnonzero(edges == -1)]))
