"""A folder or an archive of ranks on the command line: one job, a line and a bar a rank."""

import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from app.cli import main
from app.tables_job import BAR_CHARACTERS, bar
from tests.unit.traces.trace_examples import document, kernel
from traces.summary_types import TimeShares


def write_ranks(folder: Path, count: int = 3) -> None:
    for rank in range(count):
        events = (
            kernel("sm90_gemm", 1000, 60 + 10 * rank),
            kernel("ncclDevKernel_AllReduce_Sum_bf16", 1100, 40 - 10 * rank, stream=9),
        )
        text = json.dumps(document(*events, distributedInfo={"rank": rank, "world_size": 4}))
        (folder / f"trace_{rank}.json").write_text(text)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    write_ranks(folder)
    (folder / "notes.txt").write_text("not a trace")
    return folder


def test_a_folder_of_ranks_is_one_job(ranks: Path, capsys) -> None:
    assert main(["diagnose", str(ranks)]) == 0
    shown = capsys.readouterr().out
    assert "Ranks (3)" in shown
    assert "1 of 4 ranks are not in these files: 3" in shown
    assert shown.count("|#") == 3
    assert "1 x .txt" in shown


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_gives_the_figures_of_its_folder(ranks: Path, tmp_path: Path, kind: str, capsys) -> None:
    archive = tmp_path / f"run.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
            for file in sorted(ranks.glob("*.json")):
                made.write(file, file.name)
    else:
        with tarfile.open(archive, "w:gz") as made:
            for file in sorted(ranks.glob("*.json")):
                made.add(file, file.name)
    found = {}
    for path in (ranks, archive):
        assert main(["diagnose", str(path), "--json"]) == 0
        found[path] = json.loads(capsys.readouterr().out)
    for field in ("window_ns", "compute_ns", "exposed_communication_ns", "idle_ns", "bottleneck", "job"):
        assert found[ranks][field] == found[archive][field]


def test_a_folder_without_a_trace_is_told(tmp_path: Path, capsys) -> None:
    (tmp_path / "readme.txt").write_text("nothing here")
    assert main(["diagnose", str(tmp_path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["code"] in ("invalid_description", "empty_trace", "unknown_trace_format")


def test_a_bar_always_has_its_length() -> None:
    for compute, exposed, copies in ((1, 1, 1), (333, 333, 333), (0, 0, 0), (1000, 0, 0), (0, 1, 998)):
        shares = TimeShares(
            window_ns=1000,
            compute_ns=compute,
            communication_ns=exposed,
            exposed_communication_ns=exposed,
            copy_ns=copies,
            exposed_copy_ns=copies,
            idle_ns=1000 - compute - exposed - copies,
            unclassified_ns=0,
        )
        assert len(bar(shares)) == BAR_CHARACTERS
