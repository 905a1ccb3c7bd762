"""`shardwise eval` over files: companions beside them, one JSON document, tables, wrong input."""

import json
from pathlib import Path

import pytest
from evaluation_examples import VTRAIN_HEADER, row_values, text_of, workload_values

from agents.evaluation.reports import AccuracyReport, TopkReport
from app.cli import main

ROOT = Path(__file__).parents[3]
ACCURACY_KEYS = [
    "n_given", "n_modelled", "mape", "median_error", "bias", "coverage_80", "width_80", "order_accuracy", "top1_regret",
    "top3_regret", "memory_median_error",
]  # fmt: skip
TOPK_KEYS = [
    "n", "nontrivial_n", "nontrivial_top1", "nontrivial_top3", "nontrivial_tolerant", "trivial_top1", "legal_share",
    "baseline_common_top3", "baseline_same_model_top3",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    rows = [row_values(), row_values("row-2", adopted={"tp": 2}, measured={"tokens_per_s_per_chip": 35_000})]
    (tmp_path / "training.jsonl").write_text(text_of(*rows))
    (tmp_path / "workloads.jsonl").write_text(text_of(workload_values(row_ids=["row-1", "row-2"])))
    (tmp_path / "sweep.csv").write_text(
        VTRAIN_HEADER + "8,64,2,1024,16,24,2048,2,2,2,900\n8,64,2,1024,16,24,2048,1,8,1,800\n"
    )
    return tmp_path


def document(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    out, err = capsys.readouterr()
    assert "processor time" in err
    return json.loads(out)


def test_accuracy_prints_one_document_with_the_keys_other_programs_rely_on(capsys, folder):
    found = document(capsys, "eval", "accuracy", folder / "training.jsonl", folder / "sweep.csv", "--json")
    assert list(found)[: len(ACCURACY_KEYS)] == ACCURACY_KEYS
    assert (found["n_given"], found["n_modelled"]) == (4, 4)
    assert {one["value"] for one in found["slices"] if one["by"] == "stratum"} == {"modern", "not stated"}
    assert found["folds"] is None
    assert found["rows"] == []


def test_rows_are_read_beside_a_workloads_file(capsys, folder):
    found = document(capsys, "eval", "accuracy", folder / "workloads.jsonl", "--json", "--folds", "--rows")
    assert found["n_modelled"] == 2
    assert len(found["rows"]) == 2
    assert found["folds"]["figures"][0]["errors"]["n"] == 2


def test_topk_prints_one_document_with_the_keys_other_programs_rely_on(capsys, folder):
    found = document(capsys, "eval", "topk", folder / "workloads.jsonl", "--json")
    assert list(found)[: len(TOPK_KEYS)] == TOPK_KEYS
    assert (found["n"], found["framework"], found["phase"]) == (1, "unknown", "pretrain")
    beside = document(capsys, "eval", "topk", folder / "training.jsonl", "--json")
    both = document(capsys, "eval", "topk", folder / "workloads.jsonl", folder / "training.jsonl", "--json")
    assert found == beside == both


def test_topk_with_the_framework_named_and_another_phase(capsys, folder):
    named = document(
        capsys, "eval", "topk", folder / "workloads.jsonl", "--framework", "named", "--workloads", "--json"
    )
    assert (named["framework"], len(named["workloads"])) == ("named", 1)
    other = document(capsys, "eval", "topk", folder / "workloads.jsonl", "--phase", "sft", "--json")
    assert (other["n"], other["nontrivial_top3"]) == (0, None)


def test_tables_for_people(capsys, folder):
    assert main(["eval", "accuracy", str(folder / "training.jsonl"), "--folds", "--ids"]) == 0
    out = capsys.readouterr().out
    for title in ("Step time", "By chip", "Ranking inside sweeps", "Memory", "In-sample or not"):
        assert title in out
    assert main(["eval", "topk", str(folder / "workloads.jsonl")]) == 0
    out = capsys.readouterr().out
    for title in ("Hits of the projector alone", "Strict hits", "Baselines that need no model", "How to read this"):
        assert title in out


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("prices.csv", "chip,price\nh100,2\n", "neither measured rows nor workloads"),
        ("lonely.jsonl", text_of(workload_values(row_ids=["nowhere"])), "no row belongs to these workloads"),
        ("empty.jsonl", "", "neither measured rows nor workloads"),
    ],
)
def test_a_file_that_cannot_be_scored_is_wrong_input(capsys, tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    assert main(["eval", "accuracy", str(tmp_path / name)]) == 2
    assert message in capsys.readouterr().err


def test_rows_without_a_workloads_file_have_no_hit_rate(capsys, tmp_path):
    (tmp_path / "rows.jsonl").write_text(text_of(row_values()))
    assert main(["eval", "topk", str(tmp_path / "rows.jsonl"), "--json"]) == 2
    assert "no workload of a workloads.jsonl beside the files" in json.loads(capsys.readouterr().out)["detail"]


def test_a_file_that_is_not_text_is_wrong_input(capsys, tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(b"\xff\xfe\x00")
    assert main(["eval", "accuracy", str(tmp_path / "rows.jsonl")]) == 2
    assert "is not UTF-8 at byte 0" in capsys.readouterr().err


def test_text_of_a_foreign_file_cannot_steer_the_terminal(capsys, tmp_path):
    (tmp_path / "rows.jsonl").write_text(text_of(row_values(framework="\x1b[31mred", suspect="\x1b[2J[bold]x")))
    assert main(["eval", "accuracy", str(tmp_path / "rows.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[bold]x" in out


def test_the_documentation_names_every_key():
    text = (ROOT / "docs/evaluation.md").read_text()
    for report in (AccuracyReport, TopkReport):
        for key in report.model_fields:
            assert f"`{key}`" in text, key


def test_anchor_prints_one_document_and_tables(capsys, folder):
    found = document(capsys, "eval", "anchor", folder / "training.jsonl", folder / "sweep.csv", "--json")
    assert (found["n_runs"], found["n_sweeps"], found["n_groups"], found["n_pairs"]) == (4, 2, 2, 4)
    assert {one["value"] for one in found["by_distance"]} >= {"all", "another tp, cp or ep"}
    assert found["folds"]["leave_group_out_mape"] > 0
    assert main(["eval", "anchor", str(folder / "training.jsonl")]) == 0
    assert "each the anchor once: 2 pairs" in capsys.readouterr().out
