"""Published serving fleets against the projector's first three, and the best degrees of measured sweeps."""

import json

import pytest

from agents.evaluation.best_degrees import best_degrees
from agents.evaluation.rows import Unreadable
from agents.evaluation.served_rows import ServedLayout, ServedRow, read_served_rows
from agents.evaluation.served_topk import problem_of, served_topk
from agents.evaluation.served_traffic import TRAFFICS, traffic_of
from agents.evaluation.workloads import read_workloads
from app.cli import main
from projector.specs.objective import Slo

LLAMA_8B = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "hidden_act": "silu",
}  # fmt: skip


def line(name: str, tp: int, tokens_per_s_per_chip: float | None, **changed: object) -> dict[str, object]:
    row: dict[str, object] = {
        "id": name,
        "workload_id": "w",
        "phase": "serving",
        "model": "llama-3.1-8b",
        "family": "llama-3.x-8b",
        "arch": LLAMA_8B,
        "hardware": {"chip": "H100-SXM", "count": tp},
        "engine": "TensorRT-LLM",
        "precision_class": "fp8",
        "load": {"isl": 1000, "osl": 1000, "scenario": "max throughput, all requests queued"},
        "adopted": {"tp": tp, "pp": 1},
        "measured": {"output_tokens_per_s_per_chip": tokens_per_s_per_chip},
    }
    return row | changed


def rows_of(*lines: dict[str, object]) -> list[ServedRow | Unreadable]:
    return list(read_served_rows("\n".join(json.dumps(one) for one in lines), "rows.jsonl"))


def row_of(one: dict[str, object]) -> ServedRow:
    (found,) = rows_of(one)
    assert isinstance(found, ServedRow)
    return found


@pytest.mark.parametrize(
    ("adopted", "layout"),
    [
        ({"tp": 8, "pp": None, "dp": 2}, ServedLayout(tp=8, replicas=2)),
        # tensor-parallel ranks that own whole requests
        ({"tp": 8, "dp": 9, "ep": 8, "attention_dp": True}, ServedLayout(ep=8, attention_dp=8, replicas=9)),
        ({"tp": 1, "dp": 32, "ep": 32, "attention_dp": True}, ServedLayout(ep=32, attention_dp=32)),
        ({}, ServedLayout()),
    ],
)
def test_layouts_are_read_in_the_terms_of_a_plan(adopted, layout) -> None:
    assert row_of(line("a", 1, None, adopted=adopted)).layout == layout


def test_a_line_that_is_no_row_is_told() -> None:
    found = list(read_served_rows('{"id": "x", "phase": "serving"}\nnot json\n\n{"phase": "pretrain"}', "f"))
    assert [one.reason for one in found if isinstance(one, Unreadable)] == [
        "chip or number of chips not stated",
        "the line is not JSON",
    ]
    assert len(found) == 2


def test_data_sets_have_lengths_and_budgets_by_scenario() -> None:
    chat = traffic_of("MLPerf llama2-70b-99.9")
    assert chat is TRAFFICS[0]
    assert chat.slo("Offline") == Slo()
    assert chat.slo("Interactive").tpot_ms == 40
    assert traffic_of("MLPerf llama2-7b") is traffic_of("random") is None


def test_a_workload_without_lengths_is_refused() -> None:
    workloads = read_workloads(json.dumps(workload("w", "a")), "w")
    report = served_topk(workloads, rows_of(line("a", 1, 5.0, load={"scenario": "Offline"})))
    assert report.n == 1
    assert report.strata[0].top3.rate == 0
    assert "neither lengths" in report.refusals[0].reason


def workload(name: str, *rows: str, family: str = "llama-3.x-8b", chip: str = "H100-SXM") -> dict[str, object]:
    return {
        "workload_id": name, "phase": "serving", "model": "llama-3.1-8b", "family": family, "chip": chip,
        "topk_eligible": True, "expert_row_ids": rows, "row_ids": rows,
    }  # fmt: skip


def test_small_models_are_replicated() -> None:
    """Eight chips of 80 GB and a model of 8: a replica each; beside it what needs no model says."""
    fleet = line("a", 1, 1.0, hardware={"chip": "H100-SXM", "count": 8}, adopted={"tp": 1, "dp": 8})
    report = served_topk(read_workloads(json.dumps(workload("w", "a")), "w"), rows_of(fleet), with_workloads=True)
    every = report.strata[0]
    assert every.top1.rate == every.top3.rate == every.tolerant.rate == 1
    assert report.workloads[0].proposals[0] == "replicas 8"
    assert {one.name: one.rate.rate for one in every.baselines} == {
        "the three commonest fleets": 0,
        "three engines of the same model on other chips": 0,
        "one engine, tp over all devices": 0,
        "a replica a device": 1,
    }


def test_the_planner_is_told_nothing_of_the_layout() -> None:
    task = problem_of(row_of(line("a", 4, 1.0, hardware={"chip": "H100-SXM", "count": 8}, adopted={"tp": 4, "dp": 2})))
    assert task.current is None
    assert task.constraints.fixed == {"weight_dtype": "fp8", "expert_dtype": "same", "prefill_replicas": 0}
    assert task.workload.concurrency is None


def test_the_best_degrees_of_a_sweep() -> None:
    """Measured as physics has it: every further rank costs throughput a chip."""
    rows = [row_of(line(f"tp{tp}", tp, 8000.0 / tp**0.5)) for tp in (1, 2, 4, 8)]
    found = best_degrees([("sweep", rows), ("one engine alone", rows[:1])])
    assert (found.total.right.hits, found.total.right.n, found.total.points) == (1, 1, 4)
    backwards = [row_of(line(f"tp{tp}", tp, 1000.0 * tp)) for tp in (1, 8)]
    found = best_degrees([("sweep", backwards)])
    assert (found.total.right.rate, found.total.near.rate) == (0, 0)


def test_a_sweep_that_cannot_be_projected_counts_as_missed() -> None:
    rows = [row_of(line(f"tp{tp}", tp, 1.0, arch={})) for tp in (1, 2)]
    found = best_degrees([("sweep", rows)])
    assert (found.total.right.n, found.total.right.rate) == (1, 0)
    assert found.refusals[0].n == 1


def test_the_command_finds_rows_beside_workloads_and_workloads_beside_rows(tmp_path, capsys) -> None:
    rows, workloads = tmp_path / "serving.jsonl", tmp_path / "workloads.jsonl"
    rows.write_text(json.dumps(line("a", 1, 1.0)) + "\n")
    workloads.write_text(json.dumps(workload("w", "a")) + "\n")
    found = []
    for named in ([workloads], [rows], [workloads, rows]):
        assert main(["eval", "topk", *map(str, named), "--phase", "serving", "--json"]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] == found[2]
    assert json.loads(found[0])["strata"][0]["top1"]["rate"] == 1
    assert main(["eval", "topk", str(workloads), "--phase", "serving"]) == 0
    assert "Wilson" in capsys.readouterr().out
    assert main(["eval", "topk", str(rows)]) != 0
    assert "--phase serving" in capsys.readouterr().err


def test_suspect_and_disaggregated_points_are_left_out() -> None:
    rows = [
        row_of(line("a", 1, 1.0)),
        row_of(line("b", 2, 9.0, suspect="typing error")),
        row_of(line("c", 4, 9.0, adopted={"tp": 4, "disaggregated": True})),
    ]
    assert best_degrees([("sweep", rows)]).total.right.n == 0
