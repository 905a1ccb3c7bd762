"""Ranks shared within 2 %: against the leader of a group, never chained, in any order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projector.ranking.ties import TIE_FRAC, shared_ranks


@pytest.mark.parametrize(
    ("good", "ranks"),
    [
        ([100.0, 99.0, 98.1, 90.0], [1, 1, 1, 4]),
        ([90.0, 98.1, 100.0, 99.0], [4, 1, 1, 1]),
        # 98 is within 2 % of 99 and not of 100: it leads the next group instead of chaining on
        ([100.0, 99.0, 98.0, 97.0], [1, 1, 3, 3]),
        ([5.0, 5.0, 5.0], [1, 1, 1]),
        ([1.0], [1]),
        ([], []),
    ],
)
def test_competition_ranks(good, ranks) -> None:
    assert shared_ranks(np.array(good)).tolist() == ranks


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60))
def test_no_two_of_a_group_differ_by_more_than_the_tie_and_ranks_count_who_is_before(figures) -> None:
    good = np.array(figures)
    ranks = shared_ranks(good)
    for rank in np.unique(ranks):
        group = good[ranks == rank]
        assert group.max() <= group.min() * (1 + TIE_FRAC)
        assert (ranks < rank).sum() == rank - 1
        before = good[ranks < rank]
        assert before.size == 0 or before.min() > group.max()


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_the_figures_does_not_matter(figures, random) -> None:
    shuffled = list(range(len(figures)))
    random.shuffle(shuffled)
    ranks = shared_ranks(np.array(figures))
    assert shared_ranks(np.array(figures)[shuffled]).tolist() == ranks[shuffled].tolist()
