"""The same work on Ray: run where Ray is installed (the extra `ray`), on a cluster that lives as long as this file."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from projector.errors import CorruptTrace, TraceError
from tests.unit.jobs import pool_work
from tests.unit.jobs.job_examples import rank_document, written
from traces.pool import map_ranks
from traces.summary import read_summary

LOCAL = "local"


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    if os.environ.get("CI"):  # there the gate installs it
        import ray
    else:
        ray = pytest.importorskip("ray", reason="the optional extra `ray` is not installed")
    ray.init(address=LOCAL, num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield LOCAL
    ray.shutdown()


# Ray's own start leaves sockets and files to the garbage collector
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)


def test_results_are_those_of_this_machine(cluster: str) -> None:
    found = list(map_ranks(pool_work.pid_and_double, range(9), ray_address=cluster))
    assert sorted((one.index, one.result[1]) for one in found if one.result) == [(n, 2 * n) for n in range(9)]


def test_a_job_is_the_same_on_ray_and_here(cluster: str, tmp_path: Path) -> None:
    folder = written(tmp_path, {f"rank{rank}.json": rank_document(rank, world=4) for rank in range(4)})
    seen: list[int] = []
    assert read_summary([folder], ray_address=cluster, on_progress=lambda *told: seen.append(told[0])) == read_summary(
        [folder]
    )
    assert seen == [0, 1, 2, 3, 4]


def test_a_typed_error_comes_through_whole(cluster: str) -> None:
    with pytest.raises(CorruptTrace, match="a is broken") as refused:
        list(map_ranks(pool_work.is_corrupt, ["a"], ray_address=cluster))
    assert (refused.value.hint, refused.value.http_status) == ("copy it again", 400)


def test_a_process_that_dies_names_its_task_and_the_others_go_on(cluster: str) -> None:
    found = list(map_ranks(pool_work.dies_at_three, range(5), ray_address=cluster, title="rank{}.json".format))
    assert sorted(one.result for one in found if one.error is None) == [0, 1, 2, 4]
    (dead,) = (one.error for one in found if one.error is not None)
    assert isinstance(dead, TraceError)
    assert str(dead).startswith("the process that read rank3.json ended without an answer (")
