"""What a training stack changes in the cost of a step, one habit at a time."""

import pytest
from projector_examples import cluster, dense_model, ideal, moe_model, switched_chip, training
from pydantic import ValidationError

from projector.breakdown import Projection
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.software import (
    CURRENT,
    MEGATRON_RECIPES,
    MEGATRON_RECIPES_2025,
    MEGATRON_RECIPES_FUSED_EXPERTS,
    Software,
    megatron_recipes,
)


def projected(
    software: Software,
    plan: ParallelismPlan | None = None,
    *,
    model: ModelArchitecture | None = None,
    hardware: HardwareProfile | None = None,
) -> Projection:
    plan, chip = plan or ParallelismPlan(), hardware or switched_chip()
    batch = training(plan.dp * plan.micro_batch * plan.grad_accum, 2048)
    return project(plan, batch, model or dense_model(), cluster(chip, plan.devices), chip, software=software)


def axis_s(found: Projection, axis: str) -> float:
    return sum(one.total_s for one in found.breakdown.by_axis if one.axis == axis)


def kind_s(found: Projection, *kinds: str) -> float:
    return sum(one.time_s for one in found.breakdown.by_kind if one.kind in kinds)


def test_kernels_of_another_generation_slow_attention_alone() -> None:
    hopper = switched_chip(hbm_bytes_per_s=1e30, calibration=ideal(flash2_frac=0.5))
    vendor, flash2 = (projected(Software(attention_kernels=one), hardware=hopper) for one in ("vendor", "flash2"))
    assert kind_s(flash2, "attention") == pytest.approx(2 * kind_s(vendor, "attention"))
    assert kind_s(flash2, "gemm") == kind_s(vendor, "gemm")


def test_a_bias_costs_the_same_from_the_model_or_from_the_stack() -> None:
    chip = switched_chip(hbm_bytes_per_s=1e30)
    plain, stack, model = (
        kind_s(projected(software, model=dense_model(positions=positions), hardware=chip), "attention")
        for software, positions in ((CURRENT, "rope"), (Software(attention_bias=True), "rope"), (CURRENT, "alibi"))
    )
    assert stack == model
    assert stack == pytest.approx(1.5 * plain)


def test_unfused_heads_of_odd_width_leave_the_tensor_cores() -> None:
    chip = switched_chip(hbm_bytes_per_s=1e30)
    aligned, odd = (
        kind_s(
            projected(
                Software(attention="unfused"), model=dense_model(heads=8, kv_heads=8, head_dim=width), hardware=chip
            ),
            "attention",
        )
        for width in (128, 124)
    )
    assert odd == pytest.approx(16 * 124 / 128 * aligned)


def test_eager_modules_move_their_intermediates() -> None:
    fused, eager = (
        kind_s(projected(Software(pointwise_passes=passes)), "norm", "elementwise") for passes in (1.0, 2.0)
    )
    assert 1.2 * fused < eager < 2 * fused  # the loss is not among them


def test_recompute_that_stops_early_leaves_out_the_last_product() -> None:
    chip, model = switched_chip(hbm_bytes_per_s=1e30), dense_model()
    whole, early = (
        projected(Software(recompute_stops_early=stops), ParallelismPlan(recompute="full"), hardware=chip)
        for stops in (False, True)
    )
    last_s = model.layers * 2 * 2048 * model.intermediate_size * model.hidden_size / 100e12
    assert whole.step_time_s - early.step_time_s == pytest.approx(last_s)


def test_passes_around_experts_weigh_on_models_with_experts_only() -> None:
    few, many = (Software(expert_passes=passes) for passes in (1.0, 4.0))
    assert projected(few).step_time_s == projected(many).step_time_s
    assert projected(few, model=moe_model()).step_time_s < projected(many, model=moe_model()).step_time_s


def test_gradients_in_16_bit_halve_their_reduction() -> None:
    plan = ParallelismPlan(dp=8, zero_stage=0)
    wide, narrow = (axis_s(projected(Software(gradient_wire_bytes=size), plan), "dp") for size in (4, 2))
    assert narrow == pytest.approx(wide / 2, rel=0.01)


def test_weights_travel_in_the_dtype_they_are_multiplied_in() -> None:
    plan = ParallelismPlan(dp=8, fsdp=8, zero_stage=3, compute_dtype="fp8")
    chip = switched_chip()
    chip = chip.model_copy(update={"peak_flop_per_s": chip.peak_flop_per_s | {"fp8": chip.peak_flop_per_s["bf16"]}})
    wide, narrow = (
        axis_s(projected(Software(narrow_weight_gather=on), plan, hardware=chip), "fsdp") for on in (False, True)
    )
    # two gathers at 2 bytes and one scatter at 2 become 1, 1 and 2
    assert narrow == pytest.approx(wide * 4 / 6, rel=0.03)


def test_a_smaller_optimizer_group_gathers_inside_a_domain() -> None:
    everywhere, inside = (
        projected(CURRENT, ParallelismPlan(dp=64, zero_stage=1, optimizer_shard=size)) for size in (0, 8)
    )
    assert everywhere.memory is not None
    assert inside.memory is not None
    assert inside.memory.optimizer_bytes == pytest.approx(8 * everywhere.memory.optimizer_bytes)
    assert axis_s(inside, "dp") != axis_s(everywhere, "dp")


def test_broadcasts_cost_the_host_a_message_a_rank() -> None:
    plan = ParallelismPlan(dp=64, zero_stage=1)
    gathered, broadcast = (axis_s(projected(Software(zero_update=how), plan), "dp") for how in ("gather", "broadcast"))
    assert broadcast - gathered > 64 * Software().broadcast_s


def test_drifting_ranks_wait_for_each_other_in_every_collective() -> None:
    plan = ParallelismPlan(tp=4)
    chip = switched_chip(calibration=ideal(kernel_floor_s=2e-6))
    calm, drifting = (
        axis_s(projected(Software(host_factor=factor), plan, hardware=chip), "tp") for factor in (1.0, 12.0)
    )
    assert drifting > calm


def test_no_stack_runs_below_the_floor_of_a_kernel() -> None:
    with pytest.raises(ValidationError, match="host_factor"):
        Software(host_factor=0.5)


@pytest.mark.parametrize(
    ("release", "block_scaled", "expected"),
    [
        (None, True, MEGATRON_RECIPES),
        ((25, 11), True, MEGATRON_RECIPES_2025),
        ((26, 4), True, MEGATRON_RECIPES),
        ((26, 6), True, MEGATRON_RECIPES_FUSED_EXPERTS),
        ((26, 6), False, MEGATRON_RECIPES),
    ],
)
def test_recipes_by_release(release: tuple[int, int] | None, block_scaled: bool, expected: Software) -> None:
    assert megatron_recipes(release, block_scaled=block_scaled) == expected


def test_an_engine_that_pauses_holds_up_pipelines_only() -> None:
    pausing = Software(pipeline_pause_s=1e-3)
    for pp, pauses in ((1, 0), (2, 8 + 1)):  # 8 micro-batches, and one more to fill two stages
        plan = ParallelismPlan(pp=pp, grad_accum=8)
        longer_s = projected(pausing, plan).step_time_s - projected(Software(), plan).step_time_s
        assert longer_s == pytest.approx(pauses * 1e-3)
