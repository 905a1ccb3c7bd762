"""What holds for whatever ranks recorded, sensible or not."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from small_logs import One, log_of, shifted

from projector import catalog
from traces.cross_rank.job import CrossRank, cross_rank
from traces.cross_rank.log import CollectiveLog
from traces.cross_rank.placed import judged

KINDS = ("all_reduce", "all_gather", "all_to_all", "broadcast", "send", "recv", "send_recv", "nccl", "expert_dispatch")
GROUPS = (("", ()), ("a", (0, 1)), ("b", (0, 1, 2, 3)), ("c", ()), ("b", (2, 3)))
SIZES = (None, 0, 1, 4 << 20, 64 << 20, 2**61)
CHIPS = (None, "h100-sxm", "tpu-v5p", "mi300x")


@st.composite
def collectives(draw: st.DrawFn) -> list[One]:
    """A few collectives of one rank, some without duration, group, size or number."""
    count = draw(st.integers(1, 8))
    numbered = draw(st.booleans())
    at = 0.0
    found = []
    for _ in range(count):
        at += draw(st.sampled_from((0, 1, 10, 100, 1_000)))
        group, ranks = draw(st.sampled_from(GROUPS))
        found.append(
            One(
                at,
                at + draw(st.sampled_from((0, 0.5, 20, 5_000))),
                draw(st.sampled_from(KINDS)),
                group,
                ranks,
                draw(st.sampled_from(SIZES)),
                draw(st.integers(0, 6)) if numbered else None,
                draw(st.sampled_from((None, 0, 1, 3))),
                draw(st.sampled_from((None, 0, 1, 3))),
                draw(st.sampled_from((None, False, True))),
                draw(st.sampled_from((None, 2, 4))),
            )
        )
    return found


jobs = st.lists(st.tuples(collectives(), st.integers(-(10**9), 10**9)), min_size=1, max_size=5)


def told(job: list[tuple[list[One], int]], ahead: float = 0) -> CrossRank:
    return cross_rank([(rank, log_of(*shifted(ones, clock + ahead))) for rank, (ones, clock) in enumerate(job)])


@settings(max_examples=80, deadline=None)
@given(jobs, st.sampled_from(CHIPS))
def test_figures_are_never_impossible(job: list[tuple[list[One], int]], chip: str | None) -> None:
    found = told(job)
    for skew in found.skew:
        assert 0 <= skew.exposed_waiting_ns <= skew.waiting_ns
        assert skew.largest_wait_ns <= skew.waiting_ns
        assert len(skew.ranks) >= 2
    for late in found.lateness:
        assert late.last_count <= late.matched
        assert bool(late.why) == late.straggler
    for link in judged(found.links, catalog.chip(chip) if chip else None):
        assert link.best_bus_bytes_per_s >= link.bus_bytes_per_s > 0
        assert not link.degraded or link.why
    assert len(set(found.warnings)) == len(found.warnings)


@settings(max_examples=40, deadline=None)
@given(jobs, st.randoms(use_true_random=False))
def test_the_order_of_ranks_does_not_matter(job: list[tuple[list[One], int]], luck: object) -> None:
    logs: list[tuple[int | None, CollectiveLog]] = [(rank, log_of(*ones)) for rank, (ones, _) in enumerate(job)]
    mixed = list(logs)
    luck.shuffle(mixed)  # type: ignore[attr-defined]
    assert cross_rank(mixed) == cross_rank(logs)


@settings(max_examples=40, deadline=None)
@given(jobs)
def test_moving_all_clocks_together_changes_nothing(job: list[tuple[list[One], int]]) -> None:
    assert told(job, ahead=1e12) == told(job)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from((10.0, 11.0, 50.0, 400.0)), min_size=4, max_size=30), min_size=2, max_size=6))
def test_ranks_that_do_the_same_have_no_straggler(own: list[list[float]]) -> None:
    """However unevenly the time goes by, as long as it goes so for all."""
    same = own[0]
    at = np.cumsum([0.0, *(time + 20 for time in same)])
    ones = [One(start - 20, start, number=number) for number, start in enumerate(at[1:].tolist())]
    logs = [(rank, log_of(*ones)) for rank in range(len(own))]
    assert not any(late.straggler for late in cross_rank(logs).lateness)
