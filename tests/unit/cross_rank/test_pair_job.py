"""The job of 256 ranks made of shifted copies of the real pair: found is exactly what was planted."""

import os
from pathlib import Path

import numpy as np
import pytest
from pair_jobs import MS, NEAR, PairJob, Planted, ranks_of, read_pair, run, write_pair_job

from traces.summary import read_summary
from traces.summary_types import TraceSummary

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("SHARDWISE_SHARED", ROOT.parent / "shared"))
FOLDER = SHARED / "traces" / "hta" / "trace_filter"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no sample folder {SHARED}"),
]
WORLD, WINDOWS = 256, 3
PLANTED = Planted(
    slow={37: 1.25, 141: 1.2},
    late={200: 50 * MS},
    links={"dp_3": 3.0},
    skew=("ep_9", 30 * MS),
    clock_us={rank: (rank * 37 % 101 - 50) * 60e6 for rank in range(WORLD)},
)


def summarised(job: PairJob, folder: Path) -> TraceSummary:
    return read_summary(write_pair_job(job, folder))


def waiting_ns(job: PairJob, group: str) -> float:
    """What the ranks of a group wait in its shared all-to-alls, as planned."""
    came = job.starts[list(ranks_of(group, job.world)), :, 0]
    return float((came.max(axis=0) - came).sum() * 1_000)


def test_planted_faults_are_found_exactly(tmp_path: Path) -> None:
    job = run(read_pair(FOLDER), WORLD, WINDOWS, PLANTED, seed=1)
    summary = summarised(job, tmp_path)
    assert [one.rank for one in summary.lateness if one.straggler] == [37, 141, 200]
    assert [one.group for one in summary.links if one.degraded] == ["dp_3"]
    clocks = {one.rank: one.offset_ns / 1_000 for one in summary.clocks}
    errors = [clocks[rank] - clocks[0] - PLANTED.clock_us[rank] + PLANTED.clock_us[0] for rank in range(WORLD)]
    assert np.abs(errors).max() < 0.5 * MS
    found = {one.group: one.waiting_ns for one in summary.skew}
    near = [f"ep_{number}" for number in range(WORLD // NEAR)]
    for group in near:
        assert found[group] == pytest.approx(waiting_ns(job, group), rel=0.02, abs=2e6)
    stragglers = {*PLANTED.slow, *PLANTED.late}
    others = [found[group] for group in near if not stragglers & {*ranks_of(group, WORLD)} and group != "ep_9"]
    assert found["ep_9"] > 2 * max(others), "one of its ranks comes 30 ms late in each window, never the same"
    assert summary.job.present == tuple(range(WORLD))


def test_nothing_is_found_where_nothing_is_planted(tmp_path: Path) -> None:
    clocks = Planted(clock_us=PLANTED.clock_us)
    summary = summarised(run(read_pair(FOLDER), WORLD, WINDOWS, clocks, seed=2), tmp_path)
    assert [one.rank for one in summary.lateness if one.straggler] == []
    assert [one.group for one in summary.links if one.degraded] == []


def test_the_pair_itself_is_thinned_and_refused() -> None:
    summary = read_summary(sorted(FOLDER.glob("sampled_rank-*.json.gz")))
    assert (summary.clocks, summary.skew, summary.lateness) == ((), (), ())
    why = "at best 7 of 10 collectives agree in kind and size"
    assert f"collectives that name no group cannot be matched between ranks: {why}" in summary.warnings
