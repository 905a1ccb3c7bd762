"""Own rules on the command line and in the settings: one file, told at once where it is not accepted."""

import json
from pathlib import Path

import pytest
from rule_examples import PATCHWORK, entry

from app.cli import main
from app.service import build
from app.settings import load_settings
from projector.errors import InvalidDescription
from tests.unit.traces.trace_examples import document, kernel


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document(kernel("patchwork_pack_kernel", 0, 5), kernel("nvjet", 9, 1))))
    return str(path)


def kinds(text: str) -> dict[str, int]:
    return {one["kind"]: one["total_ns"] for one in json.loads(text)["summary"]["kernel_classes"]}


def test_a_command_asks_own_rules_first(tmp_path: Path, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.toml"
    own.write_text(PATCHWORK)
    assert main(["summarise", trace]) == 0
    assert kinds(capsys.readouterr().out) == {"other": 5_000, "gemm": 1_000}
    assert main(["summarise", trace, "--kernel-rules", str(own)]) == 0
    assert kinds(capsys.readouterr().out) == {"moe": 5_000, "gemm": 1_000}


def test_the_setting_is_the_same(
    tmp_path: Path, trace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(PATCHWORK)
    monkeypatch.setenv("SHARDWISE_KERNEL_RULES", str(own))
    assert main(["summarise", trace]) == 0
    assert kinds(capsys.readouterr().out) == {"moe": 5_000, "gemm": 1_000}


@pytest.mark.parametrize("command", ["diagnose", "plan", "summarise"])
def test_a_fault_names_file_and_entry(
    tmp_path: Path, trace: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(entry(meaning="matmul"))
    assert main([command, trace, "--kernel-rules", str(own)]) == 2
    assert "own.toml, entry 'own': meaning 'matmul' is none of gemm, attention" in capsys.readouterr().err


def test_the_service_does_not_start_with_a_broken_file(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(entry(pattern="(a+)+"))
    with pytest.raises(InvalidDescription, match="is refused"):
        build(load_settings(data_dir=tmp_path, kernel_rules=own), None, lambda: None)  # type: ignore[arg-type,return-value]
