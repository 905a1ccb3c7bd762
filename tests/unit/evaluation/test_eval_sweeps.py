"""Ranking inside groups: regret of the pick, pairs in the right order, and which rows form a group."""

import numpy as np
import pytest
from evaluation_examples import LLAMA, read, row, row_values

from agents.evaluation.accuracy import accuracy
from agents.evaluation.cases import case_of
from agents.evaluation.scored import score
from agents.evaluation.sweeps import spearman

LAYOUTS = ({"tp": 1}, {"tp": 2}, {"tp": 4}, {"tp": 8})


def projected() -> list[float]:
    return [score(case_of(row(adopted=layout), "")).projected_s for layout in LAYOUTS]


def sweep(times, **changes):
    return [
        row_values(f"row-{place}", adopted=layout, measured={"step_time_s": time}, **changes)
        for place, (layout, time) in enumerate(zip(LAYOUTS, times, strict=False))
    ]


def report(*values):
    return accuracy(read(*values), {})


def test_a_sweep_measured_as_projected_has_no_regret():
    found = report(*sweep(projected()))
    assert (found.top1_regret, found.top3_regret, found.order_accuracy) == (0.0, 0.0, 1.0)
    (group,) = found.sweep_groups
    assert (group.n_given, group.n_modelled, group.pairs, group.spearman) == (4, 4, 6, pytest.approx(1.0))


def test_regret_is_how_much_slower_the_pick_is_than_the_best():
    order = np.argsort(projected())
    times = np.empty(4)
    times[order] = [1.5, 1.2, 1.1, 1.0]
    found = report(*sweep(times))
    assert found.top1_regret == pytest.approx(0.5)
    assert found.top3_regret == pytest.approx(0.1)
    assert found.order_accuracy == 0.0


def test_pairs_within_five_per_cent_do_not_count():
    found = report(*sweep([1.0, 1.04, 1.0, 1.03]))
    assert found.sweep_groups[0].pairs == 0
    assert found.order_accuracy is None


def test_a_tie_in_projection_is_not_the_right_order_and_its_slower_row_is_picked():
    alike = [
        row_values("fast", adopted={"extra": {"colour": "red"}}, measured={"step_time_s": 1.0}),
        row_values("slow", adopted={"extra": {"colour": "blue"}}, measured={"step_time_s": 1.2}),
    ]
    (group,) = report(*alike).sweep_groups
    assert (group.pairs, group.right_pairs, group.tied_pairs) == (1, 0, 1)
    assert group.top1_regret == pytest.approx(0.2)


def test_repetitions_of_one_configuration_are_no_sweep():
    repeated = [row_values(name, measured={"step_time_s": time}) for name, time in (("a", 1.0), ("b", 1.3))]
    assert report(*repeated).sweep_groups == ()


def test_releases_of_one_stack_are_kept_apart():
    first, second, third, fourth = sweep(projected(), superseded=False)
    values = [first | {"release": "1"}, second | {"release": "1"}, third | {"release": "2"}, fourth | {"release": "2"}]
    found = report(*values)
    assert sorted((one.name, one.n_modelled) for one in found.sweep_groups) == [
        ("small|h100|8 github:example/numbers 1", 2),
        ("small|h100|8 github:example/numbers 2", 2),
    ]
    assert [(one.value, one.groups, one.rows) for one in found.mixed_sweeps] == [
        ("all", 1, 4),
        ("github:example/numbers", 1, 4),
    ]


def test_the_best_row_of_a_group_may_be_one_that_was_refused():
    fast = row_values("fast", adopted={"pp": 2, "schedule": "spiral"}, measured={"tokens_per_s_per_chip": 1e6})
    times = projected()
    found = report(*sweep(times), fast)
    best = 4096 * 64 / 8e6
    assert found.sweep_groups[0].n_given == 5
    assert found.top1_regret == pytest.approx(min(times) / best - 1)


def test_a_row_that_does_not_fit_is_picked_last():
    thirteen_billion = LLAMA | {
        "num_hidden_layers": 40,
        "hidden_size": 5120,
        "num_attention_heads": 40,
        "num_key_value_heads": 40,
        "intermediate_size": 13824,
    }
    values = [
        row_values("whole", arch=thirteen_billion, measured={"step_time_s": 9.0}),
        row_values("split", arch=thirteen_billion, adopted={"tp": 8}, measured={"step_time_s": 10.0}),
    ]
    whole, split = (score(case_of(one, "")) for one in read(*values))
    assert (whole.too_large, split.too_large) == (True, False)
    assert whole.projected_s < split.projected_s
    assert report(*values).top1_regret == pytest.approx(10.0 / 9.0 - 1)


def test_rank_correlation_shares_ranks_of_equal_values():
    assert spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 15.0])) == pytest.approx(0.5)
    assert spearman(np.array([1.0, 1.0]), np.array([1.0, 2.0])) is None
