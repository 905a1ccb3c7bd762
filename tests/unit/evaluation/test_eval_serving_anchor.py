"""`eval anchor` of serving rows: what one measured point of an engine is worth for its others."""

import json

import pytest

from agents.evaluation.serving_anchoring import serving_anchor_report
from agents.evaluation.serving_lines import read_serving_lines
from app.cli import main
from projector.catalog import architecture, chip
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

LLAMA_8B = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "hidden_act": "silu",
}  # fmt: skip


def line(name: str, concurrency: int, tpot_ms: float, tp: int = 1) -> str:
    return json.dumps(
        {
            "id": name, "workload_id": "w", "phase": "serving", "model": "llama-3.1-8b", "family": "llama-3.x-8b",
            "arch": LLAMA_8B, "hardware": {"chip": "H100-SXM", "count": tp}, "engine": "vLLM", "source": "example",
            "precision": "BF16", "precision_class": "bf16", "release": "1",
            "load": {"isl": 1000, "osl": 200, "concurrency": concurrency}, "adopted": {"tp": tp, "pp": 1},
            "measured": {"tpot_ms_mean": tpot_ms, "ttft_ms_mean": 120.0},
        }
    )  # fmt: skip


def modelled_ms(concurrency: int) -> float:
    plan = ParallelismPlan(phase="serving", max_num_seqs=concurrency, chunked_prefill_tokens=8192)
    load = WorkloadSpec(phase="serving", input_len=1000, output_len=200, concurrency=concurrency, engine="vllm 1")
    found = project(plan, load, architecture("llama-3.1-8b"), ClusterSpec(chip="h100-sxm", chips=1), chip("h100-sxm"))
    assert found.tpot_s is not None
    return 1e3 * found.tpot_s


def report_of(*lines: str):
    return serving_anchor_report(read_serving_lines("\n".join(lines), "rows.jsonl"))


def test_an_engine_that_is_slower_throughout_is_corrected_by_one_point() -> None:
    slower = 1.3
    found = report_of(*(line(str(count), count, slower * modelled_ms(count)) for count in (16, 32)))
    near = next(one for one in found.by_distance if one.value == "load")
    assert (found.n_engines, found.n_points, found.n_pairs, near.pairs) == (1, 2, 2, 2)
    assert near.tpot_modelled_mape == pytest.approx(1 - 1 / slower, rel=0.02)
    assert near.tpot_anchored_mape is not None
    assert near.tpot_anchored_mape < 0.05
    assert near.tpot_coverage_80 == 1


def test_a_point_far_from_its_projection_anchors_nothing() -> None:
    found = report_of(line("a", 16, 20 * modelled_ms(16)), line("b", 32, modelled_ms(32)))
    assert found.refused_anchors[0].n == 1
    assert found.n_pairs == 1


def test_one_point_alone_is_no_sweep(tmp_path, capsys) -> None:
    assert report_of(line("a", 16, 10.0)).n_engines == 0
    rows = tmp_path / "serving.jsonl"
    rows.write_text(line("a", 16, modelled_ms(16)) + "\n" + line("b", 64, modelled_ms(64)) + "\n")
    assert main(["eval", "anchor", str(rows)]) == 0
    assert "far load" in capsys.readouterr().out
