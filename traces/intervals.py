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
    """The part inside [start, end). Only that part is looked at: many short windows cost no more than a long one."""
    if end <= start:
        return EMPTY
    boundaries = intervals.ravel()
    first = int(np.searchsorted(boundaries, start, side="right")) // 2
    behind = (int(np.searchsorted(boundaries, end, side="left")) + 1) // 2
    return np.clip(intervals[first:behind], start, end)


def gaps(intervals: Intervals, start: int, end: int) -> Intervals:
    """The part of [start, end) that is not covered."""
    return subtract(np.array([[start, end]], dtype=np.int64) if end > start else EMPTY, intervals)


def contains(intervals: Intervals, points: Ints) -> Mask:
    """For each point whether an interval covers it."""
    return (np.searchsorted(intervals.ravel(), points, side="right") & 1).astype(np.bool_)


def covered_before(intervals: Intervals, points: Ints) -> Ints:
    """For each point the length covered before it."""
    if not len(intervals):
        return np.zeros(len(points), dtype=np.int64)
    starts, ends = intervals[:, 0], intervals[:, 1]
    whole = np.concatenate(([0], np.cumsum(ends - starts)))
    begun = np.searchsorted(starts, points, side="right")
    last = np.maximum(begun - 1, 0)
    beyond = np.where(begun > 0, np.maximum(ends[last] - np.maximum(points, starts[last]), 0), 0)
    before: Ints = whole[begun] - beyond
    return before


def _segments(a: Intervals, b: Intervals) -> tuple[Ints, Mask, Mask]:
    """Every boundary in order, and for each piece between two boundaries whether a and b cover it.

    Flattened, a set is a strictly rising list of starts and ends in turn, so the number of boundaries at or before a
    point is odd exactly when the set covers it.
    """
    cuts = np.sort(np.concatenate((a.ravel(), b.ravel())), kind="stable")  # two rising runs: far faster than np.unique
    cuts = cuts[np.append(True, cuts[1:] != cuts[:-1])] if len(cuts) else cuts
    left = cuts[:-1]
    return cuts, contains(a, left), contains(b, left)


def _collect(cuts: Ints, keep: Mask) -> Intervals:
    """The kept pieces between neighbouring cuts, joined where they touch."""
    if not keep.any():
        return EMPTY
    edges = np.diff(np.concatenate(([0], keep.astype(np.int8), [0])))
    return np.column_stack((cuts[np.flatnonzero(edges == 1)], cuts[np.flatnonzero(edges == -1)]))
