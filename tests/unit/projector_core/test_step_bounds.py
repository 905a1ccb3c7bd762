"""Hard physics: no step is shorter than its weights and cache take to read at full bandwidth, or its FLOP at peak."""

from typing import get_args

import numpy as np
import pytest

from projector.catalog import architecture, chip
from projector.cost.device import Device, product_dtypes
from projector.cost.engine import Engine
from projector.cost.serving_memory import WIDE_WEIGHT_BYTES
from projector.cost.stages import Stage
from projector.graph.columns import Column, lookup
from projector.graph.layer import forward
from projector.graph.operator import Operator
from projector.graph.scope import kv_bytes_per_token
from projector.graph.serving_graph import StepWork, serving_scope
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import AllReduce, AllToAll, ExpertDispatch, ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.vendors import attention_backends, has_quick_reduce
from projector.specs.workload import WorkloadSpec

PLANS = 300
CHIPS = ("h100", "b200", "mi355x", "tpu-v6e")
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "deepseek-v3", "gpt-oss-120b", "qwen3-235b-a22b")


def every_lever(hardware: HardwareProfile, *, moe: bool, seed: int) -> PlanBatch:
    """Random engines of eight devices that draw every lever of a step."""
    draw = np.random.default_rng(seed)

    def of(*values: object) -> np.ndarray:  # type: ignore[type-arg]
        return draw.choice(np.array(values), PLANS)

    tp = of(1, 2, 4, 8)
    ranks = 8 // tp
    ep = np.minimum(of(1, 2, 8), 8) if moe else np.ones(PLANS, dtype=np.int64)
    offered = ("bf16", "fp8", "int8", "fp4")
    gpu = hardware.kind == "gpu"
    dispatch = [name for name in get_args(ExpertDispatch) if gpu or name != "deepep"]
    return PlanBatch.from_columns(
        PLANS,
        phase="serving",
        tp=tp,
        dp=ranks,
        attention_dp=ranks,
        ep=ep,
        etp=8 // ep if moe else 1,
        weight_dtype=of(*offered),
        expert_dtype=of("same", *offered),
        kv_cache_dtype=of("bf16", "fp8"),
        cuda_graphs=of(True, False),
        cuda_graph_mode=of("full", "piecewise"),
        fused_kernels=of(True, False),
        attention_backend=of(*attention_backends(hardware)),
        tp_all_reduce=of(*get_args(AllReduce)),
        fuse_all_reduce_norm=of(True, False),
        quick_reduce=of(True, False) if has_quick_reduce(hardware) else False,
        expert_dispatch=of(*dispatch) if moe else "auto",
        expert_all_to_all=of(*get_args(AllToAll)),
        overlap_ep=of(True, False),
        redundant_experts=of(0, 8) if moe else 0,
    )


def engines(model: ModelArchitecture, hardware: HardwareProfile, seed: int) -> Engine:
    batch = every_lever(hardware, moe=model.is_moe, seed=seed)
    math = product_dtypes(batch.weight_dtype, batch.compute_dtype, Device.of(hardware))
    return Engine.of(batch, model, math, ClusterSpec(chip=hardware.id, chips=8), hardware)


def work(decoding: float, context: float, prompt: float = 0.0) -> StepWork:
    one = np.ones(PLANS)
    return StepWork(decoding * one, context * one, one * (prompt > 0), prompt * one, prompt * one, one)


def least_s(engine: Engine, step: StepWork, hardware: HardwareProfile, stage: Stage) -> tuple[Column, Column]:
    """(seconds to read weights and cache, seconds of the products' FLOP at peak) of the plain operators."""
    batch, device = engine.batch, Device.of(hardware)
    scope = serving_scope(batch, engine.degrees, engine.model, engine.math_dtype, step, engine.experts)
    read, seconds = np.zeros(PLANS), np.zeros(PLANS)
    peaks = {
        "linear": lookup(engine.math_dtype, device.linear_peaks()),
        "wide": lookup(batch.compute_dtype, device.wide_peaks()),
    }
    expert_peak = lookup(engine.experts.math, device.linear_peaks())
    for operator in forward(scope, training=False):
        times = stage.places[operator.place] * operator.count
        read = read + times * _weights_bytes(operator, scope.weight_bytes, scope.of_experts().weight_bytes)
        if operator.math != "none":
            flop = operator.flop
            if operator.product is not None:
                flop = 2 * operator.product.rows * operator.product.inner * operator.product.outer
            seconds = seconds + times * flop / (expert_peak if operator.expert else peaks[operator.math])
    each = kv_bytes_per_token(engine.model, engine.degrees.tp, batch.kv_cache_dtype)
    if not engine.model.sorts and not engine.model.windowed_layers and not engine.model.index_topk:
        read = read + stage.places["layer"] * step.decoding * step.context * each
    return read / device.hbm_bytes_per_s, seconds


