"""Memory of a training step against published formulas."""

from typing import Literal

import numpy as np
import pytest
from projector_examples import cluster, dense_model, gpt, moe_model, switched_chip, training

from projector.breakdown import MemoryBreakdown
from projector.cost.memory import MEMORY_SPREAD, MemoryColumns, chance_to_fit
from projector.cost.stages import Stage, stages
from projector.cost.training_memory import activation_bytes
from projector.graph.training_graph import TrainingGraph, training_graph
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import ChipKind, Figure, HardwareProfile
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


def memory(
    plan: ParallelismPlan,
    model: ModelArchitecture,
    global_batch: int,
    software: Software = CURRENT,
    *,
    hardware: HardwareProfile | None = None,
) -> MemoryBreakdown:
    hardware = hardware or switched_chip()
    machine = cluster(hardware, plan.devices)
    found = project(plan, training(global_batch), model, machine, hardware, software=software).memory
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
    found = memory(ParallelismPlan(dp=8, fsdp=8, zero_stage=3, grad_accum=2), model, 16)
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
    # two tables of 32000 x 1024 in 16 bit; a compiler gathers single arrays, and the tables when nothing else is
    plan, model = ParallelismPlan(dp=8, fsdp=8, zero_stage=3), dense_model()
    buffers = {kind: memory(plan, model, 8, hardware=switched_chip(kind=kind)).buffers_bytes for kind in KINDS}
    layer = model.attention_parameters + model.dense_mlp_parameters + 2 * model.hidden_size
    array = model.intermediate_size * model.hidden_size
    tables = 2 * model.embedding_parameters + model.hidden_size
    # and the transient activation, 2 x 4096 features a token, stands where the loss was
    transient = 2 * S * 2 * model.intermediate_size
    gathered = 2 * (3 * layer + tables) - 2 * max(3 * array, tables)
    assert buffers["gpu"] - buffers["tpu"] == pytest.approx(gathered + transient)


def test_capacity_is_what_the_runtime_counts_where_that_is_known() -> None:
    plain = switched_chip()
    counted = Figure(value=106e9, source="log", retrieved="2026-01-01")
    known = plain.model_copy(update={"reported_hbm_bytes": counted})
    by_chip = [memory(ParallelismPlan(), dense_model(), 1, hardware=chip).capacity_bytes for chip in (plain, known)]
    assert by_chip == [100e9, 106e9]


def test_sharded_gradients_of_one_micro_batch_take_the_room_of_freed_activations() -> None:
    model = gpt(LAYERS, H, A)
    plan = ParallelismPlan(dp=8, fsdp=8, zero_stage=3)
    once = memory(plan, model, 8)
    twice = memory(plan.model_copy(update={"grad_accum": 2}), model, 16)
    assert twice.gradients_bytes == pytest.approx(4 * model.parameters / 8)
    assert once.gradients_bytes == 0.0
    assert once.activations_bytes == twice.activations_bytes


def test_a_pipeline_of_pytorch_keeps_stages_gathered_and_gradients_whole() -> None:
    model = dense_model()
    plan = ParallelismPlan(dp=4, fsdp=4, zero_stage=3, pp=2, grad_accum=4)
    found = memory(plan, model, 16, Software(gathers_stages=True))
    layered = memory(plan, model, 16)
    assert found.gradients_bytes == pytest.approx(4 * layered.gradients_bytes)
    assert found.buffers_bytes > layered.buffers_bytes
    assert found.weights_bytes == layered.weights_bytes


def test_zero_3_shards_over_the_context_group_where_nothing_else_is_left() -> None:
    found = memory(ParallelismPlan(zero_stage=3, cp=8, grad_accum=2), dense_model(), 2)
    assert found.weights_bytes == pytest.approx(4 * dense_model().parameters / 8)


@pytest.mark.parametrize("each", [2, 4, 6])
def test_whole_gradients_take_what_the_software_keeps(each: Literal[2, 4, 6]) -> None:
    model = dense_model()
    assert memory(ParallelismPlan(), model, 1, Software(gradient_bytes=each)).gradients_bytes == each * model.parameters


def test_a_bucket_is_a_buffer_beside_the_gradients() -> None:
    plain, bucket = (memory(ParallelismPlan(), dense_model(), 1, Software(bucket_bytes=size)) for size in (0.0, 2e9))
    assert bucket.buffers_bytes - plain.buffers_bytes == pytest.approx(2e9)


def test_offloaded_inputs_leave_two_layers_on_the_device() -> None:
    plan = ParallelismPlan(recompute="full")
    model = gpt(LAYERS, H, A)
    device, host = (memory(plan, model, 1, Software(offloads_inputs=off)).activations_bytes for off in (False, True))
    assert device - host == pytest.approx((LAYERS - 2) * 2 * S * H)


def test_the_loss_holds_what_the_software_says_beside_the_product() -> None:
    plan, model = ParallelismPlan(), dense_model()
    small, large = (memory(plan, model, 1, Software(loss_bytes=size)).activations_bytes for size in (2.0, 12.0))
    assert large - small == pytest.approx(10 * S * model.vocab_size)


def test_every_other_product_is_half_of_them() -> None:
    model = dense_model()
    h, q, kv, f = 1024, 1024, 256, 4096
    # input; half of Q, K, V, gate, up and the two results of width h; attention output and a log-sum a head
    token = 2 * h + (q + 2 * kv + 2 * f + 2 * h) + 2 * q + 4 * 16
    plan = ParallelismPlan(recompute="selective")
    assert layer_activations(plan, model, Software(selective_products=True)) == pytest.approx(S * token)


def test_repeating_whole_moe_blocks_keeps_no_activation_of_experts() -> None:
    model = moe_model()
    usual, block = (
        layer_activations(ParallelismPlan(recompute="selective", recompute_modules=modules), model, CURRENT)
        for modules in ("", "layernorm+moe")
    )
    full = layer_activations(ParallelismPlan(recompute="full"), model, CURRENT)
    assert full < block < usual


def test_no_more_is_gathered_than_the_software_allows() -> None:
    plan, model = ParallelismPlan(dp=8, fsdp=8, zero_stage=3), dense_model()
    free, capped = (memory(plan, model, 8, Software(live_parameters=limit)).buffers_bytes for limit in (None, 1e6))
    tables = 2 * model.embedding_parameters + model.hidden_size
    layer = model.attention_parameters + model.dense_mlp_parameters + 2 * model.hidden_size
    assert free - capped == pytest.approx(2 * (3 * layer + tables) - 2 * 3 * 1e6)


def test_a_plan_close_to_the_capacity_may_not_fit() -> None:
    def chance(filled: float, kind: ChipKind = "gpu") -> float:
        zero, hardware = np.zeros(1), switched_chip(kind=kind)
        held = MemoryColumns(np.array([filled * 100e9]), zero, zero, zero, zero, zero, zero, 100e9)
        return float(chance_to_fit(held, hardware)[0])

    assert chance(0.5) == pytest.approx(1.0, abs=1e-6)
    assert chance(1.0) == pytest.approx(0.5)
    # one standard deviation below the capacity
    assert chance(np.exp(-MEMORY_SPREAD["gpu"])) == pytest.approx(1 / (1 + np.exp(-np.pi / np.sqrt(3))))
    assert chance(1.01) == 0.0
    # a compiler says beforehand
    assert chance(0.99, "tpu") == 1.0
