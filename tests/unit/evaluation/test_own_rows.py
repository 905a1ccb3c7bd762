"""The example of docs/evaluation.md: its commands run, its row is the file's, and the file shows what it promises."""

import json
import re
import shlex
from pathlib import Path

import pytest

from agents.evaluation.rows import MeasuredRow, read_rows
from app.cli import main

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs/evaluation.md").read_text(encoding="utf-8")
SECTION = TEXT.split("### Rows of your own")[1].split("\n## ")[0]
COMMANDS = re.findall(r"^shardwise (eval .*)$", SECTION, re.MULTILINE)
ROWS = ROOT / "tests/data/groundtruth/training.jsonl"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_document_run(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out


def test_there_are_commands_for_errors_and_for_hits():
    assert [command.split()[1] for command in COMMANDS] == ["accuracy", "topk"]


def test_the_row_of_the_document_is_the_first_of_the_file():
    (block,) = re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)
    first = json.loads(ROWS.read_text(encoding="utf-8").splitlines()[0])
    assert json.loads(block) == first


def test_the_example_shows_every_outcome_of_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "accuracy", str(ROWS), "--json", "--rows", "--ids"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_given"], found["n_modelled"], found["n_suspect"], found["n_refused"]) == (9, 7, 1, 1)
    assert found["sweeps"][0]["rows"] == 5
    rows = {row["id"]: row for row in found["rows"]}
    assert rows["ours-6"]["fit"] == "too_large"
    assert rows["ours-7"]["assumed"] == ["precision", "global_batch", "recompute"]
    assert [reason["ids"] for reason in found["refusals"]] == [["ours-9"]]


def test_every_key_the_document_names_is_read():
    """A key of the table that no reader knows would be a promise nobody keeps."""
    readers = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "agents/evaluation").glob("*.py"))
    keys = {key for line in SECTION.splitlines() if line.startswith("| `") for key in re.findall(r"`(\w+)`", line)}
    values = {"none", "selective", "full", "gpt", "bf16", "fp16", "fp8", "mxfp8", "nvfp4"}
    values |= {"pretrain", "sft", "lora", "qlora", "4x8x8", "dp"}
    for key in keys - values - {"intermediate_size"}:
        assert f'"{key}"' in readers, key


def test_every_row_but_the_refused_one_is_read_whole():
    read = list(read_rows(ROWS.read_text(encoding="utf-8"), ROWS.name))
    assert all(isinstance(row, MeasuredRow) for row in read)
