"""Pareto sets against the definition, plan by plan."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projector.ranking.pareto import fronts_of_groups, pareto_rows, thinned


def by_definition(losses: np.ndarray) -> set[int]:
    """Rows that no other equals or beats in everything, the first of equal ones standing for all."""
    found = set()
    for row, one in enumerate(losses):
        beaten = any((other <= one).all() and (other < one).any() for other in losses)
        earlier = any((other == one).all() for other in losses[:row])
        if not beaten and not earlier:
            found.add(row)
    return found


@given(st.integers(1, 4), st.lists(st.lists(st.integers(1, 6), min_size=4, max_size=4), min_size=1, max_size=40))
def test_the_set_is_what_its_definition_says(figures, rows) -> None:
    losses = np.array(rows, dtype=np.float64)[:, :figures]
    found = pareto_rows(losses)
    assert set(found.tolist()) == by_definition(losses)
    assert (np.diff(losses[found, 0]) >= 0).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=40))
def test_each_group_has_its_own_front(rows) -> None:
    group, first, second = (np.array(column) for column in zip(*rows, strict=True))
    found = fronts_of_groups(group, first.astype(float), second.astype(float))
    for one in np.unique(group):
        mine = np.flatnonzero(group == one)
        losses = np.stack([first[mine], second[mine]], axis=1)
        assert {mine[row] for row in by_definition(losses)} == {row for row in found.tolist() if group[row] == one}


def test_with_one_first_figure_the_front_of_a_group_is_its_best_row() -> None:
    group, second = np.array([7, 3, 7, 3]), np.array([2.0, 5.0, 1.0, 5.0])
    assert fronts_of_groups(group, np.zeros(4), second).tolist() == [1, 2]


def test_members_within_the_tie_are_left_out_and_none_is_far_from_a_kept_one() -> None:
    rng = np.random.default_rng(1)
    losses = rng.uniform(1, 1.3, (400, 3))
    members = losses[pareto_rows(losses)]
    kept = thinned(members, 0.02)
    assert 0 < len(kept) < len(members)
    for one in members:
        assert (members[kept] <= one * 1.02).all(axis=1).any()


@pytest.mark.parametrize("figures", [1, 2, 3])
def test_one_plan_is_its_own_pareto_set(figures) -> None:
    assert pareto_rows(np.ones((1, figures))).tolist() == [0]
