"""Collectives against hand arithmetic: 100 GB/s inside a domain of 8, 25 GB/s and 5 us between domains."""

import numpy as np
import pytest
from projector_examples import cluster, ideal, switched_chip, torus_chip

from projector.cost.collectives import collective_time_s
from projector.cost.routes import routes
from projector.cost.torus import even_shape, slice_shape
from projector.errors import InvalidDescription
from projector.graph.groups import Group
from projector.graph.operator import Collective, CollectiveKind
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import SCALE_LOSS, HardwareProfile


def time_s(
    kind: CollectiveKind,
    payload_bytes: float,
    *,
    size: int,
    stride: int = 1,
    chips: int = 64,
    hardware: HardwareProfile | None = None,
    machine: ClusterSpec | None = None,
    copies: float = 1.0,
) -> float:
    """Seconds of one collective over `size` ranks, `stride` apart."""
    hardware = hardware or switched_chip()
    group = Group(np.array([float(stride)]), np.array([float(size)]))
    groups = {"tp": group, "data": group}
    found = routes(groups, machine or cluster(hardware, chips), hardware)
    return float(collective_time_s(Collective(kind, "tp", "tp", np.array([payload_bytes]), copies), found)[0])


def test_ring_all_reduce_moves_each_byte_twice() -> None:
    # 2 (8 - 1) / 8 x 0.8 GB / 100 GB/s = 14 ms; latency of a tree of 3 levels, up and down, at 1 us
    assert time_s("all_reduce", 0.8e9, size=8) == pytest.approx(14e-3 + 6e-6)


def test_small_all_reduce_is_done_in_one_step() -> None:
    # everyone sends 1 kB to 7 others at once: 7 kB / 100 GB/s and one latency
    assert time_s("all_reduce", 1e3, size=8) == pytest.approx(7e3 / 100e9 + 1e-6)


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter"])
def test_gather_and_scatter_move_each_byte_once(kind: CollectiveKind) -> None:
    # 7/8 x 0.8 GB / 100 GB/s = 7 ms and 7 steps of 1 us
    assert time_s(kind, 0.8e9, size=8) == pytest.approx(7e-3 + 7e-6)


def test_gather_over_two_domains_is_bound_by_the_network() -> None:
    # a ring of 16 passes 14 links inside and 1 across (of the 15 steps that count);
    # each device receives 1/2 of its eighth of 0.8 GB over its own 25 GB/s: 2 ms at a full link
    across_s = 0.8e9 / 8 / 2 / 25e9 * (1 + SCALE_LOSS)
    inside_s = 0.8e9 * 7 / 8 / 100e9
    assert time_s("all_gather", 0.8e9, size=16) == pytest.approx(max(across_s, inside_s) + 14e-6 + 5e-6)


def test_group_with_one_rank_a_domain_gets_nothing_of_the_fast_links() -> None:
    # 8 ranks, 8 apart: all traffic crosses the network, 7/8 x 0.8 GB / 25 GB/s, slowed by log2 8 = 3 doublings
    expected_s = 0.8e9 * 7 / 8 / 25e9 * (1 + 3 * SCALE_LOSS) + 7 * 5e-6
    assert time_s("all_gather", 0.8e9, size=8, stride=8) == pytest.approx(expected_s)


def test_all_to_all_keeps_the_share_of_its_own_domain_off_the_network() -> None:
    # 16 ranks in 2 domains: half of 0.8 GB crosses at 25 GB/s
    assert time_s("all_to_all", 0.8e9, size=16) == pytest.approx(0.4e9 / 25e9 + 1e-6 + 5e-6)


def test_one_copy_a_domain_crosses_and_is_forwarded_inside() -> None:
    # 4 copies of a token over 2 domains meet 2 (1 - 1/16) = 1.875 of them: 1.875/4 of what crosses, all spread inside
    found_s = time_s("all_to_all", 0.8e9, size=16, copies=4)
    assert found_s == pytest.approx(0.4e9 * 1.875 / 4 / 25e9 + 1e-6 + 5e-6)
    # inside one domain 4 copies meet 8 (1 - (7/8)^4) = 3.31 of 8 ranks, each once
    inside_s = time_s("all_to_all", 0.8e9, size=8, copies=4)
    assert inside_s == pytest.approx(0.8e9 * 8 * (1 - (7 / 8) ** 4) / 4 * 7 / 8 / 100e9 + 1e-6)


def test_send_takes_the_slowest_tier_the_group_crosses() -> None:
    assert time_s("send", 1e9, size=4) == pytest.approx(10e-3 + 1e-6)
    assert time_s("send", 1e9, size=4, stride=8) == pytest.approx(40e-3 + 5e-6)


