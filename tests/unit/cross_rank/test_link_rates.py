"""Bus bandwidth of each group, waiting removed, beside its sisters and beside the hardware."""

import pytest
from rank_jobs import Faults, Shape, make_job
from rank_logs import crossed
from small_logs import One, log_of

from projector import catalog
from projector.specs.hardware import SCALE_LOSS
from traces.cross_rank.job import cross_rank
from traces.cross_rank.placed import LOSS_EACH_DOUBLING, judged
from traces.job_types import LinkRate

MB = 10**6
H100 = catalog.chip("h100-sxm")


def link(rate: float, at: tuple[int, ...], **more: object) -> LinkRate:
    fields: dict[str, object] = {
        "group": f"g{at[0]}",
        "axis": "dp",
        "ranks": at,
        "group_size": len(at),
        "kinds": ("all_reduce",),
        "collectives": 12,
        "bus_bytes_per_s": rate,
        "best_bus_bytes_per_s": 1.02 * rate,
        "waiting_removed": True,
    }
    return LinkRate.model_validate(fields | more)


def far(first: int, count: int = 4) -> tuple[int, ...]:
    return tuple(range(first, first + 8 * count, 8))


# measured -----------------------------------------------------------------------------------------------------------


def test_bus_bandwidth_is_over_the_transfer_alone() -> None:
    """80 MB all-reduced by two ranks is 80 MB on the bus; the last rank came 1 ms before the end."""
    early = [One(at, at + 3_000, size=80 * MB, number=at) for at in (0, 10_000)]
    late = [One(at + 2_000, at + 3_000, size=80 * MB, number=at) for at in (0, 10_000)]
    (found,) = cross_rank([(0, log_of(*early, axis="dp")), (1, log_of(*late, axis="dp"))]).links
    assert (found.group, found.axis, found.ranks, found.group_size) == ("g", "dp", (0, 1), 2)
    assert found.bus_bytes_per_s == pytest.approx(80e9)
    assert (found.collectives, found.kinds, found.waiting_removed) == (2, ("all_reduce",), True)


def test_one_rank_alone_gives_a_lower_bound() -> None:
    (found,) = cross_rank([(0, log_of(One(0, 4_000, size=80 * MB), One(9_000, 11_000, size=80 * MB)))]).links
    assert (found.bus_bytes_per_s, found.best_bus_bytes_per_s) == (pytest.approx(30e9), pytest.approx(40e9))
    assert not found.waiting_removed


def test_a_group_of_which_ranks_are_missing_gives_a_lower_bound() -> None:
    ones = [One(at, at + 1_000, size=80 * MB, number=at, ranks=(0, 1, 2, 3)) for at in (0, 10_000)]
    (found,) = cross_rank([(rank, log_of(*ones)) for rank in (0, 1)]).links
    assert (found.group_size, found.waiting_removed) == (4, False)


def test_small_messages_say_nothing_of_a_link() -> None:
    ones = [One(at, at + 100, size=1 << 20, number=at) for at in (0, 1_000)]
    assert cross_rank([(rank, log_of(*ones)) for rank in (0, 1)]).links == ()
    wide = tuple(range(64))
    ones = [One(at, at + 100, size=8 << 20, number=at, ranks=wide) for at in (0, 1_000)]
    assert cross_rank([(0, log_of(*ones))]).links == (), "128 KiB for each of 64 ranks"


def test_an_all_to_all_of_unequal_splits_has_no_known_rate() -> None:
    for uneven in (True, None):
        ones = [One(at, at + 1_000, "all_to_all", size=80 * MB, number=at, uneven=uneven) for at in (0, 5_000)]
        assert cross_rank([(rank, log_of(*ones)) for rank in (0, 1)]).links == ()


def test_a_group_with_two_patterns_has_two_rates() -> None:
    ones = [
        One(0, 1_000, "all_to_all", size=80 * MB, number=1),
        One(5_000, 6_000, "all_gather", size=80 * MB, number=2),
    ]
    found = cross_rank([(rank, log_of(*ones)) for rank in (0, 1)]).links
    assert {one.kinds for one in found} == {("all_to_all",), ("all_gather",)}
    assert [one.bus_bytes_per_s for one in found] == [pytest.approx(40e9)] * 2


