"""Whole jobs with faults planted: found are exactly those, and in an even job nothing is."""

import pickle
from pathlib import Path

import pytest
from rank_files import trace_of_rank, write_job
from rank_jobs import BASE_NS, Faults, Job, Shape, make_job
from rank_logs import crossed, log_of_rank

from projector import catalog
from traces.cross_rank.job import CrossRank, cross_rank
from traces.cross_rank.placed import place_links
from traces.rank import rank_parts
from traces.summary import read_summary

MINUTE = 60_000_000_000
SMALL = Shape(tp=8, dp=2, layers=3)
LARGE = Shape(tp=8, dp=32, layers=3)


def planted_in(world: int) -> Faults:
    """Two stragglers of different kinds, a slow group, a clock of its own for every rank, files with other bases."""
    return Faults(
        slow={world // 7: 1.3},
        late={world - 3: 0.3},
        links={"dp_6": 3.0},
        clock_ns={rank: (rank * 37 % 101 - 50) * MINUTE for rank in range(world)},
        base_ns={rank: BASE_NS - rank * 10**12 for rank in range(0, world, 5)},
    )


def assert_found(job: Job, told: CrossRank) -> None:
    faults = job.faults
    assert [one.rank for one in told.lateness if one.straggler] == sorted({**faults.slow, **faults.late})
    assert [one.group for one in told.links if one.degraded] == list(faults.links)
    clocks = {one.rank: one.offset_ns for one in told.clocks}
    for rank, offset in clocks.items():
        planted = faults.clock_ns.get(rank, 0) - faults.clock_ns.get(0, 0)
        assert abs(offset - clocks[0] - planted) < 5_000
    assert len(clocks) == len(told.lateness) == job.shape.world
    assert told.warnings == ()


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_sixteen_ranks(numbered: bool, seed: int) -> None:
    job = make_job(Shape(**{**vars(SMALL), "numbered": numbered}), planted_in(16), seed)
    assert_found(job, crossed(job))


@pytest.mark.parametrize("seed", range(20))
def test_sixteen_even_ranks(seed: int) -> None:
    job = make_job(SMALL, seed=seed)
    assert_found(job, crossed(job))


@pytest.mark.parametrize("numbered", [True, False])
def test_256_ranks(numbered: bool) -> None:
    job = make_job(Shape(**{**vars(LARGE), "numbered": numbered}), planted_in(256), seed=1)
    assert_found(job, crossed(job))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_256_even_ranks(seed: int) -> None:
    job = make_job(LARGE, seed=seed)
    assert_found(job, crossed(job))


def test_a_log_says_the_same_whether_read_or_made() -> None:
    job = make_job(Shape(tp=2, dp=2, pp=2, micro_batches=2, layers=2), planted_in(8), seed=7)
    for rank in range(8):
        read, made = rank_parts(trace_of_rank(job, rank)).collective_log, log_of_rank(job, rank)
        assert read is not None
        assert pickle.dumps(read) == pickle.dumps(made)


def test_from_files_to_the_summary(tmp_path: Path) -> None:
    job = make_job(SMALL, planted_in(16), seed=2)
    summary = read_summary(write_job(job, tmp_path))
    told = crossed(job)
    assert (summary.clocks, summary.skew, summary.lateness) == (told.clocks, told.skew, told.lateness)
    assert summary.links == told.links
    assert [one.rank for one in summary.lateness if one.straggler] == [2, 13]
    placed = place_links(summary, catalog.chip("h100-sxm"))
    assert [(one.group, one.tier) for one in placed.links if one.degraded] == [("dp_6", "scale_out")]
    assert placed.model_copy(update={"links": summary.links}) == summary


def test_the_order_of_the_files_does_not_matter() -> None:
    job = make_job(SMALL, planted_in(16), seed=2)
    logs = [(rank, log_of_rank(job, rank)) for rank in range(16)]
    assert cross_rank(logs[::-1]) == cross_rank(logs)


def test_logs_take_little_room() -> None:
    """What a job of many ranks keeps of each: some 60 bytes a collective."""
    log = log_of_rank(make_job(Shape(tp=8, dp=1, layers=40, steps=5), seed=0), 3)
    assert len(log) == 5 * (2 * 40 + 1)
    assert len(pickle.dumps(log)) < 70 * len(log) + 2_000
