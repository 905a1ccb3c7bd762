"""Memory of an engine: its share of the HBM, blocks of the KV pool, what limits how many requests run."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, latent_model, serving, switched_chip

from projector.breakdown import MemoryBreakdown, Projection
from projector.catalog import architecture, chip
from projector.cost.serving_memory import kv_bytes_per_request
from projector.cost.stages import stages
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import Dtype, ParallelismPlan
from projector.specs.workload import WorkloadSpec

GIB = 2**30
ONE = np.ones(1)


def engine(**changes: object) -> ParallelismPlan:
    return ParallelismPlan.model_validate({"phase": "serving", "kv_block_tokens": 1} | changes)


def projected(
    plan: ParallelismPlan,
    load: WorkloadSpec,
    *,
    model: ModelArchitecture | None = None,
    hardware: HardwareProfile | None = None,
) -> Projection:
    hardware = hardware or switched_chip()
    chips = plan.devices // hardware.devices_per_chip
    return project(plan, load, model or dense_model(), cluster(hardware, chips), hardware)


def memory(plan: ParallelismPlan, load: WorkloadSpec, **others: HardwareProfile) -> MemoryBreakdown:
    found = projected(plan, load, hardware=others.get("hardware")).memory
    assert found is not None
    return found


def a_request(model: ModelArchitecture, tokens: float, *, dtype: Dtype = "bf16", tp: int = 1, block: int = 1) -> float:
    stage = stages(model, ONE, ONE, ONE, 0 * ONE).first
    return float(kv_bytes_per_request(model, tp * ONE, np.array([dtype]), stage, tokens, float(block))[0])


def test_bytes_of_a_request_are_the_exact_ones() -> None:
    assert a_request(architecture("llama-3-70b"), 2048, tp=8) / GIB == pytest.approx(0.0781, abs=5e-5)
    assert a_request(architecture("deepseek-v3"), 2048, dtype="fp8") / GIB == pytest.approx(0.0670, abs=5e-5)
    assert a_request(architecture("gpt-oss-120b"), 2048) / GIB == pytest.approx(0.0747, abs=5e-5)


def test_heads_are_copied_past_their_count_and_latents_always() -> None:
    grouped, latent = architecture("llama-3-70b"), architecture("deepseek-v3")
    assert [a_request(grouped, 1000, tp=tp) / a_request(grouped, 1000) for tp in (2, 8, 16)] == [1 / 2, 1 / 8, 1 / 8]
    assert [a_request(latent, 1000, tp=tp) / a_request(latent, 1000) for tp in (2, 8, 16)] == [1, 1, 1]


def test_attention_dp_stores_a_latent_once_where_tp_stores_it_on_every_rank() -> None:
    # eight requests in flight: under tp 8 every rank holds all eight, with attention_dp 8 each holds its own
    model, load = latent_model(), serving(8)
    held = {}
    for name, plan in (("tp", engine(tp=8)), ("dp", engine(dp=8, attention_dp=8))):
        found = projected(plan, load, model=model)
        assert found.memory is not None
        held[name] = found.memory.kv_cache_bytes
    assert held["tp"] == pytest.approx(8 * held["dp"])


def test_blocks_waste_half_of_one_a_request_and_layer() -> None:
    model = dense_model()
    each = a_request(model, 1)
    assert a_request(model, 1000, block=16) == pytest.approx(each * (1000 + 7.5))
    assert a_request(model, 1000, block=1) == pytest.approx(each * 1000)
    held = [memory(engine(kv_block_tokens=size), serving(8)).kv_cache_bytes for size in (1, 16, 128, 1024)]
    assert held == sorted(held)
    assert len(set(held)) == 4


def test_window_lies_anywhere_in_its_blocks() -> None:
    # a window of 128 tokens touches 128 + b - 1 tokens of blocks; one that is not full yet starts with a block
    model = dense_model(sliding_window=128, sliding_layers=8)
    each = a_request(model, 1)
    assert a_request(model, 1000, block=16) == pytest.approx(each * (128 + 15))
    assert a_request(model, 100, block=16) == pytest.approx(each * (100 + 7.5))


def test_recurrent_layers_have_no_blocks() -> None:
    model = architecture("nemotron-h-56b")
    states = sum(one.layers * one.recurrence.state_bytes for one in model.by_sort() if one.recurrence is not None)
    cached = sum(one.layers for one in model.by_sort() if one.attention_layers)
    waste = a_request(model, 1000, block=16) - a_request(model, 1000)
    assert waste == pytest.approx(7.5 * (a_request(model, 1000) - states) / 1000)
    assert cached > 0


def test_share_is_what_weights_graphs_working_set_and_pool_have() -> None:
    load = serving(4096, input_len=8192)
    found = memory(engine(max_num_seqs=4096, hbm_frac=0.9), load)
    assert found.kv_pool_bytes is not None
    share = found.weights_bytes + found.graphs_bytes + found.buffers_bytes + found.kv_pool_bytes
    assert share == pytest.approx(0.9 * found.capacity_bytes)
    assert found.reserve_bytes == pytest.approx(0.1 * found.capacity_bytes)


def test_larger_share_holds_more_requests_until_the_runtime_takes_the_rest() -> None:
    load = serving(4096, input_len=8192)
    found = [
        projected(engine(max_num_seqs=4096, hbm_frac=share), load).max_concurrency for share in (0.5, 0.9, 0.985, 0.99)
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert found[2] is not None
    assert found[0] < found[1] < found[2]
    assert found[2] == found[3]  # 1.5 GB of 100 are the runtime's


def test_share_of_a_pool_that_is_not_full_changes_no_latency() -> None:
    found = [projected(engine(hbm_frac=share), serving(4)) for share in (0.5, 0.9)]
    assert found[0].request_latency_s == found[1].request_latency_s
    assert found[0].tpot_s == found[1].tpot_s


@pytest.mark.parametrize("share", [0.9951, 1.0])
def test_share_the_runtime_leaves_no_room_for_does_not_start(share: float) -> None:
    found = projected(engine(hbm_frac=share), serving(4))
    assert found.fit == "too_large"
    assert found.rejections[0].rule == "memory"
    assert found.tpot_s is None
    assert found.memory is not None
    assert found.memory.total_bytes == pytest.approx(share * 100e9 + 0.5e9)


def test_tpu_has_no_runtime_in_its_memory_and_trainium_no_share() -> None:
    assert projected(engine(hbm_frac=1.0), serving(4), hardware=switched_chip(kind="tpu")).fit == "fits"
    hardware = chip("trainium2")
    plan = engine(tp=hardware.devices_per_chip)
    flat = [
        projected(plan.model_copy(update={"hbm_frac": share}), serving(4), hardware=hardware).memory
        for share in (0.5, 1.0)
    ]
    assert flat[0] == flat[1]


@pytest.mark.parametrize(
    ("limit", "plan", "requests"),
    [
        ("load", engine(), 8),
        ("max_num_seqs", engine(max_num_seqs=4), 64),
        ("kv_pool", engine(max_num_seqs=4096), 4096),
        ("max_batched_tokens", engine(max_batched_tokens=33, chunked_prefill_tokens=16), 64),
    ],
)
def test_breakdown_says_what_limits_concurrency(limit: str, plan: ParallelismPlan, requests: int) -> None:
    found = memory(plan, serving(requests, input_len=8192))
    assert found.concurrency_limit == limit
    assert found.fit == "fits"
    assert found.kv_pool_bytes is not None
    assert found.kv_cache_bytes <= found.kv_pool_bytes


def test_requests_past_the_pool_wait() -> None:
    # the pool holds some 1,300 requests of mean length; more of them in flight run no faster and wait
    plan = engine(max_num_seqs=4096)
    full, more = (projected(plan, serving(n, input_len=8192)) for n in (2000, 4000))
    assert full.max_concurrency is not None
    assert full.max_concurrency < 2000
    assert full.ttft_s is not None
    assert more.ttft_s is not None
    assert more.tpot_s == pytest.approx(full.tpot_s, rel=0.02)
    assert more.ttft_s > 1.5 * full.ttft_s
    assert more.decode_tokens_per_s_per_chip == pytest.approx(full.decode_tokens_per_s_per_chip, rel=0.02)


def test_ranks_that_hold_half_a_request_each_hold_none_together() -> None:
    room = memory(engine(), serving(4)).kv_pool_bytes
    assert room is not None
    tokens = int(room / 0.6 / a_request(dense_model(), 1.0))
    found = projected(engine(dp=8, attention_dp=8), serving(8, input_len=tokens, output_len=2))
    assert found.tpot_s is None
    assert found.max_concurrency == 0
    assert found.rejections
    assert found.serving is not None
    assert found.serving.max_sustainable_concurrency == 0