def test_messages_beside_others_of_their_reach_are_told() -> None:
    ones = [One(at, at + 1_000, size=80 * MB, number=at) for at in (0, 5_000)]
    beside = [One(at + 100, at + 900, group="other", size=1_000) for at in (0, 5_000)]
    both = sorted((*ones, *beside), key=lambda one: one.start)
    (found,) = cross_rank([(rank, log_of(*both)) for rank in (0, 1)]).links
    assert not found.alone


# beside its sisters -------------------------------------------------------------------------------------------------


def test_a_link_far_below_its_sisters_is_degraded() -> None:
    links = judged([link(12e9, far(0)), *(link(40e9, far(first)) for first in range(1, 8))], None)
    assert [one.degraded for one in links] == [True] + [False] * 7
    assert links[0].why == "12 GB/s of bus bandwidth (median of 12 messages); its 7 sister groups reach 40 GB/s"


@pytest.mark.parametrize(
    ("why", "other"),
    [
        ("another axis", {"axis": "fsdp"}),
        ("another size", {"group_size": 2}),
        ("another pattern", {"kinds": ("all_to_all",)}),
        ("another spacing", {"ranks": (1, 2, 3, 4)}),
        ("waiting not removed", {"waiting_removed": False}),
    ],
)
def test_what_is_no_sister(why: str, other: dict[str, object]) -> None:
    others = [link(40e9, far(first), **other) for first in range(1, 4)]
    assert not any(one.degraded for one in judged([link(12e9, far(0)), *others], None)), why


def test_one_sister_alone_must_be_twice_as_fast() -> None:
    assert not judged([link(24e9, far(0)), link(40e9, far(1))], None)[0].degraded
    assert judged([link(18e9, far(0)), link(40e9, far(1))], None)[0].degraded


def test_links_that_scatter_widely_have_no_outlier() -> None:
    rates = (12e9, 15e9, 40e9, 22e9, 55e9, 30e9)
    assert not any(one.degraded for one in judged([link(rate, far(i)) for i, rate in enumerate(rates)], None))


def test_a_link_that_is_fast_at_times_is_busy_and_not_degraded() -> None:
    slow = link(12e9, far(0), best_bus_bytes_per_s=39e9)
    assert not judged([slow, *(link(40e9, far(first)) for first in range(1, 8))], None)[0].degraded


def test_a_rank_in_all_degraded_groups_is_named() -> None:
    links = [
        link(12e9, far(5)),
        link(10e9, (5, 6, 7, 8), axis="ep"),
        *(link(40e9, far(first)) for first in range(4)),
        *(link(40e9, tuple(range(first, first + 4)), axis="ep") for first in (9, 13, 17)),
    ]
    degraded = [one for one in judged(links, None) if one.degraded]
    assert [one.group for one in degraded] == ["g5", "g5"]
    assert all(one.why.endswith("; rank 5 is in all 2 degraded groups") for one in degraded)


# beside the hardware ------------------------------------------------------------------------------------------------


def test_tier_and_peak_follow_from_where_the_ranks_are() -> None:
    inside, across, both = judged(
        [link(300e9, (8, 9, 10, 11)), link(30e9, far(3)), link(200e9, tuple(range(16)))], H100
    )
    assert (inside.tier, inside.peak_bytes_per_s, inside.peak_frac) == ("scale_up", 450e9, pytest.approx(2 / 3))
    assert (across.tier, across.peak_bytes_per_s, across.peak_frac) == ("scale_out", 50e9, pytest.approx(0.6))
    assert (both.tier, both.peak_bytes_per_s) == ("scale_out", 400e9), "eight ports carry the ring"


def test_an_all_to_all_leaves_the_domain_with_a_part_of_its_message() -> None:
    (spread,) = judged([link(40e9, tuple(range(16)), kinds=("all_to_all",))], H100)
    assert spread.peak_bytes_per_s == pytest.approx(50e9 * 15 / 8)


def test_a_list_of_ranks_that_contradicts_the_size_of_its_group() -> None:
    (found,) = judged([link(40e9, (0, 1, 8, 9), kinds=("all_to_all",), group_size=2)], H100)
    assert found.peak_bytes_per_s == pytest.approx(50e9 * 3 / 2), "the list counts"


def test_without_ranks_or_hardware_nothing_is_placed() -> None:
    (nowhere,) = judged([link(1e9, (0, 1)).model_copy(update={"ranks": ()})], H100)
    assert (nowhere.tier, nowhere.peak_bytes_per_s, nowhere.degraded) == ("unknown", None, False)
    (nothing,) = judged([link(1e9, (0, 1))], None)
    assert (nothing.tier, nothing.degraded) == ("unknown", False)


