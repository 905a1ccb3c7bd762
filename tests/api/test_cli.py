"""The command line: one document or one table on stdout, the rest on stderr, and exit codes.

Golden tables are in tests/api/golden; `python tests/api/test_cli.py` writes them anew.
"""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import sample_answer

from app.cli import main
from app.schemas import DiagnoseAnswer, ProjectAnswer, TraceHeadline
from app.tables import show_diagnosis, show_plan, show_projection
from app.wiring import PlanOutcome
from projector.specs.cluster import ClusterSpec
from projector.specs.workload import WorkloadSpec

GOLDEN = Path(__file__).parent / "golden"
TRACES = Path(__file__).parents[1] / "data" / "traces"
PROJECT = ("project", "--chip", "h100-sxm", "--chips", "8", "--plan", "tp=8")
TRACE = str(TRACES / "b200_vllm_eager.json.gz")


def table(show, *arguments: object) -> str:
    with redirect_stdout(io.StringIO()) as out:
        show(*arguments)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def tables() -> dict[str, str]:
    """Every table of the command line over the hand-made answer."""
    summary, result = sample_answer.summary(), sample_answer.result()
    project = {
        "plan": sample_answer.CURRENT,
        "workload": WorkloadSpec(model="llama-3.1-8b", seq_len=4096, global_batch=16),
        "cluster": ClusterSpec(chip="b200", chips=16),
    }
    legal = ProjectAnswer(**project, legal=True, illegal=(), projection=result.current)
    illegal = ProjectAnswer(**project, legal=False, illegal=result.near_misses[0].rejections, projection=None)
    return {
        "diagnose.txt": table(show_diagnosis, DiagnoseAnswer.of(summary, result.diagnosis)),
        "plan.txt": table(show_plan, result, TraceHeadline.of(summary)),
        "project.txt": table(show_projection, legal),
        "project_illegal.txt": table(show_projection, illegal),
    }


@pytest.mark.parametrize("name", ["diagnose.txt", "plan.txt", "project.txt", "project_illegal.txt"])
def test_a_table_reads_like_its_golden(name: str) -> None:
    assert tables()[name] == (GOLDEN / name).read_text()


def test_foreign_text_in_a_table_is_plain() -> None:
    summary, result = sample_answer.summary(sample_answer.HOSTILE), sample_answer.result(sample_answer.HOSTILE)
    shown = table(show_plan, result, TraceHeadline.of(summary))
    shown += table(show_diagnosis, DiagnoseAnswer.of(summary, result.diagnosis))
    assert "<script>alert(1)</script>{{7*7}}" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize("name", ["b200_vllm_eager.json.gz", "a100_ddp_resnet.json.gz"])
def test_diagnose_prints_one_document_with_the_agreed_keys(name: str, capsys) -> None:
    assert main(["diagnose", str(TRACES / name), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    agreed = {
        "window_ns",
        "compute_ns",
        "communication_ns",
        "exposed_communication_ns",
        "copy_ns",
        "exposed_copy_ns",
        "idle_ns",
        "unclassified_ns",
    }
    agreed |= {"bottleneck", "cause", "shares", "margin", "ambiguous", "evidence", "ranks", "window", "warnings"}
    assert agreed <= set(document)
    parts = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
    assert sum(document[part] for part in parts) == document["window_ns"]
    assert document["window"]["name"] == "whole file"
    assert len(document["ranks"]) == 1


def test_diagnose_prints_a_table_for_people(capsys) -> None:
    assert main(["diagnose", TRACE]) == 0
    printed = capsys.readouterr()
    assert "exposed communication" in printed.out
    assert "time [ms]" in printed.out
    assert printed.err == ""


def test_project_prints_one_document(capsys) -> None:
    job = "--model llama-3.1-8b --chip h100_sxm --chips 8 --seq-len 4096 --global-batch 8"
    assert main(["project", *job.split(), "--plan", "dp=8,fsdp=8,zero_stage=3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["legal"]
    assert document["projection"]["chip"] == "h100-sxm"
    assert document["projection"]["step_time_s"] > 0


def test_project_names_the_rules_an_illegal_plan_breaks(capsys) -> None:
    job = "--model llama-3.1-8b --chip h100-sxm --chips 8 --seq-len 4096 --global-batch 8"
    assert main(["project", *job.split(), "--plan", "dp=4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["legal"], document["projection"]) == (False, None)
    assert document["illegal"]


class Planner:
    def __init__(self) -> None:
        self.asked = []

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def plan(self, request, traces, names=None, plan_id=None) -> PlanOutcome:
        self.asked.append((request, list(traces)))
        return PlanOutcome(sample_answer.result(), sample_answer.summary() if traces else None)


@pytest.fixture
def planner(monkeypatch) -> Planner:
    planner = Planner()
    monkeypatch.setattr("app.wiring.command_planner", lambda settings, say: planner)
    return planner


def test_plan_prints_one_document(planner, capsys, tmp_path) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"hardware": ["tpu-v5p"]}')
    assert main(["plan", TRACE, "--request", str(request), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [proposal["rank"] for proposal in document["proposals"]] == [1, 2, 3]
    assert document["trace"]["format"] == "kineto"
    asked, traces = planner.asked[0]
    assert (asked.hardware, traces) == (("tpu-v5p",), [Path(TRACE)])


def test_plan_works_from_a_request_alone_and_from_stdin(planner, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"workload": {"model": "llama-3.1-8b"}}')))
    assert main(["plan", "--request", "-"]) == 0
    assert "3 proposals" in capsys.readouterr().out
    assert planner.asked[0][1] == []


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["diagnose", "missing.json"], "invalid_description", "no file 'missing.json'"),
        (["plan", "--request", "."], "invalid_description", "is a folder"),
        (["diagnose"], "invalid_description", "required: TRACE"),
        (["diagnose", __file__], "unknown_trace_format", ""),
        (["diagnos", TRACE], "unknown_name", "nearest known: diagnose"),
        (["diagnose", TRACE, "--jsn"], "invalid_description", "--jsn"),
        (["plan"], "invalid_description", "neither a trace nor a request"),
        (["plan", "--request", "missing.json"], "invalid_description", "no file"),
        ([*PROJECT, "--model", "llama-3.1-8b", "--seq-len", "1"], "invalid_description", "--global-batch"),
        ([*PROJECT, "--model", "llama-9", "--seq-len", "1", "--global-batch", "1"], "unknown_name", "llama-3"),
    ],
)
def test_bad_input_is_exit_2_with_a_message_or_a_problem(arguments, code, told, capsys) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert told in printed.err
    assert main([*arguments, "--json"]) == 2
    problem = json.loads(capsys.readouterr().out)
    assert problem["code"] == code


def test_a_request_with_an_unknown_key_is_exit_2(capsys, tmp_path) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"workload": {"seq_length": 1}, "hardwares": []}')
    assert main(["plan", "--request", str(request)]) == 2
    err = capsys.readouterr().err
    assert "workload.seq_length: unknown key (nearest: seq_len" in err
    assert "hardwares: unknown key (nearest: hardware" in err


def test_our_own_fault_is_exit_1(planner, monkeypatch, capsys, caplog) -> None:
    monkeypatch.setattr(planner, "plan", lambda *_: 1 / 0)
    assert main(["plan", TRACE, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["code"] == "internal_error"
    assert "ZeroDivisionError" in caplog.text


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, text in tables().items():
        (GOLDEN / name).write_text(text)
