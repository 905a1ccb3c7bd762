"""Habits of a stack that free memory cost time: repeated products, whole stages kept gathered, inputs on the host."""

import pytest
from projector_examples import cluster, dense_model, ideal, moe_model, switched_chip, training

from projector.breakdown import Projection
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.software import Software

PRODUCTS = Software(selective_products=True, recompute_stops_early=True)
WITHOUT_MEMORY_TRAFFIC = switched_chip(hbm_bytes_per_s=1e30)


def projected(
    software: Software,
    plan: ParallelismPlan,
    *,
    model: ModelArchitecture | None = None,
    chip: HardwareProfile = WITHOUT_MEMORY_TRAFFIC,
) -> Projection:
    batch = training(plan.dp * plan.micro_batch * plan.grad_accum, 2048)
    return project(plan, batch, model or dense_model(), cluster(chip, plan.devices), chip, software=software)


def gemm_s(found: Projection) -> float:
    return next(one.time_s for one in found.breakdown.by_kind if one.kind == "gemm")


def axis_s(found: Projection, axis: str) -> float:
    return sum(one.total_s for one in found.breakdown.by_axis if one.axis == axis)


def test_every_other_product_is_repeated() -> None:
    """Of q, k, v, output, gate, up, down these are k, output and up."""
    model = dense_model()
    keeps, repeats = (gemm_s(projected(PRODUCTS, ParallelismPlan(recompute=mode))) for mode in ("none", "selective"))
    weights = model.hidden_size * (
        model.kv_heads * model.head_dim + model.heads * model.head_dim + model.intermediate_size
    )
    assert repeats - keeps == pytest.approx(model.layers * 2 * 2048 * weights / 100e12)


def test_an_ungated_mlp_repeats_no_product_of_its_own_where_recompute_stops_early() -> None:
    model = dense_model(gated_mlp=False)
    early, late = (
        gemm_s(projected(PRODUCTS.model_copy(update=change), ParallelismPlan(recompute="selective"), model=model))
        for change in ({}, {"recompute_stops_early": False})
    )
    down = 2 * 2048 * model.intermediate_size * model.hidden_size / 100e12
    assert late - early == pytest.approx(model.layers * down)


def test_the_policy_over_products_is_that_of_models_without_experts() -> None:
    plan = ParallelismPlan(recompute="selective")
    usual, policy = (projected(software, plan, model=moe_model()) for software in (Software(), PRODUCTS))
    assert gemm_s(policy) == gemm_s(usual)


def test_stages_that_stay_gathered_exchange_weights_once_a_step() -> None:
    plan = ParallelismPlan(dp=4, fsdp=4, zero_stage=3, pp=2, grad_accum=8)
    each, once = (projected(Software(gathers_stages=stays), plan) for stays in (False, True))
    # gather, gather again and scatter in 8 micro-batches against gather and scatter
    assert axis_s(once, "fsdp") == pytest.approx(axis_s(each, "fsdp") * 2 / (3 * 8), rel=1e-3)
    assert once.memory is not None
    assert each.memory is not None
    assert once.memory.total_bytes > each.memory.total_bytes


def test_without_a_pipeline_weights_are_gathered_in_every_micro_batch() -> None:
    plan = ParallelismPlan(dp=4, fsdp=4, zero_stage=3, grad_accum=8)
    each, same = (projected(Software(gathers_stages=stays), plan) for stays in (False, True))
    assert each.step_time_s == same.step_time_s


@pytest.mark.parametrize(("host", "seconds"), [(1e9, 2), (1e30, 0)])
def test_inputs_on_the_host_cost_what_outlasts_the_pass(host: float, seconds: int) -> None:
    model = dense_model()
    chip = switched_chip(hbm_bytes_per_s=1e30, peak_flop_per_s=1e20, host=host)
    found = projected(Software(offloads_inputs=True), ParallelismPlan(recompute="full"), chip=chip)
    one_way_s = model.layers * 2048 * model.hidden_size * 2 / host
    assert found.breakdown.exposed_copy_s == pytest.approx(seconds * one_way_s, rel=1e-3)


def test_a_chip_without_a_stated_host_link_says_that_copies_took_no_time() -> None:
    plan = ParallelismPlan(recompute="full")
    offloaded, kept = (projected(Software(offloads_inputs=offloads), plan) for offloads in (True, False))
    assert any("host link" in text for text in offloaded.assumptions)
    assert not any("host link" in text for text in kept.assumptions)
    assert offloaded.breakdown.exposed_copy_s == 0


def test_host_links_slower_than_the_datasheet_like_every_other_link() -> None:
    chip = switched_chip(
        hbm_bytes_per_s=1e30, peak_flop_per_s=1e20, host=1e9, calibration=ideal(link_efficiency_frac=0.5)
    )
    found = projected(Software(offloads_inputs=True), ParallelismPlan(recompute="full"), chip=chip)
    model = dense_model()
    expected = 2 * 2 * model.layers * 2048 * model.hidden_size * 2 / 1e9
    assert found.breakdown.exposed_copy_s == pytest.approx(expected, rel=1e-3)