def _weights_bytes(operator: Operator, weight_bytes: Column, expert_bytes: Column) -> Column | float:
    if operator.parameters is None or operator.kind not in ("gemm", "moe"):
        return 0.0
    if operator.expert:
        assert operator.product is not None
        return operator.product.active * operator.product.inner * operator.product.outer * expert_bytes
    return operator.parameters * (weight_bytes if operator.math == "linear" else WIDE_WEIGHT_BYTES)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("on", CHIPS)
def test_no_step_beats_memory_or_arithmetic(on: str, name: str) -> None:
    model, hardware = architecture(name), chip(on)
    engine = engines(model, hardware, seed=len(on) + 10 * len(name))
    launches = ~engine.batch.cuda_graphs.astype(bool)
    for step in (work(1, 128), work(64, 4096), work(8, 1024, prompt=2048)):
        found_s = engine.slot(step, launches).length_s
        for stage in (engine.stages.middle, engine.stages.last):
            read_s, products_s = least_s(engine, step, hardware, stage)
            assert (found_s > read_s).all()
            assert (found_s > products_s).all()


@pytest.mark.parametrize("on", ["h100", "mi355x", "b200"])
def test_eight_ranks_decode_llama_70b_at_least_four_times_as_fast_as_one(on: str) -> None:
    load = WorkloadSpec(phase="serving", input_len=1024, output_len=1024, concurrency=1)

    def step_s(tp: int) -> float:
        plan = ParallelismPlan(phase="serving", tp=tp)
        return project(plan, load, architecture("llama-3.1-70b"), ClusterSpec(chip=on, chips=tp), chip(on)).step_time_s

    assert step_s(1) > 4 * step_s(8)


def test_keys_of_a_decode_step_stop_shrinking_at_one_head_a_rank() -> None:
    # qwen3-32b: 8 KV heads; 16 ranks hold copies, and read as much as 8
    model, hardware = architecture("llama-3.1-70b"), chip("gb200")
    long, short = (work(64, context) for context in (65536.0, 1024.0))
    attention_s = {}
    for tp in (4, 8, 16):
        batch = PlanBatch.from_columns(PLANS, phase="serving", tp=tp)
        engine = Engine.of(batch, model, batch.weight_dtype, ClusterSpec(chip=hardware.id, chips=tp), hardware)
        eager = np.zeros(PLANS, dtype=np.bool_)
        with_keys, without = (engine.slot(step, eager).compute_s["attention"][0] for step in (long, short))
        attention_s[tp] = with_keys - without
    assert attention_s[4] == pytest.approx(2 * attention_s[8], rel=0.02)
    assert attention_s[16] == pytest.approx(attention_s[8], rel=0.02)


def test_latents_are_read_whole_by_every_rank_and_by_requests_of_attention_ranks_once() -> None:
    model, hardware = architecture("deepseek-v3"), chip("h200")

    def attention_s(tp: int, requests: float) -> float:
        batch = PlanBatch.from_columns(PLANS, phase="serving", tp=tp, weight_dtype="fp8", ep=tp)
        engine = Engine.of(batch, model, batch.weight_dtype, ClusterSpec(chip=hardware.id, chips=tp), hardware)
        eager = np.zeros(PLANS, dtype=np.bool_)
        long, short = (engine.slot(work(requests, context), eager).compute_s["attention"][0] for context in (32768, 0))
        return float(long - short)

    # few heads a rank: bound by reading latents, whatever the number of ranks
    assert attention_s(8, 64) == pytest.approx(attention_s(4, 64), rel=0.1)
    assert attention_s(8, 8) == pytest.approx(attention_s(8, 64) / 8, rel=0.1)
