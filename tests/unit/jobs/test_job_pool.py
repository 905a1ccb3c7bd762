"""The pool of processes: results as they come, processes that die, errors on their way, and ends that are clean."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from projector.errors import CorruptTrace, TraceError, WorkersUnavailable
from tests.unit.jobs import pool_work
from traces.pool import map_ranks


def children() -> list[str]:
    """Processes this one has started and not ended."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    if not listed.exists():
        pytest.skip("this system does not list a process's children")
    return listed.read_text().split()


def test_one_worker_or_one_task_stays_in_this_process() -> None:
    for tasks, workers in (([1, 2], 1), ([1], 8)):
        found = list(map_ranks(pool_work.pid_and_double, tasks, workers=workers))
        assert [(one.index, one.result) for one in found] == [
            (place, (os.getpid(), 2 * n)) for place, n in enumerate(tasks)
        ]


def test_every_task_is_done_once_by_no_more_processes_than_wanted() -> None:
    found = list(map_ranks(pool_work.pid_and_double, range(20), workers=2))
    assert sorted((one.index, one.result[1]) for one in found if one.result) == [(n, 2 * n) for n in range(20)]
    pids = {one.result[0] for one in found if one.result}
    assert 1 <= len(pids) <= 2
    assert os.getpid() not in pids
    assert not children()


def test_nothing_to_do() -> None:
    assert list(map_ranks(pool_work.pid_and_double, [], workers=2)) == []


@pytest.mark.parametrize(
    ("work", "how"), [(pool_work.dies_at_three, "signal 9"), (pool_work.leaves_at_three, "exit code 7")]
)
def test_a_process_that_dies_names_its_task_and_the_others_go_on(work, how: str) -> None:  # type: ignore[no-untyped-def]
    found = list(map_ranks(work, range(6), workers=2, title="rank{}.json".format))
    assert sorted(one.result for one in found if one.error is None) == [0, 1, 2, 4, 5]
    (dead,) = (one for one in found if one.error is not None)
    assert dead.index == 3
    assert isinstance(dead.error, TraceError)
    assert str(dead.error) == f"the process that read rank3.json ended without an answer ({how})"
    assert "memory" in dead.error.hint
    assert not children()


def test_a_typed_error_comes_through_whole() -> None:
    with pytest.raises(CorruptTrace, match="a is broken") as refused:
        list(map_ranks(pool_work.is_corrupt, ["a", "a"], workers=2))
    assert (str(refused.value), refused.value.hint, refused.value.http_status) == ("a is broken", "copy it again", 400)
    assert "while reading a" in refused.value.__notes__
    assert any("in is_corrupt" in note for note in refused.value.__notes__)
    assert not children()


def test_an_error_that_cannot_be_pickled_is_told_all_the_same() -> None:
    with pytest.raises(RuntimeError, match="OddError"):
        list(map_ranks(pool_work.is_odd, [1, 2], workers=2))


def test_an_answer_that_cannot_be_sent_is_a_dead_process_and_no_hang(capfd: pytest.CaptureFixture[str]) -> None:
    found = list(map_ranks(pool_work.answer_with_a_lock, [1, 2], workers=2))
    assert all(one.error is not None for one in found)
    assert "cannot pickle" in capfd.readouterr().err


def test_a_pool_may_be_started_in_a_thread() -> None:
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(lambda: list(map_ranks(pool_work.pid_and_double, range(4), workers=2))).result()
    assert sorted(one.result[1] for one in found if one.result) == [0, 2, 4, 6]


def test_leaving_early_ends_the_processes() -> None:
    with closing(map_ranks(pool_work.pid_and_double, range(50), workers=2)) as results:
        assert len(list(islice(results, 3))) == 3
        assert children()
    assert not children()


def test_an_interrupt_ends_what_would_never_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_connections: object) -> list[object]:
        while len(list(tmp_path.iterdir())) < 2:
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr("traces.pool.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(map_ranks(pool_work.waits_for_ever, [str(tmp_path)] * 3, workers=2))
    assert not children()
    for started in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(started.name), 0)


def test_a_process_that_cannot_start_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkersUnavailable, match=r"could not be started \(exit code 1\)"):
        list(map_ranks(pool_work.pid_and_double, range(8), workers=2))
    assert not children()


def test_the_main_module_is_not_imported_again() -> None:
    found = list(map_ranks(pool_work.name_of_main, range(2), workers=2))
    assert [one.result for one in found] == [None, None]


def test_a_system_without_room_for_a_process_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    with pytest.raises(WorkersUnavailable, match="could not be started: No such file"):
        list(map_ranks(pool_work.pid_and_double, range(8), workers=2))