def test_half_of_what_the_chip_reaches_is_degraded() -> None:
    """50 GB/s a port, of which 0.8 are reached, and over four domains 1 / 1.3 of that: 30.8 GB/s."""
    low, fair = judged([link(15e9, far(0)), link(16e9, far(1), axis="fsdp")], H100)
    assert low.degraded
    assert low.why.endswith("; h100-sxm reaches about 30.8 GB/s of its 50 GB/s there")
    assert not fair.degraded


def test_what_many_small_steps_take_is_not_laid_upon_the_link() -> None:
    """16 MiB on the bus over 32 hosts: 0.73 ms at 22.9 GB/s, and 2 x 31 steps of 5 us beside it."""
    small, large = (
        link(9e9, far(0, 32), bus_bytes=size, axis=axis) for size, axis in ((16 << 20, "dp"), (1 << 30, "ep"))
    )
    assert [one.degraded for one in judged([small, large], H100)] == [False, True]


def test_the_loss_over_domains_is_that_of_the_projector() -> None:
    assert LOSS_EACH_DOUBLING == SCALE_LOSS


@pytest.mark.parametrize("unsure", [{"alone": False}, {"waiting_removed": False}, {"kinds": ("all_to_all",)}])
def test_what_cannot_be_judged_by_the_peak(unsure: dict[str, object]) -> None:
    assert not judged([link(5e9, far(0), **unsure)], H100)[0].degraded


def test_more_than_the_peak_is_told() -> None:
    (above,) = judged([link(480e9, (0, 1, 2, 3))], H100)
    assert not above.degraded
    assert above.why.startswith("480 GB/s of bus bandwidth (median of 12 messages), above the link's 450 GB/s")


def test_a_torus_has_no_peak_of_a_group() -> None:
    (found,) = judged([link(50e9, (0, 1, 2, 3))], catalog.chip("tpu-v5p"))
    assert (found.tier, found.peak_bytes_per_s) == ("scale_up", None)


def test_pairs_are_compared_where_the_hardware_tells_their_tier() -> None:
    pairs = [link(40e9, (at, at + 8), kinds=("send", "recv"), axis="pp") for at in range(0, 32, 8)]
    pairs.append(link(10e9, (32, 40), kinds=("send", "recv"), axis="pp"))
    assert not any(one.degraded for one in judged(pairs, None))
    assert [one.degraded for one in judged(pairs, H100)] == [False] * 4 + [True]


# in whole jobs ------------------------------------------------------------------------------------------------------

WIDE = Shape(tp=8, dp=4, layers=3)


@pytest.mark.parametrize("seed", range(20))
def test_an_even_job_has_no_degraded_link(seed: int) -> None:
    told = crossed(make_job(Shape(**{**vars(WIDE), "link_jitter_frac": 0.1}), seed=seed))
    assert not any(one.degraded for one in judged(told.links, H100))
    assert {one.group for one in told.links} == {f"tp_{i}" for i in range(4)} | {f"dp_{i}" for i in range(8)}
    for one in told.links:
        assert one.bus_bytes_per_s == pytest.approx(360e9 if one.axis == "tp" else 40e9, rel=0.25)


@pytest.mark.parametrize("group", ["dp_5", "tp_2"])
@pytest.mark.parametrize("seed", range(3))
def test_a_degraded_link_is_found_and_named(group: str, seed: int) -> None:
    links = crossed(make_job(WIDE, Faults(links={group: 4.0}, slow={9: 1.3}), seed)).links
    for hardware in (None, H100):
        degraded = [one for one in judged(links, hardware) if one.degraded]
        assert [one.group for one in degraded] == [group]
        rate = (40e9 if group == "dp_5" else 360e9) / 4
        assert degraded[0].bus_bytes_per_s == pytest.approx(rate, rel=0.05)


def test_a_network_port_is_named_where_several_groups_use_it() -> None:
    """One network port a rank: that of rank 17 serves its data-parallel group and its neighbours in the pipeline."""
    shape = Shape(tp=8, dp=4, pp=2, micro_batches=2, layers=2)
    links = crossed(make_job(shape, Faults(ports={17: 4.0}), seed=1)).links
    degraded = [one for one in judged(links, H100) if one.degraded]
    assert {one.axis for one in degraded} == {"dp", "pp"}
    assert all(17 in one.ranks for one in degraded)
    assert all("rank 17 is in all" in one.why for one in degraded)
