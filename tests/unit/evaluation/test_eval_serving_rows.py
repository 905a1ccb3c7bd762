"""Rows of serving as cases: what a line says, what is taken for granted, what is refused."""

import json

import pytest

from agents.evaluation.material import TextFile, read_material
from agents.evaluation.refusal import Refused
from agents.evaluation.serving_accuracy import serving_accuracy
from agents.evaluation.serving_cases import ServingCase, serving_case_of
from agents.evaluation.serving_rows import ServingRow

COLUMNS = (
    "id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,gemm_quant_mode,"
    "moe_quant_mode,batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,silicon_ttft_ms,"
    "silicon_tpot_ms"
)
HARNESS = "db-dump/2026-04-27; silicon_concurrency=64"


def csv_row(**changes: str) -> str:
    """One line: DeepSeek-R1 of the harness on eight B200."""
    values = {
        "id": "one",
        "silicon_data_source": HARNESS,
        "backend": "sglang",
        "backend_version": "0.5.9",
        "model_path": "deepseek-ai/DeepSeek-R1",
        "system": "b200_sxm",
        "precision": "fp4",
        "mode": "agg",
        "isl": "1024",
        "osl": "1024",
        "gemm_quant_mode": "nvfp4",
        "moe_quant_mode": "nvfp4",
        "batch_size": "64",
        "tp_size": "8",
        "pp_size": "1",
        "attention_dp_size": "1",
        "moe_tp_size": "1",
        "moe_ep_size": "8",
        "silicon_ttft_ms": "500",
        "silicon_tpot_ms": "16.3",
    }
    return ",".join((values | changes)[name] for name in COLUMNS.split(","))


def rows_of(*lines: str) -> list[ServingRow]:
    """The rows of a CSV of these lines."""
    found = read_material([TextFile("points.csv", "\n".join((COLUMNS, *lines)))]).serving
    assert all(isinstance(row, ServingRow) for row in found)
    return [row for row in found if isinstance(row, ServingRow)]


def case_of(line: str) -> ServingCase:
    """The case of one line."""
    return serving_case_of(rows_of(line)[0])


def json_row(**changes: object) -> str:
    """A published table's line: Llama-3.1-8B on one H100."""
    values: dict[str, object] = {
        "id": "table-1",
        "phase": "serving",
        "model": "llama-3.1-8b",
        "family": "llama-3.x-8b",
        "arch": {
            "model_type": "llama",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
            "vocab_size": 128256,
        },
        "hardware": {"chip": "H100-SXM", "count": 1},
        "engine": "TensorRT-LLM",
        "release": "1.0",
        "precision": "FP8",
        "load": {"isl": 128, "osl": 2048, "scenario": "max throughput, all requests queued"},
        "adopted": {"tp": 1, "pp": 1, "quantisation": "FP8"},
        "measured": {"output_tokens_per_s_per_chip": 20000.0},
        "source": "a page",
    }
    return json.dumps(values | changes)


def table_case(**changes: object) -> ServingCase:
    """The case of a published line."""
    (row,) = read_material([TextFile("serving.jsonl", json_row(**changes))]).serving
    assert isinstance(row, ServingRow)
    return serving_case_of(row)


def test_a_line_becomes_a_plan_under_a_load() -> None:
    case = case_of(csv_row())
    assert (case.plan.tp, case.plan.ep, case.plan.etp, case.plan.weight_dtype) == (8, 8, 1, "fp4")
    assert case.workload.concurrency == 64
    assert [target.metric for target in case.targets] == ["tpot_s", "ttft_s"]


def test_lengths_of_the_harness_are_drawn_and_their_mean_is_below_the_nominal_one() -> None:
    case = case_of(csv_row())
    assert case.workload.input_len == round(0.9 * 1024)
    assert case.workload.length_spread_frac == pytest.approx(1 / 9)
    assert case_of(csv_row(silicon_data_source="source_file=/home/x.csv")).workload.input_len == 1024


def test_experts_counted_twice_are_one_engine() -> None:
    twice = case_of(csv_row(tp_size="64", moe_tp_size="8", moe_ep_size="8"))
    assert twice.plan == case_of(csv_row()).plan
    attention = case_of(csv_row(tp_size="1", attention_dp_size="64", moe_tp_size="8", moe_ep_size="8"))
    assert (attention.plan.attention_dp, attention.plan.tp, attention.plan.ep) == (8, 1, 8)


def test_the_same_point_under_another_name_is_counted_once() -> None:
    twin = csv_row(id="two", model_path="deepseek-ai/DeepSeek-V3")
    first, second = rows_of(csv_row(), twin)
    assert first.repeats is None
    assert second.repeats == "one"
    assert serving_accuracy([first, second]).n_repeated == 1


