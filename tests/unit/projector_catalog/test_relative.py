"""What a measured step becomes under another mesh when the model is unknown."""

import numpy as np
import pytest

from projector.breakdown import AxisTime, KindTime, TimeBreakdown
from projector.catalog import chip
from projector.errors import InvalidDescription, UnknownName
from projector.relative import project_relative, project_relative_many
from projector.specs.cluster import ClusterSpec
from projector.specs.objective import Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch

CLUSTER, H100 = ClusterSpec(chip="h100-sxm", chips=64), chip("h100-sxm")
CURRENT = ParallelismPlan(dp=8, fsdp=8, zero_stage=3, tp=8, sp=True, micro_batch=2, grad_accum=4)
MEASURED = TimeBreakdown(
    source="measured", total_s=1.0, compute_s=0.6, exposed_communication_s=0.25, overlapped_communication_s=0.1,
    exposed_copy_s=0.02, idle_s=0.13,
    by_kind=(KindTime(kind="gemm", time_s=0.4), KindTime(kind="attention", time_s=0.1),
             KindTime(kind="norm", time_s=0.1)),
    by_axis=(AxisTime(axis="tp", total_s=0.2, exposed_s=0.18), AxisTime(axis="fsdp", total_s=0.15, exposed_s=0.07)),
)  # fmt: skip
ENGINE = ParallelismPlan(phase="serving", tp=8)
DECODE = TimeBreakdown(
    source="measured", total_s=0.010, compute_s=0.005, exposed_communication_s=0.002, overlapped_communication_s=0.0,
    idle_s=0.003, by_axis=(AxisTime(axis="tp", total_s=0.002, exposed_s=0.002),),
)  # fmt: skip


def change(plan, **fields):
    return ParallelismPlan.model_validate({**plan.model_dump(), **fields})


def scaled(plan, current=CURRENT, measured=MEASURED, hardware=H100):
    return project_relative(plan, current, measured, CLUSTER, hardware)


def axis(projection, name):
    return next(time for time in projection.breakdown.by_axis if time.axis == name)


def test_the_current_plan_is_its_own_measurement_exactly():
    same = scaled(CURRENT)
    assert same.step_time_s == MEASURED.total_s
    assert (same.step_time_interval_s.low, same.step_time_interval_s.high) == (1.0, 1.0)
    assert same.breakdown == MEASURED.model_copy(update={"source": "relative"})
    assert (same.memory_direction, same.memory, same.fit, same.assumptions) == ("same", None, "unknown", ())


def test_full_recompute_adds_a_third_of_compute_and_frees_memory():
    full = scaled(change(CURRENT, recompute="full"))
    assert full.breakdown.compute_s == pytest.approx(0.6 * 4 / 3)
    assert axis(full, "tp").total_s == pytest.approx(0.2 * 6 / 4, abs=0.06)
    assert full.memory_direction == "less"


def test_selective_recompute_costs_the_measured_attention_share():
    selective = scaled(change(CURRENT, recompute="selective"))
    assert selective.breakdown.compute_s == pytest.approx(0.6 * (3 + 0.1 / 0.6) / 3)


def test_half_the_tensor_parallelism_moves_three_sevenths_of_its_bytes():
    """(T - 1) / T over D * C: (3/4) / (7/8) at half the tokens a rank."""
    plan = change(CURRENT, tp=4, dp=16, grad_accum=2)
    assert axis(scaled(plan), "tp").total_s == pytest.approx(0.2 * (3 / 4) / (7 / 8) / 2)
    assert scaled(plan).memory_direction == "more"


def test_without_tensor_parallelism_its_traffic_is_gone():
    plan = change(CURRENT, tp=1, sp=False, dp=64, grad_accum=1, micro_batch=1)
    assert not [time for time in scaled(plan).breakdown.by_axis if time.axis == "tp"]


def test_an_axis_the_measured_plan_lacks_is_assumed_with_a_wide_range_never_zero():
    plan = change(CURRENT, tp=4, cp=2)
    projection = scaled(plan)
    assert axis(projection, "cp").exposed_s == pytest.approx(0.10 * projection.breakdown.compute_s)
    assert any("cp traffic does not occur in the measured plan" in text for text in projection.assumptions)
    interval = projection.step_time_interval_s
    assert interval.high - interval.low > 0.3 * projection.step_time_s


def test_stages_bring_a_bubble():
    plan = change(CURRENT, tp=4, pp=2)
    busy = scaled(plan).breakdown.compute_s + scaled(plan).breakdown.exposed_communication_s
    assert scaled(plan).breakdown.bubble_s == pytest.approx(busy * (2 - 1) / 4)


def test_a_measured_bubble_calibrates_its_formula():
    current = ParallelismPlan(dp=8, pp=8, grad_accum=8)
    measured = TimeBreakdown(source="measured", total_s=1.0, compute_s=0.5, exposed_communication_s=0.0,
                             overlapped_communication_s=0.0, idle_s=0.5, bubble_s=0.5)  # fmt: skip
    after = scaled(change(current, dp=16, pp=4, grad_accum=4), current, measured)
    assert after.breakdown.bubble_s == pytest.approx(0.5 * ((3 / 4) / (7 / 8)) * (after.breakdown.compute_s
                                                     + after.breakdown.exposed_communication_s) / 0.5)  # fmt: skip


