"""Rates of attention by shape, what natural routing and eager hosts cost experts, gathers over links of their own."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, ideal, moe_model, switched_chip, training

from projector.breakdown import Projection
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.software import Software


def on(chip: HardwareProfile, model: ModelArchitecture, *, seq_len: int = 2048, **degrees: int) -> Projection:
    return stack(Software(), model, chip, seq_len=seq_len, **degrees)


def stack(
    software: Software,
    model: ModelArchitecture,
    chip: HardwareProfile | None = None,
    *,
    seq_len: int = 2048,
    **degrees: int,
) -> Projection:
    plan = ParallelismPlan.model_validate(degrees)
    chip = chip or switched_chip()
    work = training(plan.dp * plan.micro_batch * plan.grad_accum, seq_len)
    return project(plan, work, model, cluster(chip, plan.devices), chip, software=software)


def kind_s(found: Projection, kind: str) -> float:
    return sum(one.time_s for one in found.breakdown.by_kind if one.kind == kind)


def attention_chip(**changes: float) -> HardwareProfile:
    return switched_chip(hbm_bytes_per_s=1e30, calibration=ideal(**changes))


def test_attention_over_few_keys_runs_slower_and_over_the_reference_as_stated() -> None:
    model, curved, flat = dense_model(), attention_chip(attention_half_keys=435.0), attention_chip()
    at_reference = [kind_s(on(chip, model, seq_len=8191), "attention") for chip in (curved, flat)]
    assert at_reference[0] == pytest.approx(at_reference[1])
    short = [kind_s(on(chip, model, seq_len=1023), "attention") for chip in (curved, flat)]
    assert short[0] == pytest.approx(short[1] * (512 + 435) / 512 / (1 + 435 / 4096))


def test_narrow_heads_run_slower_on_gpus_and_fill_half_a_matrix_unit_on_tpus() -> None:
    narrow = dense_model(head_dim=64)
    gpu = [kind_s(on(attention_chip(attention_half_width=w), narrow), "attention") for w in (0.0, 128.0)]
    assert gpu[1] == pytest.approx(gpu[0] * (64 + 128) / 64 / 2)
    tpu = [kind_s(on(attention_chip(attention_lanes=lanes), narrow), "attention") for lanes in (1, 128)]
    assert tpu[1] == pytest.approx(2 * tpu[0])


def test_natural_routing_makes_the_busiest_rank_slower_but_no_rank_that_holds_all() -> None:
    model = moe_model(moe_intermediate_size=8192)
    balanced, natural = Software(), Software(expert_imbalance=1.5)
    spread = [stack(software, model, dp=8, ep=8) for software in (balanced, natural)]
    assert kind_s(spread[1], "moe") > 1.3 * kind_s(spread[0], "moe")
    together = [stack(software, model, dp=8).step_time_s for software in (balanced, natural)]
    assert together[0] == together[1]


def test_a_pause_costs_every_expert_layer_once_a_forward_pass() -> None:
    model = moe_model()
    paused, ready = (stack(Software(expert_pause_s=pause), model, grad_accum=3) for pause in (1e-3, 0.0))
    assert paused.step_time_s - ready.step_time_s == pytest.approx(3 * model.moe_layers * 1e-3)
    full = ParallelismPlan(grad_accum=3, recompute="full").model_dump(include={"grad_accum", "recompute"})
    paused, ready = (stack(Software(expert_pause_s=pause), model, **full) for pause in (1e-3, 0.0))
    assert paused.step_time_s - ready.step_time_s == pytest.approx(6 * model.moe_layers * 1e-3)


def test_a_product_an_expert_pays_its_ramp_more_often_than_one_kernel() -> None:
    chip = switched_chip(calibration=ideal(gemm_half_size_flop=1e9))
    each, together = (stack(Software(expert_products=how), moe_model(experts=64), chip) for how in ("each", "together"))
    assert kind_s(each, "moe") > kind_s(together, "moe")


def test_clamped_experts_move_a_chain_of_tensors() -> None:
    plain, clamped = moe_model(), moe_model(clamped_experts=True)
    software = Software(clamped_passes=9.0)
    assert stack(software, plain).step_time_s == stack(Software(), plain).step_time_s
    elementwise = [kind_s(stack(software, model), "elementwise") for model in (plain, clamped)]
    assert elementwise[1] > elementwise[0]


def test_flat_gathers_share_no_link_with_the_other_ranks_of_a_node() -> None:
    plan = {"dp": 64, "fsdp": 64, "zero_stage": 3}
    shared, flat = (
        sum(axis.total_s for axis in stack(Software(flat_gathers=how), dense_model(), **plan).breakdown.by_axis)
        for how in (False, True)
    )
    assert flat > 2 * shared


def test_a_projection_says_what_it_rests_on_and_what_binds() -> None:
    calibration = ideal().model_copy(update={"fitted": {"sustained_frac": 7, "flash2_frac": 0}})
    chip = switched_chip(hbm_bytes_per_s=1e30, calibration=calibration)
    found = on(chip, dense_model())
    assert found.provenance is not None
    assert (found.provenance.fitted, found.provenance.carried_over) == (("sustained_frac",), ("flash2_frac",))
    assert found.provenance.binding == "gemm compute"
    assert 0.5 < found.provenance.binding_frac < 1
    assert "hbm_bytes" in (*found.provenance.datasheet, *found.provenance.unverified)


def test_intervals_are_wider_where_less_is_known() -> None:
    seen = switched_chip(calibration=ideal().model_copy(update={"fitted": {"sustained_frac": 7}}))

    def width(found: Projection) -> float:
        interval = found.step_time_interval_s
        assert interval.low <= found.step_time_s <= interval.high
        return (interval.high - interval.low) / found.step_time_s

    unhidden = {"overlap_param_gather": False, "overlap_grad_reduce": False}
    alone, exposed = on(seen, dense_model()), on(seen, dense_model(), dp=64, fsdp=64, zero_stage=3, **unhidden)
    experts, unseen = on(seen, moe_model()), on(switched_chip(), dense_model())
    assert width(alone) < width(exposed)
    assert width(alone) < width(experts)
    assert width(alone) < width(unseen)
    assert "none of them is of switched" in unseen.step_time_interval_s.basis


def test_planted_plans_that_do_not_fit_are_flagged_and_those_that_do_are_not() -> None:
    # weights, gradients and optimizer of 16 bytes a parameter alone, and with all activations of a long sequence
    model = dense_model()
    states_bytes = 18.0 * model.parameters
    for room, fits in ((0.5, "too_large"), (8.0, "fits")):
        chip = switched_chip(hbm_bytes=room * states_bytes + 2e9)
        assert on(chip, model, seq_len=512).fit == fits
    chip = switched_chip(hbm_bytes=4 * states_bytes)
    lengths = np.array([512, 65536, 262144])
    found = [on(chip, model, seq_len=int(s)).fit for s in lengths]
    assert found[-1] == "too_large"
    assert found == sorted(found)
