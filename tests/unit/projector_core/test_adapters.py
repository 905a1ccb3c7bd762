"""Steps that train low-rank adapters alone: what freezing the weights takes off, and what the adapters add."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, ideal, latent_model, moe_model, switched_chip, training

from projector.cost.memory import stage_parameters
from projector.cost.stages import stages
from projector.errors import InvalidDescription
from projector.graph.operator import Operator
from projector.graph.training_graph import training_graph
from projector.model_flop import model_flop_per_token
from projector.project import project, project_many
from projector.specs.architecture import ModelArchitecture
from projector.specs.fine_tuning import LINEAR_TARGETS, Adapter
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import CURRENT

CHIP = switched_chip()
ONE_DEVICE = ParallelismPlan(micro_batch=4, grad_accum=1)


def graph_of(model: ModelArchitecture, adapter: Adapter | None, plan: ParallelismPlan = ONE_DEVICE):
    batch = PlanBatch.from_plans([plan])
    return training_graph(batch, model, 2048, batch.compute_dtype, CURRENT, adapter)


def named(operators: tuple[Operator, ...], run: str) -> dict[str, Operator]:
    return {operator.name: operator for operator in operators if operator.run == run}


def trained_parameters(model: ModelArchitecture, adapter: Adapter) -> float:
    graph, one = graph_of(model, adapter), np.ones(1)
    trained = [operator for operator in graph.forward if operator.frozen_bytes is None]
    dense, expert = stage_parameters(trained, stages(model, one, one, one, 0 * one).whole, 0 * one)
    return float((dense + expert)[0])


def projected(adapter: Adapter | None, plan: ParallelismPlan = ONE_DEVICE, hardware: HardwareProfile = CHIP, **model):
    work = training(plan.dp * plan.micro_batch * plan.grad_accum).model_copy(update={"adapter": adapter})
    chips = plan.devices // hardware.devices_per_chip
    return project(plan, work, dense_model(**model), cluster(hardware, chips), hardware)


def test_trained_parameters_are_rank_times_both_sides_of_every_projection():
    model = dense_model()
    hidden, kv, width, rank = 1024, 256, 4096, 16
    attention = (hidden + hidden) * 2 + (hidden + kv) * 2
    assert trained_parameters(model, Adapter(rank=rank)) == rank * 8 * (attention + 3 * (hidden + width))
    queries = Adapter(rank=rank, targets=("query", "value"))
    assert trained_parameters(model, queries) == rank * 8 * (2 * hidden + hidden + kv)
    # one A for query, key and value, one for gate and up
    joint = rank * 8 * ((hidden + hidden + 2 * kv) + 2 * hidden + (hidden + 2 * width) + (width + hidden))
    assert trained_parameters(model, Adapter(rank=rank, joint=True)) == joint


def test_routed_experts_have_adapters_only_when_they_are_named():
    model, rank = moe_model(), 4
    of_experts = trained_parameters(model, Adapter(rank=rank, targets=("experts",)))
    assert of_experts == rank * 7 * 16 * 3 * (1024 + 512)
    both = Adapter(rank=rank, targets=("output", "experts"))
    assert trained_parameters(model, both) == of_experts + rank * 8 * 2 * 1024


def test_a_frozen_product_runs_once_in_the_backward_pass_and_the_embedding_never():
    graph = graph_of(dense_model(), Adapter(rank=8))
    ahead, back = named(graph.operators, "forward"), named(graph.operators, "backward")
    for name in ("qkv", "out_proj", "mlp_up", "mlp_down", "head"):
        assert back[name].count == ahead[name].count
    for gradient in ("input", "weight"):
        assert back[f"qkv_query_a_{gradient}_gradient"].count == ahead["qkv_query_a"].count
    assert "embedding" not in back


def test_without_adapters_beside_it_a_frozen_product_keeps_no_input():
    none = named(graph_of(dense_model(), Adapter(rank=8, targets=("query",))).forward, "forward")
    hidden_state = 4 * 2048 * 1024 * 2
    assert none["qkv"].saved_bytes == hidden_state
    assert none["mlp_up"].saved_bytes == none["mlp_down"].saved_bytes == 0
    # the output of fused attention is kept for its own backward pass
    assert none["out_proj"].saved_bytes == hidden_state


def test_a_step_is_up_to_a_third_shorter_and_never_slower_than_its_flop_allow():
    big = {"hidden_size": 8192, "heads": 64, "kv_heads": 64, "head_dim": 128, "intermediate_size": 28672, "layers": 4}
    full, adapters = projected(None, **big), projected(Adapter(rank=8), **big)
    assert 1.35 < full.step_time_s / adapters.step_time_s < 1.5
    assert adapters.step_time_s > 4 * 2048 * model_flop_per_token(dense_model(**big), 2048, trained_frac=0.0) / 100e12


def test_frozen_weights_take_their_stored_bytes_and_no_state():
    matrices = dense_model().parameters - 2 * dense_model().embedding_parameters - dense_model().norm_parameters
    ends = 2 * (2 * dense_model().embedding_parameters + dense_model().norm_parameters)
    adapter = Adapter(rank=16)
    own = trained_parameters(dense_model(), adapter)
    for dtype, stored in (("bf16", 2.0), ("fp8", 1.0), ("fp4", 0.5625)):
        memory = projected(adapter.model_copy(update={"frozen_dtype": dtype})).memory
        assert memory.weights_bytes == pytest.approx(ends + stored * matrices + 2 * own)
        assert memory.gradients_bytes == pytest.approx(4 * own)
        assert memory.optimizer_bytes == pytest.approx(12 * own)


def test_narrow_frozen_weights_are_widened_before_every_product():
    graph = graph_of(
        dense_model(), Adapter(rank=8, frozen_dtype="fp4"), ONE_DEVICE.model_copy(update={"recompute": "full"})
    )
    for run in ("forward", "recompute", "backward"):
        widened = named(graph.operators, run)["mlp_down_widen"]
        assert widened.moved_bytes == 4096 * 1024 * (0.5625 + 2)
        assert widened.count == 1
    chip = switched_chip(calibration=ideal(), peak_flop_per_s=1000e12)
    plain, quantised = (projected(Adapter(rank=8, frozen_dtype=dtype), hardware=chip) for dtype in ("bf16", "fp4"))
    assert quantised.step_time_s > plain.step_time_s
    assert quantised.memory.weights_bytes < plain.memory.weights_bytes


def test_data_parallelism_reduces_gradients_of_adapters_alone():
    plan = ParallelismPlan(dp=8, overlap_grad_reduce=False)
    full, adapters = projected(None, plan), projected(Adapter(rank=8), plan)
    own = trained_parameters(dense_model(), Adapter(rank=8))
    wire = {one.axis: one.total_s for one in full.breakdown.by_axis}["dp"]
    small = {one.axis: one.total_s for one in adapters.breakdown.by_axis}["dp"]
    assert small < 3 * wire * own / dense_model().parameters + 1e-4


def test_full_sharding_gathers_frozen_weights_as_they_are_stored_and_scatters_no_gradient_of_them():
    plan = ParallelismPlan(dp=8, fsdp=8, zero_stage=3)

    def traffic(adapter: Adapter | None) -> dict[tuple[str, str], float]:
        batch = PlanBatch.from_plans([plan])
        graph = training_graph(batch, dense_model(), 2048, batch.compute_dtype, CURRENT, adapter)
        found: dict[tuple[str, str], float] = {}
        for operator in graph.operators:
            if operator.collective is not None and operator.collective.axis == "fsdp":
                key = (operator.run, operator.collective.kind)
                found[key] = found.get(key, 0.0) + float(operator.collective.payload_bytes[0])
        return found

    full, bf16, fp4 = traffic(None), traffic(Adapter(rank=8)), traffic(Adapter(rank=8, frozen_dtype="fp4"))
    assert bf16["forward", "all_gather"] == pytest.approx(full["forward", "all_gather"], rel=0.02)
    assert fp4["forward", "all_gather"] < bf16["forward", "all_gather"]
    assert bf16["backward", "reduce_scatter"] < 0.02 * full["backward", "reduce_scatter"]


def test_the_parts_of_a_step_still_sum_to_it():
    plan = ParallelismPlan(dp=2, tp=2, sp=True, pp=2, grad_accum=4, zero_stage=1, recompute="selective")
    breakdown = projected(Adapter(rank=16), plan).breakdown
    parts = breakdown.compute_s + breakdown.exposed_communication_s + breakdown.idle_s
    assert parts == pytest.approx(breakdown.total_s)


def test_projections_a_model_lacks_are_refused():
    ungated = dense_model(gated_mlp=False)
    for model, targets in ((ungated, ("gate",)), (dense_model(), ("experts",)), (latent_model(), ("query",))):
        work = training(4).model_copy(update={"adapter": Adapter(rank=8, targets=targets)})
        with pytest.raises(InvalidDescription):
            project(ONE_DEVICE, work, model, cluster(CHIP, 1), CHIP)
    with pytest.raises(ValueError, match="more than once"):
        Adapter(rank=8, targets=("query", "query"))


def test_latent_attention_has_adapters_on_all_its_projections():
    graph = graph_of(latent_model(), Adapter(rank=8, targets=LINEAR_TARGETS))
    adapters = {operator.name for operator in graph.forward if operator.name.endswith("_a")}
    assert {"latent_down_query_a", "latent_down_key_a", "query_up_query_a", "key_value_up_value_a"} <= adapters


def test_one_plan_and_many_agree():
    plans = [ParallelismPlan(micro_batch=4), ParallelismPlan(micro_batch=2, grad_accum=2, recompute="full")]
    work = training(4).model_copy(update={"adapter": Adapter(rank=8, frozen_dtype="fp8")})
    many = project_many(PlanBatch.from_plans(plans), work, dense_model(), cluster(CHIP, 1), CHIP)
    for index, plan in enumerate(plans):
        assert many[index] == project(plan, work, dense_model(), cluster(CHIP, 1), CHIP)
