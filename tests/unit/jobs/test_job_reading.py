"""A job as it comes, in folders, archives and pieces, to one summary: what is read, what is told, what sinks it."""

import json
import random
from pathlib import Path

import pytest

from projector.errors import (
    CorruptTrace,
    EmptyTrace,
    ShardwiseError,
    TraceError,
    UnknownTraceFormat,
    UnsupportedTrace,
)
from tests.unit.jobs.archive_examples import gz, tar_of, zip_of
from tests.unit.jobs.job_examples import rank_document, written
from traces.pool import Finished
from traces.read import read_traces
from traces.stored.document import document_of
from traces.summary import read_summary, summarise
from traces.summary_types import TraceSummary

DATA = Path(__file__).parents[2] / "data" / "traces"
RANKS = {f"rank{rank}.json": rank_document(rank, world=4) for rank in range(4)}


def without_names(summary: TraceSummary) -> TraceSummary:
    """The figures of a job whose files may lie anywhere."""
    ranks = tuple(rank.model_copy(update={"file": ""}) for rank in summary.ranks)
    return summary.model_copy(update={"files": (), "ranks": ranks})


@pytest.mark.parametrize("workers", [1, 2])
def test_a_folder_an_archive_and_the_files_are_one_job(tmp_path: Path, workers: int) -> None:
    folder = written(tmp_path / "job", RANKS)
    written(tmp_path, {"job.zip": zip_of(RANKS), "job.tar.gz": tar_of({n: gz(d) for n, d in RANKS.items()}, "w:gz")})
    files = read_summary([folder / name for name in RANKS], workers=workers)
    assert files.files == tuple(RANKS)
    assert files.job.present == (0, 1, 2, 3)
    assert files.warnings == ()
    assert read_summary([folder], workers=workers) == files
    assert summarise(read_traces([folder])) == files
    for archive in ("job.zip", "job.tar.gz"):
        packed = read_summary([tmp_path / archive], workers=workers)
        assert packed.files == tuple(f"{archive}/{name}" for name in RANKS)
        assert without_names(packed) == without_names(files)


def test_the_order_of_the_files_does_not_matter(tmp_path: Path) -> None:
    unnumbered = {"odd.json": rank_document(None, shift=3), "even.json": rank_document(None, shift=4)}
    again = {"again.json": rank_document(2, world=4, shift=1)}
    folder = written(tmp_path, {**RANKS, **unnumbered, **again})
    paths = sorted(folder.iterdir())
    expected = read_summary(paths)
    for seed in range(5):
        shuffled = random.Random(seed).sample(paths, len(paths))  # noqa: S311
        assert read_summary(shuffled) == expected


def test_what_is_no_trace_is_told_by_ending(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        {
            **RANKS,
            "config.json": b'{"lr": 1}',
            "train.log": b"step 1",
            "notes.txt": b"hi",
            "README": b"#",
            "x/y.log": b"z",
        },
    )
    told = "5 files are no traces and were not read: 1 x .json, 2 x .log, 1 x .txt, 1 x no ending"
    assert read_summary([folder]).warnings == (told,)


def test_a_broken_file_in_a_folder_does_not_sink_the_others(tmp_path: Path) -> None:
    folder = written(tmp_path, {**RANKS, "damaged.json.gz": gz(b"[]")[:-3] + b"abc", "none.json": b"", "e.json": b"[]"})
    summary = read_summary([folder])
    assert len(summary.ranks) == 4
    damaged, empty, none = summary.warnings
    assert damaged.startswith("damaged.json.gz is damaged gzip")
    assert empty.startswith("e.json holds no timed operator")
    assert none == "none.json has no bytes; it was left out"


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"", EmptyTrace), (b"[]", EmptyTrace), (gz(b"[]")[:5], CorruptTrace), (b"hi", UnknownTraceFormat)],
)
def test_a_broken_file_that_was_named_does(tmp_path: Path, data: bytes, error: type[ShardwiseError]) -> None:
    folder = written(tmp_path, {**RANKS, "bad.json": data})
    with pytest.raises(error, match=r"^bad\.json"):
        read_summary([folder / "rank0.json", folder / "bad.json"])
    with pytest.raises(error, match=r"^bad\.json"):
        read_summary([folder / "bad.json"])


