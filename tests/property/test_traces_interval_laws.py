"""The algebra against a set of integers, and the laws it must keep."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traces import intervals
from traces.intervals import Intervals

pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)
far = st.integers(-(2**61), 2**61)


def merged(spans: list[tuple[int, int]], origin: int = 0) -> Intervals:
    starts = np.array([origin + start for start, _ in spans], dtype=np.int64)
    lengths = np.array([length for _, length in spans], dtype=np.int64)
    return intervals.merge(starts, starts + lengths)


def points(spans: list[tuple[int, int]]) -> set[int]:
    return {point for start, length in spans for point in range(start, start + length)}


def covered(found: Intervals) -> set[int]:
    return {point for start, end in found.tolist() for point in range(start, end)}


def is_a_set(found: Intervals) -> bool:
    flat = found.ravel()
    return bool((np.diff(flat) > 0).all())


@given(pairs, pairs)
def test_the_operations_are_those_of_sets_of_points(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    left, right = merged(a), merged(b)
    for operation, expected in (
        (intervals.union, points(a) | points(b)),
        (intervals.intersection, points(a) & points(b)),
        (intervals.subtract, points(a) - points(b)),
    ):
        found = operation(left, right)
        assert covered(found) == expected
        assert is_a_set(found)


@given(pairs, pairs, far)
def test_inclusion_and_exclusion_wherever_time_begins(
    a: list[tuple[int, int]], b: list[tuple[int, int]], origin: int
) -> None:
    left, right = merged(a, origin), merged(b, origin)
    size = intervals.length
    assert size(intervals.union(left, right)) == size(left) + size(right) - size(intervals.intersection(left, right))
    assert size(intervals.subtract(left, right)) == size(left) - size(intervals.intersection(left, right))


@given(pairs, st.randoms())
def test_the_order_of_events_does_not_matter(a: list[tuple[int, int]], random: "object") -> None:
    shuffled = list(a)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert merged(a).tolist() == merged(shuffled).tolist()


@given(pairs, st.integers(-5, 90), st.integers(-5, 90))
def test_a_window_is_covered_or_a_gap(a: list[tuple[int, int]], start: int, end: int) -> None:
    window = max(end - start, 0)
    inside = intervals.length(intervals.clip(merged(a), start, max(end, start)))
    assert inside + intervals.length(intervals.gaps(merged(a), start, end)) == window
