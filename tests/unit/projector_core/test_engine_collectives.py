"""Collectives of an engine by algorithm: worked numbers, who wins where, a torus without direct copies."""

from dataclasses import replace

import numpy as np
import pytest

from projector.cost.engine_collectives import ALL_REDUCES, ALL_TO_ALLS, DIRECT_COPY_FRAC, all_reduce_s, all_to_all_s
from projector.cost.routes import Route
from projector.graph.columns import Column
from projector.graph.operator import Algorithms

FASTEST = Algorithms()


def route(*, inner: float = 8, outer: float = 1, direct: bool = True) -> Route:
    """100 GB/s and 1 us inside a domain, 10 GB/s and 5 us between domains."""
    one = np.ones(1)
    return Route(
        inner=inner * one,
        outer=outer * one,
        inner_bytes_per_s=100e9 * one,
        inner_hop_s=1e-6,
        inner_hops=(inner - 1) * one,
        direct=direct,
        spread_bytes_per_s=100e9 * one,
        outer_bytes_per_s=10e9,
        outer_ring_bytes_per_s=10e9 * one,
        outer_hop_s=5e-6,
    )


def size(value: float) -> Column:
    return np.array([value])


def reduced(name: str, payload: float, over: Route) -> float:
    return float(ALL_REDUCES[name](size(payload), over)[0])


def exchanged(name: str, payload: float, over: Route) -> float:
    return float(ALL_TO_ALLS[name](size(payload), over)[0])


def test_all_reduces_of_eight_ranks_in_numbers() -> None:
    # 8 MB: seven eighths of it twice through a link of 100 GB/s, 70 us each way; seven times of it in one shot
    assert reduced("ring", 8e6, route()) == pytest.approx(2 * (70e-6 + 7e-6))
    assert reduced("hierarchical", 8e6, route()) == pytest.approx(2 * (70e-6 + 3e-6))
    assert reduced("two_shot", 8e6, route()) == pytest.approx(2 * (70e-6 / DIRECT_COPY_FRAC + 1e-6))
    assert reduced("one_shot", 8e6, route()) == pytest.approx(560e-6 / DIRECT_COPY_FRAC + 1e-6)


def test_each_algorithm_has_sizes_where_it_is_the_fastest_inside_a_domain() -> None:
    found = {payload: min(ALL_REDUCES, key=lambda name: reduced(name, payload, route())) for payload in (8e3, 1e5, 1e8)}
    assert found == {8e3: "one_shot", 1e5: "two_shot", 1e8: "hierarchical"}


def test_over_domains_a_ring_overlaps_both_tiers_and_a_hierarchy_has_fewer_steps() -> None:
    wide = route(outer=4)
    assert reduced("hierarchical", 1e4, wide) < reduced("ring", 1e4, wide)
    assert reduced("ring", 1e8, wide) < reduced("hierarchical", 1e8, wide)
    # one shot pulls every buffer through the network
    assert reduced("one_shot", 1e8, wide) > 10 * reduced("ring", 1e8, wide)


def test_fastest_is_the_least_of_all_and_a_name_is_taken_at_its_word() -> None:
    for payload in (1e3, 1e6, 1e9):
        for over in (route(), route(outer=4)):
            least = min(reduced(name, payload, over) for name in ALL_REDUCES)
            assert all_reduce_s(size(payload), over, FASTEST)[0] == pytest.approx(least)
            named = Algorithms((("ring", np.array([True])),))
            assert all_reduce_s(size(payload), over, named)[0] == reduced("ring", payload, over)


def test_one_kernel_leaves_a_library_out() -> None:
    own = Algorithms(one_kernel=np.array([True]))
    assert all_reduce_s(size(1e8), route(), own)[0] == reduced("two_shot", 1e8, route())


def test_a_torus_has_its_ring_whatever_is_named() -> None:
    torus = route(direct=False)
    named = Algorithms((("one_shot", np.array([True])),))
    assert all_reduce_s(size(1e4), torus, named)[0] == all_reduce_s(size(1e4), torus, FASTEST)[0]


def test_exchanges_in_numbers() -> None:
    # 8 MB: seven eighths leave the rank
    assert exchanged("direct", 8e6, route()) == pytest.approx(70e-6 + 7e-6)
    assert exchanged("single_shot", 8e6, route()) == pytest.approx(70e-6 / DIRECT_COPY_FRAC + 1e-6)
    assert exchanged("at_once", 8e6, route()) == pytest.approx(70e-6 + 1e-6)
    # over 4 domains three quarters cross: 600 us; 24 peers there, or 3 domains
    wide = route(outer=4)
    assert exchanged("direct", 8e6, wide) == pytest.approx(600e-6 + 7e-6 + 24 * 5e-6)
    assert exchanged("hierarchical", 8e6, wide) == pytest.approx(70e-6 + 600e-6 + 1e-6 + 3 * 5e-6)


def test_exchange_takes_the_fastest_that_every_engine_has() -> None:
    for payload in (1e3, 1e5, 1e8):
        for over in (route(), route(outer=4)):
            least = min(exchanged(name, payload, over) for name in ("direct", "single_shot", "hierarchical"))
            assert all_to_all_s(size(payload), over, FASTEST)[0] == pytest.approx(least)


def test_one_domain_has_no_hierarchy_to_exchange_over() -> None:
    assert exchanged("hierarchical", 1e6, route()) == exchanged("direct", 1e6, route())
    assert exchanged("hierarchical", 1e6, replace(route(), outer=np.array([2.0]))) != exchanged(
        "direct", 1e6, replace(route(), outer=np.array([2.0]))
    )