def test_switching_overlap_off_exposes_what_was_hidden():
    off = scaled(change(CURRENT, overlap_grad_reduce=False))
    fsdp = axis(off, "fsdp")
    assert fsdp.exposed_s == pytest.approx(fsdp.total_s)
    assert off.step_time_s > 1.0


def test_hidden_traffic_needs_compute_to_hide_under():
    """fp8 halves the compute, so traffic that hid under it comes out."""
    faster = scaled(change(CURRENT, compute_dtype="fp8"))
    assert axis(faster, "fsdp").exposed_s > 0.07
    assert axis(faster, "fsdp").total_s == pytest.approx(0.15)
    assert faster.memory_direction == "unknown"


def test_leaving_the_fast_domain_costs_the_ratio_of_the_links():
    inside = ParallelismPlan(dp=8, tp=8, sp=True, micro_batch=1, grad_accum=8)
    plan = change(inside, tp=16, dp=4, grad_accum=16)
    slower = scaled(plan, inside, MEASURED)
    same_fabric = scaled(plan, inside, MEASURED, hardware=chip("tpu-v5p"))
    assert axis(slower, "tp").total_s == pytest.approx(9 * axis(same_fabric, "tp").total_s)


def test_communication_nobody_attributed_is_scaled_with_a_note():
    bare = MEASURED.model_copy(update={"by_axis": ()})
    projection = scaled(change(CURRENT, tp=4, dp=16, grad_accum=2), measured=bare)
    assert axis(projection, "unknown").exposed_s > 0
    assert any("does not say which axis" in text for text in projection.assumptions)


def test_axes_that_overlap_each_other_are_shrunk_to_the_measured_total():
    doubled = MEASURED.model_copy(
        update={"by_axis": (AxisTime(axis="tp", total_s=0.3, exposed_s=0.25),
                            AxisTime(axis="dp", total_s=0.3, exposed_s=0.25))}
    )  # fmt: skip
    plan = change(CURRENT, recompute="selective")
    exposed = scaled(plan, measured=doubled).breakdown.exposed_communication_s
    assert exposed == pytest.approx(MEASURED.exposed_communication_s)


def test_a_smaller_engine_shard_lengthens_the_decode_step_and_drops_its_collectives():
    plan = change(ENGINE, tp=4, dp=2)
    projection = scaled(plan, ENGINE, DECODE)
    assert 0.005 < projection.breakdown.compute_s < 0.010
    assert projection.breakdown.exposed_communication_s < 0.002
    assert projection.memory_direction == "more"


def test_graph_replay_takes_idle_time_with_the_share_assumed():
    eager = change(ENGINE, cuda_graphs=False)
    projection = scaled(ENGINE, eager, DECODE)
    assert projection.breakdown.idle_s == pytest.approx(0.3 * DECODE.idle_s)
    assert any("graph replay" in text for text in projection.assumptions)


def test_a_half_width_cache_needs_less_memory():
    assert scaled(change(ENGINE, kv_cache_dtype="fp8"), ENGINE, DECODE).memory_direction == "less"


def test_only_time_is_an_objective():
    batch = project_relative_many(PlanBatch.from_plans([CURRENT]), CURRENT, MEASURED, CLUSTER, H100)
    assert batch.objective("step_time_s").tolist() == [1.0]
    assert np.isnan(batch.memory_bytes).all()
    assert batch.fits.tolist() == [True]
    with pytest.raises(InvalidDescription, match="needs the model"):
        batch.objective("tokens_per_s_per_chip")
    with pytest.raises(UnknownName):
        batch.objective("itl_ms")
    with pytest.raises(UnknownName):
        batch.objective("speed")
    engines = project_relative_many(PlanBatch.from_plans([ENGINE]), ENGINE, DECODE, CLUSTER, H100)
    assert engines.objective("itl_ms").tolist() == [10.0]


def test_a_latency_budget_cannot_be_checked_and_says_so():
    batch = project_relative_many(PlanBatch.from_plans([ENGINE]), ENGINE, DECODE, CLUSTER, None)
    assert batch.slo_misses(Slo()) == [()]
    with pytest.raises(InvalidDescription, match="ttft_ms"):
        batch.slo_misses(Slo(ttft_ms=500))


def test_unequal_batches_do_not_compare():
    with pytest.raises(InvalidDescription, match="256 sequences against a measured one of 64"):
        scaled(change(CURRENT, grad_accum=16))
    with pytest.raises(InvalidDescription, match="a serving plan against a training measurement"):
        scaled(ENGINE)


def test_an_unknown_chip_is_named_as_the_cluster_names_it():
    projection = project_relative(CURRENT, CURRENT, MEASURED, ClusterSpec(chip="h800", chips=64), None)
    assert (projection.chip, projection.chips, projection.source) == ("h800", 64, "relative")
