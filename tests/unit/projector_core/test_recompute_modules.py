"""Selective recompute by module and recompute of some layers only: what each costs in time and frees in memory."""

import pytest
from projector_examples import cluster, dense_model, latent_model, moe_model, switched_chip, training
from pydantic import ValidationError

from projector.breakdown import MemoryBreakdown, Projection
from projector.legality import check
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan

S = 2048
CHIP = switched_chip(hbm_bytes_per_s=1e30)


def projected(model: ModelArchitecture, plan: ParallelismPlan) -> Projection:
    batch = training(plan.dp * plan.micro_batch * plan.grad_accum, S)
    return project(plan, batch, model, cluster(CHIP, plan.devices), CHIP)


def by_module(model: ModelArchitecture, modules: str) -> Projection:
    return projected(model, ParallelismPlan(recompute="selective", recompute_modules=modules))


def memory(found: Projection) -> MemoryBreakdown:
    assert found.memory is not None
    return found.memory


def test_the_core_of_attention_costs_its_own_time_and_frees_its_log_sums() -> None:
    model = dense_model()
    plain, again = projected(model, ParallelismPlan()), by_module(model, "core_attn")
    forward = 2 * (S * (S + 1) / 2) * 2 * model.heads * model.head_dim / 100e12
    assert again.step_time_s - plain.step_time_s == pytest.approx(model.layers * forward)
    freed = 4 * S * model.heads  # a log-sum in fp32 a query and head; those of one layer stand while it is repeated
    logits_hide_it = memory(plain).activations_bytes - memory(again).activations_bytes
    assert logits_hide_it == pytest.approx(model.layers * freed)


def test_the_dense_mlp_costs_its_products_and_frees_all_but_its_input() -> None:
    model = dense_model()
    plain, again = projected(model, ParallelismPlan()), by_module(model, "mlp")
    products = 2 * S * 3 * model.hidden_size * model.intermediate_size / 100e12
    assert again.step_time_s - plain.step_time_s == pytest.approx(model.layers * products)
    freed = 3 * 2 * S * model.intermediate_size  # gate, up and the input of down, 2 bytes each
    assert memory(plain).activations_bytes - memory(again).activations_bytes == pytest.approx(model.layers * freed)


def test_norms_free_what_the_products_behind_them_read_and_cost_no_product() -> None:
    model = dense_model()
    plain, again = projected(model, ParallelismPlan()), by_module(model, "layernorm")
    assert again.step_time_s == pytest.approx(plain.step_time_s)  # free on a chip with boundless memory bandwidth
    freed = 2 * 2 * S * model.hidden_size
    assert memory(plain).activations_bytes - memory(again).activations_bytes == pytest.approx(model.layers * freed)


def test_up_projections_of_latents_free_queries_keys_and_values() -> None:
    model = latent_model()
    plain, again = projected(model, ParallelismPlan()), by_module(model, "mla_up_proj")
    widths = model.heads * (48 + 48 + 32)
    freed = memory(plain).activations_bytes - memory(again).activations_bytes
    assert freed == pytest.approx(model.layers * 2 * S * widths)
    assert again.step_time_s > plain.step_time_s


def test_modules_add_up_and_a_block_contains_its_parts() -> None:
    model = moe_model()
    activation, block, both = (by_module(model, modules) for modules in ("moe_act", "moe", "moe+moe_act"))
    assert activation.step_time_s < block.step_time_s == both.step_time_s
    assert memory(activation).total_bytes > memory(block).total_bytes == memory(both).total_bytes
    shared = by_module(model, "shared_experts")
    assert shared.step_time_s < block.step_time_s


def test_a_block_sends_its_tokens_to_the_experts_again() -> None:
    plan = ParallelismPlan(dp=4, ep=4, recompute="selective", recompute_modules="moe")
    again = {axis.axis: axis.total_s for axis in projected(moe_model(), plan).breakdown.by_axis}["ep"]
    once = {axis.axis: axis.total_s for axis in projected(moe_model(), ParallelismPlan(dp=4, ep=4)).breakdown.by_axis}
    assert again == pytest.approx(once["ep"] * 3 / 2)


def test_some_layers_of_a_stage_cost_and_free_their_share() -> None:
    model = dense_model()
    none, some, full = (
        projected(model, ParallelismPlan(recompute=mode, recompute_layers=layers))
        for mode, layers in (("none", 0), ("full", 2), ("full", 0))
    )
    share = 2 / model.layers
    assert some.step_time_s - none.step_time_s == pytest.approx(share * (full.step_time_s - none.step_time_s))
    assert memory(none).total_bytes > memory(some).total_bytes > memory(full).total_bytes


def test_a_stage_shorter_than_the_number_is_recomputed_whole() -> None:
    model = dense_model(layers=9)
    most, all_layers = (
        projected(model, ParallelismPlan(pp=2, grad_accum=4, recompute="full", recompute_layers=layers))
        for layers in (5, 0)
    )
    assert most.step_time_s == all_layers.step_time_s


@pytest.mark.parametrize("text", ["attention", "mlp+layernorm", "mlp+mlp", "mlp+", "+"])
def test_modules_are_known_sorted_and_named_once(text: str) -> None:
    with pytest.raises(ValidationError, match="recompute_modules"):
        ParallelismPlan(recompute="selective", recompute_modules=text)


@pytest.mark.parametrize(
    ("plan", "rule"),
    [
        (ParallelismPlan(recompute="full", recompute_modules="mlp"), "modules_need_selective"),
        (ParallelismPlan(recompute_layers=2), "layers_need_recompute"),
        (ParallelismPlan(recompute="full", recompute_layers=9), "recompute_layers"),
        (ParallelismPlan(recompute="selective", recompute_modules="mla_up_proj"), "modules_exist"),
        (ParallelismPlan(recompute="selective", recompute_modules="layernorm+moe_act"), "modules_exist"),
    ],
)
def test_what_cannot_be_is_refused(plan: ParallelismPlan, rule: str) -> None:
    broken = check(plan, training(1, S), dense_model(), cluster(CHIP, 1), CHIP)
    assert [rejection.rule for rejection in broken] == [rule]
