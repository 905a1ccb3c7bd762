import numpy as np

from traces import intervals
from traces.intervals import EMPTY, Intervals


def of(*pairs: tuple[int, int]) -> Intervals:
    """A set from pairs in any order."""
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return intervals.merge(array[:, 0], array[:, 1])


def test_merge_joins_overlapping_and_touching_intervals_and_drops_empty_ones() -> None:
    assert of((5, 7), (0, 3), (2, 4), (4, 5), (9, 9), (12, 11)).tolist() == [[0, 7]]
    assert of((0, 1), (2, 3)).tolist() == [[0, 1], [2, 3]]
    assert of((0, 100), (1, 2), (50, 60)).tolist() == [[0, 100]]


def test_algebra_of_two_sets() -> None:
    a, b = of((0, 10), (20, 30)), of((5, 22), (28, 40))
    assert intervals.union(a, b).tolist() == [[0, 40]]
    assert intervals.intersection(a, b).tolist() == [[5, 10], [20, 22], [28, 30]]
    assert intervals.subtract(a, b).tolist() == [[0, 5], [22, 28]]
    assert intervals.length(a) == 20


def test_with_nothing() -> None:
    a = of((3, 9))
    assert intervals.intersection(a, EMPTY).tolist() == intervals.subtract(EMPTY, a).tolist() == []
    assert intervals.union(EMPTY, EMPTY).tolist() == []
    assert intervals.subtract(a, EMPTY).tolist() == intervals.union(EMPTY, a).tolist() == [[3, 9]]
    assert intervals.length(EMPTY) == 0


def test_clip_gaps_and_membership() -> None:
    a = of((0, 10), (20, 30))
    assert intervals.clip(a, 5, 25).tolist() == [[5, 10], [20, 25]]
    assert intervals.clip(a, 10, 20).tolist() == []
    assert intervals.gaps(a, -5, 35).tolist() == [[-5, 0], [10, 20], [30, 35]]
    assert intervals.gaps(a, 7, 7).tolist() == []
    assert intervals.contains(a, np.array([-1, 0, 9, 10, 20, 30])).tolist() == [False, True, True, False, True, False]


def test_times_of_the_size_profilers_write_stay_exact() -> None:
    start = 1_712_195_495_505_582_988
    a = of((start, start + 1), (start + 2, start + 3))
    assert intervals.length(a) == 2
    assert intervals.length(intervals.gaps(a, start, start + 3)) == 1