def test_a_run_without_a_twin_had_multi_token_prediction() -> None:
    (alone,) = rows_of(csv_row())
    assert alone.speculation == "mtp"
    with_twin, _ = rows_of(csv_row(), csv_row(id="two", model_path="deepseek-ai/DeepSeek-V3"))
    assert with_twin.speculation is None


def test_chips_of_several_engines_are_not_one_engine() -> None:
    (row,) = rows_of(csv_row(tp_size="36", moe_tp_size="36", moe_ep_size="1"))
    assert row.ineligible == "tp counts the chips of several engines"


def test_all_requests_queued_take_every_seat() -> None:
    case = table_case()
    assert case.workload.concurrency == case.plan.max_num_seqs == 2048
    assert case.stack.request_s == 0
    assert "2048 seats an engine" in case.assumed


def test_a_static_batch_prefills_whole_prompts() -> None:
    case = table_case(load={"isl": 128, "osl": 128, "batch": 64, "scenario": "max throughput, all requests queued"})
    assert (case.workload.concurrency, case.plan.chunked_prefill_tokens) == (64, 0)


def test_chips_that_engines_do_not_fill_are_refused() -> None:
    with pytest.raises(Refused, match="engines of 2 devices do not make up 3"):
        table_case(hardware={"chip": "H100-SXM", "count": 3}, adopted={"tp": 2, "quantisation": "FP8"})


def test_an_offered_rate_is_no_measured_throughput() -> None:
    with pytest.raises(Refused, match="at a rate"):
        table_case(load={"isl": 128, "osl": 128, "scenario": "Server"})


def test_a_line_that_is_odd_is_refused_with_its_reason() -> None:
    material = read_material([TextFile("serving.jsonl", json_row(hardware={"chip": "H100-SXM", "count": "many"}))])
    report = serving_accuracy(material.serving)
    assert [one.reason for one in report.refusals] == ["hardware.count is 'many', not a number"]


def test_figures_stand_beside_the_bare_roofline() -> None:
    report = serving_accuracy(rows_of(csv_row()), with_rows=True)
    (found,) = (one for one in report.figures if one.by == "all" and one.metric == "tpot_s")
    assert found.n == 1
    assert found.roofline_mape is not None
    assert [point.metric for point in report.points] == ["tpot_s", "ttft_s"]


POOL_COLUMNS = ("num_workers", "tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")


def pool_rows(**changes: str) -> list[ServingRow]:
    """One disaggregated line: one prefill engine of four devices, two decode engines of eight."""
    prefill = dict(zip(POOL_COLUMNS, ("1", "1", "1", "4", "1", "4"), strict=True))
    decode = dict(zip(POOL_COLUMNS, ("2", "8", "1", "1", "1", "8"), strict=True))
    values = {f"prefill_{name}": value for name, value in prefill.items()}
    values |= {f"decode_{name}": value for name, value in decode.items()} | changes
    header = ",".join((COLUMNS, *values))
    line = csv_row(mode="disagg", batch_size="", tp_size="", model_path="deepseek-ai/DeepSeek-V3")
    text = "\n".join((header, ",".join((line, *values.values()))))
    return [row for row in read_material([TextFile("points.csv", text)]).serving if isinstance(row, ServingRow)]


def test_two_pools_are_a_plan_of_two_pools() -> None:
    (row,) = pool_rows()
    plan = serving_case_of(row).plan
    assert (plan.prefill_replicas, plan.prefill_tp, plan.prefill_attention_dp, plan.prefill_ep) == (1, 1, 4, 4)
    assert (plan.replicas, plan.tp, plan.attention_dp, plan.ep) == (2, 8, 1, 8)
    assert plan.devices == row.chips == 20
    assert plan.kv_transfer == "nixl"
    assert plan.max_num_seqs == 32


def test_pools_of_which_nobody_counts_the_engines_are_not_guessed() -> None:
    (row,) = pool_rows(prefill_num_workers="", decode_num_workers="")
    assert row.ineligible is not None
    assert "how many engines share the requests" in row.ineligible


def test_pools_whose_experts_lie_nowhere_are_refused() -> None:
    (row,) = pool_rows(decode_moe_tp_size="0", decode_moe_ep_size="0")
    with pytest.raises(Refused, match="experts of a decode engine lie is not stated"):
        serving_case_of(row)


def test_experts_are_not_cut_narrower_than_a_block_of_scales() -> None:
    # experts of 2,048 features over 32 ranks: 64 each
    layout = {"attention_dp_size": "32", "tp_size": "1", "moe_tp_size": "32", "moe_ep_size": "1"}
    (row,) = pool_rows(**{f"decode_{name}": value for name, value in layout.items()})
    case = serving_case_of(row)
    assert (case.plan.ep, case.plan.etp) == (32, 1)
    assert any("narrower than a block of scales" in said for said in case.assumed)
