"""What the harness's launch scripts say of a point, and what that makes of its case."""

import pytest

from agents.evaluation.serving_cases import serving_case_of
from agents.evaluation.serving_csv import read_serving_csv
from agents.evaluation.serving_launches import Launch, Launched, launch_of
from agents.evaluation.serving_rows import ServingRow
from projector.serving_stacks import serving_stack

HEADER = (
    "id,silicon_data_source,backend,backend_version,model_path,system,mode,isl,osl,gemm_quant_mode,moe_quant_mode,"
    "batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,prefill_num_workers,decode_num_workers,"
    "silicon_ttft_ms,silicon_tpot_ms"
)


def point(**changed):
    plain = {
        "engine": "vllm", "chip": "h100-sxm", "model": "llama-3.1-70b", "experts": "fp8", "tp": 4, "concurrency": 16,
        "input_len": 1024, "output_len": 1024,
    }  # fmt: skip
    return Launched(**plain | changed)


def row(source="source_file=2026-04-06.csv", concurrency=64, batch=64, tp=4, engine="trtllm") -> ServingRow:
    stated = f"x,{source}; silicon_concurrency={concurrency},{engine},1.0.0,meta-llama/Llama-3.1-70B,h100_sxm,agg"
    line = f"{stated},1024,1024,fp8,fp8,{batch},{tp},1,1,1,1,,,250.0,12.5"
    found = next(read_serving_csv(f"{HEADER}\n{line}\n", "silicon_serving.csv"))
    assert isinstance(found, ServingRow)
    return found


def test_a_script_nobody_read_leaves_everything_open():
    assert launch_of(point(engine="vllm", model="qwen3-235b-a22b")) == Launch()
    assert launch_of(point(engine="sglang")) == Launch()


@pytest.mark.parametrize(
    ("changed", "kv"),
    [
        ({}, "fp8"),
        ({"model": "gpt-oss-120b"}, "bf16"),
        ({"model": "gpt-oss-120b", "chip": "b200-sxm"}, "fp8"),
        ({"model": "minimax-m2.5", "chip": "b200-sxm", "experts": "nvfp4"}, "fp8"),
        ({"model": "minimax-m2.5", "chip": "b200-sxm"}, "bf16"),
        ({"engine": "sglang", "model": "deepseek-v3", "chip": "h200-sxm"}, "bf16"),
        ({"engine": "sglang", "model": "deepseek-v3", "chip": "b200-sxm", "tp": 8}, "fp8"),
    ],
)
def test_the_precision_of_caches_is_the_scripts(changed, kv):
    assert launch_of(point(**changed)).kv == kv


def test_who_is_looked_at_seldom_waits():
    deepseek = {"engine": "sglang", "model": "deepseek-v3", "chip": "b200-sxm", "tp": 8}
    assert launch_of(point(**deepseek, concurrency=4)).wait_steps == 5
    assert launch_of(point(**deepseek, concurrency=64)).wait_steps == 15
    few, many = (launch_of(point(engine="trtllm", concurrency=count)).wait_steps for count in (4, 256))
    assert 20 > few > many > 10
    assert launch_of(point(engine="trtllm", tp=8)).wait_steps is None


def test_the_launch_is_the_case():
    case = serving_case_of(row())
    assert (case.plan.kv_cache_dtype, case.plan.chunked_prefill_tokens) == ("fp8", 16384)
    assert case.stack.admission_steps > 10
    # 0.9 of what 70 GB of weights on four chips leave
    assert 0.91 < case.plan.hbm_frac < 0.95
    assert any("scripts" in text for text in case.assumed)


def test_other_sources_keep_the_engines_defaults():
    case = serving_case_of(row(source="source_file=/data/own.csv"))
    assert case.stack == serving_stack("trtllm 1.0.0").stack
    assert not any("scripts" in text for text in case.assumed)


def test_engines_that_share_the_requests_are_counted():
    case = serving_case_of(row(source="source_file=/data/own.csv", concurrency=96, batch=12, tp=2))
    assert (case.plan.replicas, case.plan.devices, case.workload.concurrency) == (8, 16, 96)