@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"])
def test_group_of_one_needs_no_communication(kind: CollectiveKind) -> None:
    assert time_s(kind, 1e9, size=1) == 0.0


def test_odd_group_uses_the_largest_part_that_fits_a_domain() -> None:
    # 12 ranks, 8 a domain: 6 inside, 2 domains
    inside_s, across_s = 0.6e9 * 5 / 6 / 100e9, 0.6e9 / 6 / 2 / 25e9 * (1 + SCALE_LOSS)
    assert time_s("all_gather", 0.6e9, size=12) == pytest.approx(max(inside_s, across_s) + 10e-6 + 5e-6)


def test_full_mesh_gives_a_small_group_only_its_own_links() -> None:
    hardware = switched_chip()
    mesh = hardware.model_copy(update={"intra": hardware.intra.model_copy(update={"kind": "mesh"})})
    # 2 of 8 share one of 7 links: 100 / 7 GB/s
    assert time_s("send", 1e9, size=2, hardware=mesh) == pytest.approx(1e9 / (100e9 / 7) + 1e-6)


def test_link_efficiency_divides_bandwidth_and_not_latency() -> None:
    hardware = switched_chip(calibration=ideal(link_efficiency_frac=0.5))
    assert time_s("all_gather", 0.8e9, size=8, hardware=hardware) == pytest.approx(14e-3 + 7e-6)


def test_missing_network_is_named_when_a_plan_needs_it() -> None:
    with pytest.raises(InvalidDescription, match="states no bandwidth between domains"):
        time_s("all_gather", 1e9, size=16, hardware=switched_chip(network=None))


def test_axis_over_a_whole_torus_dimension_wraps_around() -> None:
    # 16 of 16 chips: both directions, 2 x 10 GB/s, 8 hops to the far side
    expected_s = 0.8e9 * 15 / 16 / 20e9 + 8e-6
    assert time_s("all_gather", 0.8e9, size=16, chips=256, hardware=torus_chip()) == pytest.approx(expected_s)


def test_shorter_axis_is_a_line() -> None:
    # 8 of 16 chips in a row: one direction at the ends, 7 hops
    expected_s = 0.8e9 * 7 / 8 / 10e9 + 7e-6
    assert time_s("all_gather", 0.8e9, size=8, chips=256, hardware=torus_chip()) == pytest.approx(expected_s)


def test_axis_over_two_dimensions_uses_the_links_of_both() -> None:
    expected_s = 0.8e9 * 255 / 256 / 40e9 + 16e-6
    assert time_s("all_gather", 0.8e9, size=256, chips=256, hardware=torus_chip()) == pytest.approx(expected_s)


def test_strided_axis_shares_its_links_with_the_groups_between() -> None:
    # 4 groups of 4, interleaved on a dimension of 16: wraps, a quarter of 20 GB/s, 2 steps of 4 hops
    hardware = torus_chip(wrap_multiple=4)
    machine = cluster(hardware, 16, topology=(4, 4))
    expected_s = 0.8e9 * 3 / 4 / 20e9 + 2e-6
    assert time_s("all_gather", 0.8e9, size=4, stride=4, hardware=hardware, machine=machine) == pytest.approx(
        expected_s
    )


def test_all_to_all_on_a_ring_loads_the_bisection() -> None:
    # n = 16: b n / (8 l) for what leaves a chip, 15/16 of 0.8 GB
    expected_s = 0.8e9 * 15 / 16 * 16 / (8 * 10e9) + 1e-6
    assert time_s("all_to_all", 0.8e9, size=16, chips=256, hardware=torus_chip()) == pytest.approx(expected_s)


def test_second_slice_is_reached_over_the_data_centre_network() -> None:
    hardware = torus_chip()
    machine = cluster(hardware, 512, topology=(16, 16), slices=2)
    # 512 ranks: 1/2 of a 256th crosses at 5 GB/s; the torus part is slower
    inside_s = 8e9 * 255 / 256 / 40e9
    expected_s = inside_s + 16e-6 + 20e-6
    assert time_s("all_gather", 8e9, size=512, hardware=hardware, machine=machine) == pytest.approx(expected_s)


def test_slice_shapes_are_even_and_never_pass_the_largest_slice() -> None:
    assert even_shape(256, 2) == (16, 16)
    assert even_shape(128, 3) == (4, 4, 8)
    assert even_shape(24, 3) == (2, 3, 4)
    assert slice_shape(cluster(torus_chip(), 1024), torus_chip()) == (16, 16)
    assert slice_shape(cluster(torus_chip(), 513), torus_chip()) == (9, 19)
