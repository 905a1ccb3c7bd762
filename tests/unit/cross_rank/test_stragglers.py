"""Which rank the others wait for, and whose fault it is not."""

import numpy as np
import pytest
from rank_jobs import Faults, Shape, make_job
from rank_logs import crossed
from small_logs import US, lockstep

from traces.cross_rank.job import cross_rank

SEEDS = range(3)
FLAT = Shape(tp=4, dp=4)
DEEP = Shape(tp=2, dp=2, pp=4, micro_batches=4, layers=2)


def found(shape: Shape, faults: Faults, seed: int) -> dict[int, str]:
    return {one.rank: one.why for one in crossed(make_job(shape, faults, seed)).lateness if one.straggler}


@pytest.mark.parametrize("seed", range(20))
def test_an_even_job_has_none(seed: int) -> None:
    assert found(FLAT, Faults(), seed) == {}


@pytest.mark.parametrize("shape", [DEEP, Shape(tp=8, dp=1), Shape(tp=1, dp=2), Shape(tp=1, dp=16), Shape(tp=1, dp=3)])
@pytest.mark.parametrize("jitter_frac", [0.02, 0.1])
def test_even_jobs_of_other_shapes_have_none(shape: Shape, jitter_frac: float) -> None:
    for seed in SEEDS:
        assert found(Shape(**{**vars(shape), "jitter_frac": jitter_frac}), Faults(), seed) == {}


def test_chips_that_differ_a_little_are_no_stragglers() -> None:
    factors = np.random.default_rng(0).normal(1, 0.01, 64)
    assert found(Shape(tp=8, dp=8), Faults(slow=dict(enumerate(factors.tolist()))), 0) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_slower_kernels_and_a_late_host_are_told_apart(seed: int) -> None:
    why = found(FLAT, Faults(slow={6: 1.3}, late={13: 0.25}), seed)
    assert sorted(why) == [6, 13]
    assert why[6].endswith("its kernels take longer (more work, or a slower chip)")
    assert why[13].endswith("its device idles or copies longer between kernels (a late host or input)")


def test_the_reason_gives_both_figures() -> None:
    why = found(Shape(tp=4, dp=1, jitter_frac=0.0), Faults(slow={2: 1.5}), 0)[2]
    # 12 layers of 2 ms, 12 of 4 and 2 optimizer steps of 1 ms between them, half as long again, without the first layer
    assert "it needs 36 ms more of its own than three quarters of the others" in why
    assert "of compute and 0.0" in why


@pytest.mark.parametrize("seed", SEEDS)
def test_ranks_that_are_late_because_another_one_is_are_not_named(seed: int) -> None:
    """The tensor-parallel peers of rank 6 wait for it and so come late to all their other collectives."""
    told = crossed(make_job(FLAT, Faults(slow={6: 1.3}), seed)).lateness
    late = sorted(told, key=lambda one: -one.late_ns)[:4]
    assert {one.rank for one in late} == {4, 5, 6, 7}
    assert [one.rank for one in told if one.straggler] == [6]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pipeline_waits_for_one_rank_and_only_that_is_named(seed: int) -> None:
    assert list(found(DEEP, Faults(slow={5: 1.3}), seed)) == [5]


def test_a_stage_with_more_to_do_holds_no_straggler() -> None:
    assert found(DEEP, Faults(slow=dict.fromkeys(range(12, 16), 1.3)), 0) == {}


def test_two_of_one_group_do_not_hide_each_other() -> None:
    assert list(found(FLAT, Faults(slow={6: 1.3, 7: 1.3}), 0)) == [6, 7]


def test_half_of_the_ranks_are_no_stragglers() -> None:
    assert found(Shape(tp=4, dp=8), Faults(slow=dict.fromkeys(range(0, 32, 2), 1.2)), 0) == {}


def test_a_whole_host_that_is_slow_is_named() -> None:
    assert list(found(Shape(tp=8, dp=8), Faults(slow=dict.fromkeys(range(16, 24), 1.2)), 0)) == list(range(16, 24))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_slow_network_port_makes_no_straggler(seed: int) -> None:
    assert found(FLAT, Faults(ports={5: 5.0}), seed) == {}
    assert list(found(FLAT, Faults(ports={5: 5.0}, slow={5: 1.3}), seed)) == [5]


def test_one_hiccup_is_no_pattern() -> None:
    """A rank that stops once for long costs as much as a straggler, and is none."""
    even = [80.0] * 30
    once = [*even[:15], 1_000.0, *even[15:]]
    told = cross_rank(list(enumerate(lockstep(*([*even, 80.0],) * 3, once))))
    assert told.lateness[3].late_ns == 920 * US
    assert not any(one.straggler for one in told.lateness)


def test_slower_throughout_is_one() -> None:
    told = cross_rank(list(enumerate(lockstep(*([80.0] * 30,) * 3, [110.0] * 30))))
    assert [one.straggler for one in told.lateness] == [False, False, False, True]
    assert (told.lateness[3].last_count, told.lateness[3].late_ns) == (30, 900 * US)
