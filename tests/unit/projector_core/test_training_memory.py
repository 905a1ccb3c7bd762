"""Memory of a training step against published formulas."""

from typing import Literal

import numpy as np
import pytest
from projector_examples import cluster, dense_model, gpt, moe_model, switched_chip, training

from projector.breakdown import MemoryBreakdown
from projector.cost.stages import Stage, stages
from projector.cost.training_memory import activation_bytes
from projector.graph.training_graph import TrainingGraph, training_graph
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import CURRENT, MEGATRON_2022, Software

KINDS: tuple[Literal["gpu", "tpu"], ...] = ("gpu", "tpu")
S, B, H, A, LAYERS = 2048, 4, 6144, 64, 16


def layer_activations(plan: ParallelismPlan, model: ModelArchitecture, software: Software) -> float:
    """Bytes one layer keeps, without the ends of the model: the difference of two depths."""

    def held(layers: int) -> float:
        batch = PlanBatch.from_plans([plan])
        deep = model.model_copy(update={"layers": layers})
        graph = training_graph(batch, deep, S, batch.compute_dtype, software)
        return float(activation_bytes(graph, first_stage(graph))[0])

    return held(LAYERS + 1) - held(LAYERS)


def first_stage(graph: TrainingGraph) -> Stage:
    one = np.ones(1)
    return stages(graph.scope.model, one, one, one, 0 * one).first


@pytest.mark.parametrize("t", [1, 2, 8])
def test_layer_keeps_what_korthikanti_counts_without_sequence_parallelism(t: int) -> None:
    # s b h (10 + 24 / t + 5 a s / (h t))
    plan = ParallelismPlan(tp=t, micro_batch=B)
    expected = S * B * H * (10 + 24 / t + 5 * A * S / (H * t))
    assert layer_activations(plan, gpt(LAYERS, H, A), MEGATRON_2022) == pytest.approx(expected)


@pytest.mark.parametrize("t", [2, 8])
def test_sequence_parallelism_divides_all_of_it(t: int) -> None:
    # s b h (34 + 5 a s / h) / t
    plan = ParallelismPlan(tp=t, sp=True, micro_batch=B)
    expected = S * B * H * (34 + 5 * A * S / H) / t
    assert layer_activations(plan, gpt(LAYERS, H, A), MEGATRON_2022) == pytest.approx(expected)


def test_selective_recompute_drops_the_scores() -> None:
    plan = ParallelismPlan(tp=8, sp=True, micro_batch=B, recompute="selective")
    assert layer_activations(plan, gpt(LAYERS, H, A), MEGATRON_2022) == pytest.approx(S * B * H * 34 / 8)


def test_full_recompute_keeps_two_bytes_a_feature() -> None:
    plan = ParallelismPlan(tp=8, micro_batch=B, recompute="full")
    assert layer_activations(plan, gpt(LAYERS, H, A), MEGATRON_2022) == pytest.approx(2 * S * B * H)


def test_fused_attention_keeps_no_scores_and_grouped_keys_are_smaller() -> None:
    model = dense_model()
    h, q, kv, f = 1024, 1024, 256, 4096
    # norm inputs, QKV and MLP inputs 4 x 2h; Q, K, V; one log-sum a head; output-projection input; gate, up and product
    token = 8 * h + 2 * (q + 2 * kv) + 4 * 16 + 2 * q + 6 * f
    assert layer_activations(ParallelismPlan(), model, CURRENT) == pytest.approx(S * token)


def test_context_parallelism_divides_activations() -> None:
    whole, split = (layer_activations(ParallelismPlan(cp=cp, micro_batch=2), dense_model(), CURRENT) for cp in (1, 4))
    assert split == pytest.approx(whole / 4)


def memory(plan: ParallelismPlan, model: ModelArchitecture, global_batch: int) -> MemoryBreakdown:
    hardware = switched_chip()
    found = project(plan, training(global_batch), model, cluster(hardware, plan.devices), hardware).memory
    assert found is not None
    return found


def test_mixed_precision_adam_takes_18_bytes_a_parameter() -> None:
    model = dense_model()
    found = memory(ParallelismPlan(), model, 1)
    assert found.weights_bytes == 2 * model.parameters
    assert found.gradients_bytes == 4 * model.parameters
    assert found.optimizer_bytes == 12 * model.parameters


def test_fully_sharded_state_is_16_bytes_over_the_group() -> None:
    model = dense_model()
    found = memory(ParallelismPlan(dp=8, fsdp=8, zero_stage=3), model, 8)
    state = found.weights_bytes + found.gradients_bytes + found.optimizer_bytes
    assert state == pytest.approx(16 * model.parameters / 8)


def test_zero_stages_shard_one_thing_more_each() -> None:
    model = dense_model()
    by_stage = [memory(ParallelismPlan(dp=4, zero_stage=stage), model, 4) for stage in (0, 1, 2)]
    assert by_stage[1].optimizer_bytes == pytest.approx(by_stage[0].optimizer_bytes / 4)
    assert by_stage[1].gradients_bytes == by_stage[0].gradients_bytes
    assert by_stage[2].gradients_bytes == pytest.approx(by_stage[0].gradients_bytes / 4)
    assert by_stage[2].weights_bytes == by_stage[0].weights_bytes


def test_experts_are_sharded_over_ep_and_once_only() -> None:
    model = moe_model()
    experts = model.moe_layers * model.experts * model.expert_parameters
    whole = memory(ParallelismPlan(dp=8), model, 8).weights_bytes
    spread = memory(ParallelismPlan(dp=8, ep=8), model, 8).weights_bytes
    assert whole - spread == pytest.approx(2 * experts * 7 / 8)


def test_reserve_is_never_planned_with() -> None:
    found = memory(ParallelismPlan(), dense_model(), 1)
    # 1.5 GB of runtime and 2 % of 100 GB
    assert found.reserve_bytes == pytest.approx(3.5e9)


def test_only_a_gpu_keeps_the_vocabulary_gathered_beside_the_layers() -> None:
    # two tables of 32000 x 1024 in 16 bit; a compiler gathers them when no layer is
    plan, model = ParallelismPlan(dp=8, fsdp=8, zero_stage=3), dense_model()
    buffers = {}
    for kind in KINDS:
        hardware = switched_chip(kind=kind)
        memory = project(plan, training(8), model, cluster(hardware, 8), hardware).memory
        assert memory is not None
        buffers[kind] = memory.buffers_bytes
    layer = model.attention_parameters + model.dense_mlp_parameters + 2 * model.hidden_size
    tables = 2 * model.embedding_parameters + model.hidden_size
    assert buffers["gpu"] - buffers["tpu"] == pytest.approx(min(3 * 2 * layer, 2 * tables))
