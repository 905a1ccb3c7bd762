"""Serving: memory and latencies against hand arithmetic and published exact values."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, latent_model, moe_model, serving, switched_chip

from projector.breakdown import Projection
from projector.catalog import architecture, chip
from projector.cost.serving_memory import kv_bytes_per_request
from projector.cost.stages import stages
from projector.graph.scope import kv_bytes_per_token
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.serving_stack import ANY_ENGINE
from projector.specs.workload import WorkloadSpec

GIB = 2**30


def engine(**changes: object) -> ParallelismPlan:
    return ParallelismPlan.model_validate({"phase": "serving"} | changes)


def projected(
    plan: ParallelismPlan,
    load: WorkloadSpec,
    *,
    model: ModelArchitecture | None = None,
    hardware: HardwareProfile | None = None,
) -> Projection:
    hardware = hardware or switched_chip()
    chips = plan.devices // hardware.devices_per_chip
    stack = ANY_ENGINE.model_copy(update={"step_s": 0.0})
    return project(plan, load, model or dense_model(), cluster(hardware, chips), hardware, stack=stack)


def kv_bytes(model: ModelArchitecture, tokens: float, tp: float = 1.0) -> float:
    one = np.ones(1)
    stage = stages(model, one, one, one, 0 * one).first
    return float(kv_bytes_per_request(model, tp * one, np.array(["bf16"]), stage, tokens)[0])


def test_llama_70b_keeps_320_kib_a_token() -> None:
    model = architecture("llama-3.1-70b")
    assert kv_bytes(model, 1) == 2 * 8 * 128 * 2 * 80
    assert kv_bytes(model, 2048, tp=8) / GIB == pytest.approx(0.0781, abs=1e-4)


def test_sliding_layers_keep_their_window_only() -> None:
    # gpt-oss: 18 of 36 layers see 128 tokens
    assert kv_bytes(architecture("gpt-oss-120b"), 2048) / GIB == pytest.approx(0.0747, abs=1e-4)


def test_tp_beyond_the_kv_heads_replicates_the_cache() -> None:
    model = dense_model(kv_heads=4)
    per_rank = [float(kv_bytes_per_token(model, np.array([tp]), np.array(["bf16"]))[0]) for tp in (1.0, 4.0, 8.0)]
    assert per_rank == [4 * 256, 256, 256]


def test_latents_are_kept_once_and_by_every_rank() -> None:
    # the 61 layers of DeepSeek-V3 keep 512 + 64 elements a token: 2048 tokens in 8 bit are 0.0670 GiB
    model = latent_model().model_copy(update={"layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64})
    one = np.ones(1)
    stage = stages(model, one, one, one, 0 * one).first
    for tp in (1.0, 8.0):
        held = kv_bytes_per_request(model, tp * one, np.array(["fp8"]), stage, 2048)
        assert float(held[0]) / GIB == pytest.approx(0.0670, abs=1e-4)


def test_llama_70b_weights_in_bf16_are_two_bytes_a_parameter() -> None:
    model, hardware = architecture("llama-3.1-70b"), chip("h100")
    found = projected(engine(tp=8), serving(8), model=model, hardware=hardware).memory
    assert found is not None
    assert found.weights_bytes * 8 == pytest.approx(2 * model.parameters, rel=1e-3)
    assert 2 * model.parameters == pytest.approx(141.1e9, rel=1e-3)


def test_narrow_weights_leave_the_vocabulary_wide() -> None:
    model = dense_model()
    found = projected(engine(weight_dtype="int8"), serving(1)).memory
    assert found is not None
    wide = 2 * model.embedding_parameters + model.norm_parameters
    assert found.weights_bytes == pytest.approx(model.parameters - wide + 2 * wide)


def test_lone_request_is_bound_by_reading_weights_and_cache() -> None:
    model = dense_model()
    found = projected(engine(), serving(1, input_len=1000, output_len=100))
    gemm_weights = model.parameters - model.embedding_parameters - model.norm_parameters
    cache = 1050 * 2 * 4 * 64 * 2 * model.layers
    bound_s = (2 * gemm_weights + cache) / 1e12
    assert found.tpot_s is not None
    assert bound_s < found.tpot_s < 1.1 * bound_s


def test_tensor_parallelism_speeds_llama_70b_decoding_at_least_fourfold() -> None:
    model, hardware = architecture("llama-3.1-70b"), chip("h100")
    one, eight = (projected(engine(tp=tp), serving(1), model=model, hardware=hardware).step_time_s for tp in (1, 8))
    assert one > 4 * eight


def test_engine_that_cannot_hold_one_request_has_no_latency_and_no_throughput() -> None:
    # 140 GB of weights on 80 GB: nothing is served, so no latency is a number
    found = projected(engine(), serving(1), model=architecture("llama-3.1-70b"), hardware=chip("h100"))
    assert found.fit == "too_large"
    assert found.max_concurrency == 0
    figures = ("ttft_s", "tpot_s", "request_latency_s", "decode_tokens_per_s_per_chip", "total_tokens_per_s_per_chip")
    assert [getattr(found, figure) for figure in figures] == [None] * 5


def test_weights_without_units_are_stored_narrow_and_multiplied_wide() -> None:
    hardware, model = chip("h100"), architecture("llama-3.1-8b")
    wide, narrow = (
        projected(engine(weight_dtype=dtype), serving(1), model=model, hardware=hardware) for dtype in ("bf16", "fp4")
    )
    assert wide.memory is not None
    assert narrow.memory is not None
    assert narrow.memory.weights_bytes < 0.5 * wide.memory.weights_bytes
    assert narrow.step_time_s < 0.6 * wide.step_time_s  # a lone request reads weights
    said = "has no fp4 units: weights are stored and read in fp4, and multiplied in the compute dtype"
    assert any(said in text for text in narrow.assumptions)
    # a prefill of 32k tokens multiplies: no faster than in 16 bit, not at the rate of fp8
    prompts = [
        projected(
            engine(weight_dtype=dtype, chunked_prefill_tokens=0),
            serving(1, input_len=32768),
            model=model,
            hardware=hardware,
        ).ttft_s
        for dtype in ("bf16", "fp4", "fp8")
    ]
    assert prompts[1] == pytest.approx(prompts[0], rel=0.02)
    assert prompts[1] is not None
    assert prompts[2] is not None
    assert prompts[2] < 0.85 * prompts[1]


def test_mixed_slot_holds_up_every_stage_of_a_pipeline() -> None:
    # the cycle lasts pp t_mixed where one slot carries a chunk, so prompts cost a pipeline more than its share of work
    model, load = dense_model(), serving(64, input_len=4096)
    piped = projected(engine(pp=4, chunked_prefill_tokens=4096), load, model=model)
    held_up_s = piped.breakdown.bubble_s
    assert held_up_s is not None
    assert held_up_s > 0.1 * piped.step_time_s
    alone = projected(engine(chunked_prefill_tokens=4096), load, model=model)
    assert alone.breakdown.bubble_s == 0


def test_lone_request_waits_for_its_own_prefill_only() -> None:
    model = dense_model()
    found = projected(engine(chunked_prefill_tokens=0), serving(1, input_len=4096), hardware=switched_chip(kind="tpu"))
    weights = model.parameters - 2 * model.embedding_parameters - model.norm_parameters
    flop = 2 * weights * 4096 + 4 * 4096 * 4097 / 2 * 1024 * model.layers
    assert found.ttft_s is not None
    assert found.ttft_s - ANY_ENGINE.request_s == pytest.approx(flop / 100e12, rel=0.25)
    assert found.ttft_s - ANY_ENGINE.request_s > flop / 100e12


def test_prefill_of_others_slows_decoding() -> None:
    alone, crowded = (projected(engine(), serving(c, input_len=4096)).tpot_s for c in (1, 32))
    assert alone is not None
    assert crowded is not None
    assert crowded > alone


def test_latency_adds_up_and_little_holds() -> None:
    found = projected(engine(dp=2), serving(16, output_len=256))
    assert found.ttft_s is not None
    assert found.tpot_s is not None
    assert found.request_latency_s == pytest.approx(found.ttft_s + 255 * found.tpot_s)
    assert found.decode_tokens_per_s_per_chip == pytest.approx(16 * 256 / found.request_latency_s / 2)
    assert found.total_tokens_per_s_per_chip == pytest.approx(16 * (1024 + 256) / found.request_latency_s / 2)


def test_requests_beyond_max_num_seqs_queue() -> None:
    held, queued = (projected(engine(max_num_seqs=n), serving(64)) for n in (64, 8))
    assert held.ttft_s is not None
    assert queued.ttft_s is not None
    assert held.tpot_s is not None
    assert queued.tpot_s is not None
    assert queued.ttft_s > 4 * held.ttft_s
    assert queued.tpot_s < held.tpot_s


def test_cache_that_is_full_limits_what_runs() -> None:
    small = switched_chip(hbm_bytes=8e9)
    found = projected(engine(max_num_seqs=4096), serving(4096, input_len=8192), hardware=small)
    assert found.max_concurrency is not None
    assert found.memory is not None
    assert found.max_concurrency < 4096
    assert found.memory.fit == "fits"


def test_model_that_does_not_fit_is_too_large() -> None:
    found = projected(engine(), serving(1), model=architecture("llama-3.1-70b"))
    assert found.fit == "too_large"
    assert found.rejections[0].rule == "memory"
    assert found.max_concurrency == 0


def test_cuda_graphs_spare_the_launches_of_decode_steps() -> None:
    hardware = chip("h100")
    graphs, eager = (
        projected(engine(tp=8, cuda_graphs=on), serving(1), model=architecture("llama-3.1-8b"), hardware=hardware)
        for on in (True, False)
    )
    assert eager.step_time_s > graphs.step_time_s
    assert eager.breakdown.idle_s > graphs.breakdown.idle_s


def test_attention_dp_splits_the_cache_that_tp_would_replicate() -> None:
    model = dense_model(kv_heads=1)
    shared = projected(engine(tp=8), serving(64), model=model).max_concurrency
    split = projected(engine(dp=8, attention_dp=8), serving(64), model=model).max_concurrency
    assert shared is not None
    assert split is not None
    assert split > 6 * shared


def test_experts_are_sharded_once_whatever_the_axes() -> None:
    model = moe_model()
    by_tp, by_ep = (projected(engine(tp=8, **axes), serving(8), model=model).memory for axes in ({"etp": 8}, {"ep": 8}))
    assert by_tp is not None
    assert by_ep is not None
    assert by_tp.weights_bytes == pytest.approx(by_ep.weights_bytes)


def test_few_tokens_touch_few_experts() -> None:
    model = moe_model(experts=64)
    one, many = (projected(engine(), serving(c), model=model).tpot_s for c in (1, 64))
    assert one is not None
    assert many is not None
    assert many > 3 * one


def test_pipeline_of_a_lone_request_is_mostly_empty() -> None:
    found = projected(engine(pp=4), serving(1)).breakdown
    assert found.bubble_s == pytest.approx(3 / 4 * found.total_s, rel=0.05)


def test_time_outside_the_engine_takes_no_seat() -> None:
    # HTTP and tokeniser last longer than a short answer: meanwhile others have the only seat
    load, plan = serving(8, input_len=16, output_len=2), engine(max_num_seqs=1)
    alone, eight = (projected(plan, load.model_copy(update={"concurrency": n})) for n in (1, 8))
    assert alone.request_latency_s is not None
    assert eight.request_latency_s is not None
    seat_s = alone.request_latency_s - ANY_ENGINE.request_s
    assert eight.request_latency_s == pytest.approx(max(8 * seat_s, alone.request_latency_s), rel=0.02)
    rate = load.model_copy(update={"concurrency": None, "request_rate_per_s": 1e4, "arrivals": "deterministic"})
    assert projected(plan, rate).rejections[0].limit == pytest.approx(1 / seat_s, rel=0.02)
