"""Waiting inside collectives apart from transfer, to the nanosecond."""

import pytest
from rank_jobs import MS, Faults, Shape, make_job
from rank_logs import crossed
from small_logs import US, One, log_of, shifted

from traces.cross_rank.job import cross_rank

RANKS = (0, 1, 2)


def three_ranks() -> list[list[One]]:
    """Rank 2 comes last to the first and third collective, rank 0 to the second; all end together.

    rank 0   [------------------)          [----)           [------------------)
    rank 1        [-------------)     [---------)                [-------------)
    rank 2             [--------)     [---------)                     [--------)
         0   10   20        40        60   70   80         100                140
    """
    starts = ((0, 70, 100), (10, 60, 110), (20, 60, 120))
    return [
        [One(start, end, ranks=RANKS, number=n) for n, (start, end) in enumerate(zip(mine, (40, 80, 140), strict=True))]
        for mine in starts
    ]


def test_waiting_and_transfer_of_a_group() -> None:
    told = cross_rank([(rank, log_of(*ones, axis="dp")) for rank, ones in enumerate(three_ranks())])
    (skew,) = told.skew
    assert (skew.group, skew.axis, skew.ranks, skew.matched) == ("g", "dp", RANKS, 3)
    assert skew.waiting_ns == (20 + 10 + 0 + 0 + 10 + 10 + 20 + 10 + 0) * US
    assert skew.transfer_ns == (20 + 10 + 20) * US
    assert skew.largest_wait_ns == 20 * US
    assert skew.exposed_waiting_ns == skew.waiting_ns, "nothing computes beside it"
    assert told.warnings == ()


def test_who_came_last_and_who_waited() -> None:
    told = cross_rank([(rank, log_of(*ones)) for rank, ones in enumerate(three_ranks())])
    assert [(one.rank, one.matched, one.last_count, one.late_ns, one.waited_ns) for one in told.lateness] == [
        (0, 3, 1, 10 * US, 40 * US),
        (1, 3, 0, 0, 30 * US),
        (2, 3, 2, 20 * US, 10 * US),
    ]
    assert not any(one.straggler for one in told.lateness), "three collectives are no pattern"


def test_clocks_do_not_change_what_is_waiting() -> None:
    plain = cross_rank([(rank, log_of(*ones)) for rank, ones in enumerate(three_ranks())])
    skewed = cross_rank([(rank, log_of(*shifted(ones, 9e9 * rank))) for rank, ones in enumerate(three_ranks())])
    assert (skewed.skew, skewed.lateness) == (plain.skew, plain.lateness)
    assert [one.offset_ns for one in skewed.clocks] == [-9_000_000_000_000, 0, 9_000_000_000_000]


def test_waiting_under_compute_is_not_exposed() -> None:
    first, second, third = three_ranks()
    logs = [log_of(*first, compute=[(0, 15)]), log_of(*second), log_of(*third)]
    (skew,) = cross_rank(list(enumerate(logs))).skew
    assert skew.exposed_waiting_ns == skew.waiting_ns, "25 us of the first are exposed, and it waits 20"
    logs[0] = log_of(*first, compute=[(0, 30)])
    (skew,) = cross_rank(list(enumerate(logs))).skew
    assert skew.exposed_waiting_ns == skew.waiting_ns - 10 * US


def test_ends_that_tie_make_nobody_last() -> None:
    logs = [log_of(*(One(at, at + 20, number=at) for at in (0, 50, 100, 150))) for _ in range(2)]
    told = cross_rank(list(enumerate(logs)))
    assert [(one.last_count, one.late_ns, one.waited_ns) for one in told.lateness] == [(0, 0, 0)] * 2


def test_a_receive_waits_for_its_send() -> None:
    """Pairs count for the waiting of their group, not for who is late: a sender is always last."""
    sync = [One(at, at + 5, number=at, ranks=(0, 4), group="world") for at in (0, 300)]
    sends = [One(at, at + 60, "send", "pp", (0, 4), target=4) for at in (50, 150)]
    receives = [One(at - 30, at + 60, "recv", "pp", (0, 4), source=0) for at in (50, 150)]
    logs = [log_of(*sorted((*sync, *ones), key=lambda one: one.start)) for ones in (sends, receives)]
    told = cross_rank([(0, logs[0]), (4, logs[1])])
    of_pp = next(one for one in told.skew if one.group == "pp")
    assert (of_pp.matched, of_pp.waiting_ns, of_pp.transfer_ns) == (2, 60 * US, 120 * US)
    assert [one.matched for one in told.lateness] == [2, 2]


def test_ranks_without_a_number_are_compared_with_nothing() -> None:
    logs = [log_of(*ones) for ones in three_ranks()]
    told = cross_rank([(None, logs[0]), (0, logs[1]), (0, logs[2])])
    assert (told.clocks, told.skew, told.lateness) == ((), (), ())
    assert cross_rank([]).warnings == ()


def test_planted_waiting_is_found() -> None:
    """One rank idles before each layer: the others wait for it that much, and about nothing without it."""
    shape = Shape(tp=4, dp=1, layers=4, steps=3, jitter_frac=0.0)
    layers = 3 * 4
    even = crossed(make_job(shape, seed=4)).skew
    skewed = crossed(make_job(shape, Faults(late={2: 0.25}), seed=4)).skew
    waited = {one.group: one.waiting_ns for one in skewed}
    planted = 3 * layers * (0.25 * 2 * MS + 0.25 * 4 * MS)
    assert waited["tp_0"] == pytest.approx(planted, rel=0.002)
    assert sum(one.waiting_ns for one in even) < 0.01 * planted


def test_a_second_profile_of_each_rank_is_told_to_be_compared_with_nothing() -> None:
    again = [shifted(ones, 1_000) for ones in three_ranks()]
    logs = [(rank, log_of(*ones)) for rank, ones in enumerate(three_ranks())]
    told = cross_rank([*logs, *((rank, log_of(*ones)) for rank, ones in enumerate(again))])
    assert told.skew == cross_rank(logs).skew
    assert told.warnings == (
        "3 profiles are further ones of their rank: between ranks only the collectives of the first are compared",
    )