def test_a_folder_without_a_trace_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnknownTraceFormat, match=r"none of the files is a trace: 1 x \.log, 1 x \.txt") as refused:
        read_summary([written(tmp_path / "a", {"a.txt": b"1", "b.log": b"2"})])
    assert "PyTorch Kineto" in refused.value.hint
    with pytest.raises(EmptyTrace, match=r"^e\.json holds no timed operator"):
        read_summary([written(tmp_path / "b", {"e.json": b"[]", "b.log": b"2"})])
    with pytest.raises(EmptyTrace, match=r"none of 2 traces can be read; the first: e\.json holds no timed"):
        read_summary([written(tmp_path / "c", {"e.json": b"[]", "f.json": b"[ ]"})])


def test_a_process_that_dies_is_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_dies(work, tasks, **_how):  # type: ignore[no-untyped-def]
        for index, task in enumerate(tasks):
            dead = task.name.endswith("rank2.json")
            yield Finished(index, None if dead else work(task), TraceError(f"{task.name} died") if dead else None)

    monkeypatch.setattr("traces.summary.map_ranks", one_dies)
    folder = written(tmp_path, RANKS)
    summary = read_summary([folder])
    assert summary.job.present == (0, 1, 3)
    assert "rank2.json died; it was left out" in summary.warnings
    with pytest.raises(TraceError, match=r"rank2\.json died"):
        read_summary([folder / name for name in RANKS])


def test_progress_counts_files_and_bytes(tmp_path: Path) -> None:
    folder = written(tmp_path, RANKS)
    seen: list[tuple[int, int, int, str]] = []
    read_summary([folder], workers=1, on_progress=lambda *told: seen.append(told))
    sizes = [len(data) for data in RANKS.values()]
    assert seen == [(0, 4, 0, "rank0.json"), *((n + 1, 4, sum(sizes[: n + 1]), f"rank{n}.json") for n in range(4))]


def test_devices_of_one_file_count_its_events_once(tmp_path: Path) -> None:
    document = json.loads(rank_document(0))
    document["traceEvents"] += json.loads(rank_document(0, device=1))["traceEvents"]
    summary = read_summary([written(tmp_path, {"t.json": json.dumps(document).encode()}) / "t.json"])
    assert [rank.device for rank in summary.ranks] == [0, 1]
    assert summary.event_counts["kernel"] == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_a_jax_profile_and_its_copy_are_read_together(tmp_path: Path, workers: int) -> None:
    profile = {name: (DATA / "jax" / name).read_bytes() for name in ("vm.xplane.pb", "vm.trace.json.gz")}
    folder = written(tmp_path, {f"plugins/profile/{name}": data for name, data in profile.items()})
    summary = read_summary([folder], workers=workers)
    assert summary.files == ("plugins/profile/vm.xplane.pb",)
    assert any("viewer's copy" in warning for warning in summary.warnings)
    assert not any("several formats" in warning for warning in summary.warnings)


def test_a_stored_summary_is_read_alone(tmp_path: Path) -> None:
    folder = written(tmp_path, RANKS)
    summary = read_summary([folder])
    stored = document_of(summary, redacted=False).model_dump_json().encode()
    written(tmp_path / "stored", {"s.json": stored})
    assert read_summary([tmp_path / "stored/s.json"]) == summary
    with pytest.raises(UnsupportedTrace, match="a stored summary, which is read alone"):
        read_summary([tmp_path / "stored/s.json", folder / "rank0.json"])
    with pytest.raises(UnsupportedTrace, match="a stored summary, and holds no events"):
        read_traces([tmp_path / "stored/s.json"])
    written(tmp_path, {"s.json": stored})
    told = "s.json is a stored summary, which is read alone; it was left out"
    assert told in read_summary([folder]).warnings


def test_formats_that_do_not_go_together_are_told(tmp_path: Path) -> None:
    xplane = (DATA / "jax" / "vm.xplane.pb").read_bytes()
    folder = written(tmp_path, {"rank0.json": RANKS["rank0.json"], "x.xplane.pb": xplane})
    assert any("of several formats (1 x kineto, 1 x xplane)" in told for told in read_summary([folder]).warnings)
