"""Clocks set against each other on the common ends of collectives."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rank_jobs import BASE_NS, MS, Faults, Shape, make_job
from rank_logs import crossed
from small_logs import US, One, clocks_of, log_of, shifted

from traces.cross_rank.log import CollectiveLog

MINUTE = 60_000_000_000
STARTS = (0, 100, 230, 300, 420)


def ones(**more: Any) -> tuple[One, ...]:
    return tuple(One(start, start + 20, **more) for start in STARTS)


def numbered(listed: Iterable[One]) -> tuple[One, ...]:
    return tuple(replace(one, number=number) for number, one in enumerate(listed))


def test_offsets_are_medians_of_end_differences() -> None:
    behind = [replace(one, end=one.end + noise) for one, noise in zip(ones(), (6, 8, 11, 4, 30), strict=True)]
    clocks = clocks_of({0: log_of(*ones()), 1: log_of(*behind)})
    assert clocks.offset_ns[1] - clocks.offset_ns[0] == 8 * US
    assert clocks.spread_ns == {0: 1.5 * US, 1: 1.5 * US}, (
        "median of half of 2, 0, 3, 4, 22 us: the common end is between"
    )
    assert clocks.refused == ("1 of 5 collectives of group 'g' end at different times and were left out",)
    assert clocks.matches == {0: 4, 1: 4}


def test_ranks_meet_through_the_groups_they_share() -> None:
    a, b = ones(group="a", ranks=(0, 1)), shifted(ones(group="b", ranks=(1, 2)), 40)
    both = sorted((*a, *b), key=lambda one: one.start)
    clocks = clocks_of({0: log_of(*a), 1: log_of(*shifted(both, 50)), 2: log_of(*shifted(b, -300))})
    apart = {rank: offset - clocks.offset_ns[0] for rank, offset in clocks.offset_ns.items()}
    assert apart == {0: 0, 1: 50 * US, 2: -300 * US}
    assert clocks.parts == ((0, 1, 2),)


def test_ranks_that_no_collective_joins_are_apart() -> None:
    logs = {rank: log_of(*ones(group=f"g{rank // 2}", ranks=(rank // 2 * 2, rank // 2 * 2 + 1))) for rank in range(4)}
    assert clocks_of(logs).parts == ((0, 1), (2, 3))


def test_ends_that_scatter_as_widely_as_the_collectives_last_are_no_common_ends() -> None:
    wild = [replace(one, end=one.end + noise) for one, noise in zip(ones(), (0, 40, -15, 60, 25), strict=True)]
    clocks = clocks_of({rank: log_of(*numbered(listed)) for rank, listed in enumerate((ones(), ones(), wild))})
    assert sorted(clocks.offset_ns) == [0, 1]
    (why,) = clocks.refused
    assert why.startswith("collectives of group 'g' cannot be matched on 1 ranks (2): their ends scatter by")


def test_a_group_that_contradicts_the_others_is_refused() -> None:
    """Group b is matched by order and one layer off: its ends say that rank 1 is 300 us ahead."""
    a, b = numbered(ones(group="a")), shifted(ones(group="b"), 40)
    first = log_of(*sorted((*a, *b), key=lambda one: one.start))
    second = log_of(*sorted((*a, *shifted(b, 300)), key=lambda one: one.start))
    clocks = clocks_of({0: first, 1: second})
    assert clocks.offset_ns == {0: 0, 1: 0}
    assert clocks.refused == (
        "collectives of group 'b' cannot be matched between ranks: "
        "their ends contradict the clocks that other groups give by 300,000 ns",
    )


def test_small_messages_between_two_ranks_do_not_set_clocks() -> None:
    def logs(size: int) -> dict[int, CollectiveLog]:
        send = log_of(*(One(at, at + 20, "send", "pp", (0, 1), size=size, target=1) for at in STARTS))
        receive = log_of(*(One(at, at + 70, "recv", "pp", (0, 1), size=size, source=0) for at in STARTS))
        return {0: send, 1: receive}

    assert clocks_of(logs(1024)).offset_ns == {}
    large = clocks_of(logs(16 << 20))
    assert large.offset_ns[1] - large.offset_ns[0] == 50 * US


@pytest.mark.parametrize("numbered", [True, False])
def test_planted_clocks_are_found(numbered: bool) -> None:
    """Minutes apart, whatever base time a file counts from."""
    planted = {rank: (rank * 37 % 11 - 5) * MINUTE + rank * MS for rank in range(16)}
    faults = Faults(clock_ns=planted, base_ns={4: BASE_NS - 10**17, 9: BASE_NS + 10**17})
    found = {one.rank: one for one in crossed(make_job(Shape(tp=4, dp=4, numbered=numbered), faults, seed=3)).clocks}
    errors = [found[rank].offset_ns - found[0].offset_ns - planted[rank] + planted[0] for rank in range(16)]
    assert np.abs(errors).max() < 3 * US
    assert max(one.spread_ns for one in found.values()) < 2 * US


def test_pipeline_stages_meet_through_the_whole_world() -> None:
    planted = {rank: rank * MS for rank in range(8)}
    found = crossed(make_job(Shape(tp=1, dp=2, pp=4, micro_batches=2), Faults(clock_ns=planted), seed=1)).clocks
    errors = [one.offset_ns - found[0].offset_ns - planted[one.rank] for one in found]
    assert len(found) == 8
    assert np.abs(errors).max() < 4 * US
