"""Every rule broken once: the plan, the rule that refuses it, and the sentence a user reads."""

import numpy as np
import pytest

from projector.breakdown import Interval, MemoryBreakdown, Projection, TimeBreakdown
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.legality import check, legal_mask, memory_rejection
from projector.rules import RULES
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

LLAMA, MIXTRAL = architecture("llama-3.1-8b"), architecture("mixtral-8x7b")
TRAIN = WorkloadSpec(seq_len=8192, global_batch=64)
SERVE = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=64)
LEGAL = ParallelismPlan(dp=2, tp=4, sp=True, micro_batch=1, grad_accum=32)
ENGINE = ParallelismPlan(phase="serving", tp=8)


def refusals(plan, workload=TRAIN, model=LLAMA, chip_name="h100-sxm", chips=8, **cluster):
    return check(plan, workload, model, ClusterSpec(chip=chip_name, chips=chips, **cluster), chip(chip_name))


def test_a_legal_plan_is_not_refused():
    assert refusals(LEGAL) == ()
    assert refusals(ENGINE, SERVE) == ()


def change(plan, **fields):
    return ParallelismPlan.model_validate({**plan.model_dump(), **fields})


@pytest.mark.parametrize(
    ("plan", "rule", "text"),
    [
        (change(LEGAL, dp=1, grad_accum=64), "device_count", "devices 4 != 8"),
        (change(LEGAL, compute_dtype="int8"), "training_dtype", "training recipes for int8 0 < 1"),
        (change(LEGAL, dp=2, pp=4, tp=1, sp=False, vp=9, schedule="interleaved"), "stages", "pp * vp (layers) 36 > 32"),
        (change(LEGAL, ep=2), "dense_has_no_experts", "ep * etp of a dense model 2 > 1"),
        (change(LEGAL, grad_accum=16), "global_batch", "dp * micro_batch * grad_accum 32 != 64"),
        (change(LEGAL, tp=1, dp=8, grad_accum=8), "sp_needs_tp", "tp with sp 1 < 2"),
        (change(LEGAL, tp=1, sp=False, dp=8, grad_accum=8, overlap_tp=True), "overlap_tp_needs_tp",
         "tp with overlap_tp 1 < 2"),
        (change(LEGAL, fsdp=2, zero_stage=1), "fsdp_is_stage_3", "zero_stage with fsdp > 1 1 != 3"),
        (change(LEGAL, zero_stage=3), "stage_3_is_fsdp", "fsdp with zero_stage 3 1 < 2"),
        (change(LEGAL, schedule="interleaved"), "interleaved_needs_vp", "vp of an interleaved schedule 1 < 2"),
        (change(LEGAL, dp=1, pp=2, vp=2, grad_accum=64), "vp_needs_interleaved",
         "vp of a schedule that is not interleaved 2 > 1"),
        (change(LEGAL, vp=2, schedule="interleaved"), "vp_needs_pp", "pp with vp > 1 1 < 2"),
        (change(LEGAL, dp=2, pp=4, tp=1, sp=False, vp=2, schedule="interleaved", micro_batch=16, grad_accum=2),
         "interleaved_rounds", "pp of an interleaved schedule (micro-batches) 4 does not divide 2"),
        (change(LEGAL, schedule="zero_bubble"), "schedule_needs_pp", "pp of a zero-bubble or two-way schedule 1 < 2"),
        (change(LEGAL, tp=1, sp=False, dp=2, pp=4, schedule="dualpipe", micro_batch=8, grad_accum=4),
         "two_way_micro_batches", "micro-batches of a two-way schedule 4 < 8"),
        (change(LEGAL, first_stage_layers=8), "uneven_needs_pp",
         "pp with first_stage_layers or last_stage_layers 1 < 2"),
        (change(LEGAL, tp=1, sp=False, dp=2, pp=4, first_stage_layers=6, last_stage_layers=7), "middle_stages",
         "chunks of the other stages (their layers) 2 does not divide 19"),
        (change(LEGAL, tp=1, sp=False, dp=2, pp=4, vp=2, schedule="interleaved", first_stage_layers=5,
                last_stage_layers=3), "end_chunks",
         "vp (layers of a stage of its own length) 2 does not divide 5"),
        (change(LEGAL, kv_cache_dtype="fp8", max_num_seqs=8), "serving_fields",
         "serving fields set in a training plan 2 != 0"),
    ],
)  # fmt: skip
def test_a_broken_training_plan_names_rule_limit_and_overshoot(plan, rule, text):
    assert [(found.rule, found.text) for found in refusals(plan)] == [(rule, text)]


@pytest.mark.parametrize(
    ("plan", "rule", "text"),
    [
        (change(ENGINE, micro_batch=2), "training_fields", "training fields set in a serving plan 1 != 0"),
        (change(ENGINE, tp=4, cp=2), "no_context_parallelism", "cp of a serving plan 2 > 1"),
        (change(ENGINE, chunked_prefill_tokens=32), "token_budget",
         "chunked_prefill_tokens against max_num_seqs: 32 < 64"),
        (change(ENGINE, tp=1, dp=8, attention_dp=8, max_num_seqs=4), "seats_for_ranks",
         "max_num_seqs against attention_dp: 4 < 8"),
        (change(ENGINE, tp=4, dp=2, ep=8), "experts_inside_engine", "ep * etp (attention_dp * tp) 8 does not divide 4"),
    ],
)  # fmt: skip
def test_a_broken_serving_plan_names_rule_limit_and_overshoot(plan, rule, text):
    assert [(found.rule, found.text) for found in refusals(plan, SERVE, MIXTRAL)] == [(rule, text)]


def test_sequence_rules():
    odd = WorkloadSpec(seq_len=8190, global_batch=64)
    ring = ParallelismPlan(dp=2, cp=4, grad_accum=32)
    assert [found.text for found in refusals(ring, odd)] == ["2 * cp (sequence length) 8 does not divide 8190"]
    assert [found.text for found in refusals(LEGAL, odd)] == [
        "cp * tp with sp (sequence length) 4 does not divide 8190"
    ]


def test_tensor_parallelism_splits_or_copies_kv_heads():
    sixteen = ParallelismPlan(tp=16, sp=True, grad_accum=64)
    assert refusals(sixteen, chips=16) == ()  # 8 KV heads, each on two ranks
    three = ParallelismPlan(tp=3, grad_accum=64)
    assert [found.rule for found in refusals(three, chips=3)] == [
        "attention_heads", "kv_heads", "hidden_size", "mlp_width",
    ]  # fmt: skip


def test_experts_are_divided_whole_or_sliced():
    assert refusals(ParallelismPlan(dp=8, ep=8, grad_accum=8), model=MIXTRAL) == ()
    assert refusals(ParallelismPlan(tp=8, etp=8, grad_accum=64), model=MIXTRAL) == ()
    sixteen = refusals(ParallelismPlan(dp=16, ep=16, grad_accum=4), model=MIXTRAL, chips=16)
    assert [found.text for found in sixteen] == ["ep (experts) 16 does not divide 8"]
    three = refusals(ParallelismPlan(dp=3, etp=3, grad_accum=64), TRAIN.model_copy(update={"global_batch": 192}),
                     model=MIXTRAL, chips=3)  # fmt: skip
    assert [found.text for found in three] == ["etp (expert width) 3 does not divide 14336"]


def test_uneven_stages_are_legal_without_interleaving():
    plan = ParallelismPlan(pp=5, grad_accum=64)
    assert refusals(plan, chips=5) == ()


def test_every_stage_has_a_layer():
    plan = ParallelismPlan(pp=64, grad_accum=64)
    assert [found.text for found in refusals(plan, chips=64)] == ["pp * vp (layers) 64 > 32"]


def test_a_torus_has_a_size_and_a_shape():
    plan, batch = ParallelismPlan(dp=512), WorkloadSpec(seq_len=8192, global_batch=512)
    one_slice = refusals(plan, batch, chip_name="tpu-v5e", chips=512, topology=(32, 16))
    assert [found.text for found in one_slice] == ["chips in one slice 512 > 256"]
    cube = refusals(plan, batch, chip_name="tpu-v5p", chips=512, topology=(32, 16))
    assert [found.text for found in cube] == ["topology dimensions 2 != 3"]
    switched = refusals(plan, batch, chips=512, topology=(32, 16))
    assert [found.text for found in switched] == ["topology dimensions 2 != 0"]


def test_chips_without_a_stated_shape_are_as_many_slices_as_they_need():
    batch = WorkloadSpec(seq_len=8192, global_batch=512)
    assert refusals(ParallelismPlan(dp=512), batch, chip_name="tpu-v5e", chips=512) == ()
    over_both = ParallelismPlan(tp=8, cp=64, sp=True, grad_accum=512)
    found = refusals(over_both, batch, chip_name="tpu-v5e", chips=512)
    assert [one.text for one in found] == ["slices over dp * pp: 2 does not divide 1"]


def test_a_tensor_group_stays_inside_one_slice():
    plan = ParallelismPlan(dp=1, tp=8, sp=True, grad_accum=64)
    found = refusals(plan, chip_name="tpu-v5p", chips=8, slices=2)
    assert [one.text for one in found] == ["slices over dp * pp: 2 does not divide 1"]


def test_an_axis_may_take_part_of_a_torus_dimension():
    """16 x 16 as data 8, seq 16, model 2: the mesh engineers adopted in case C3 of PROMPTS."""
    plan = ParallelismPlan(dp=8, cp=16, tp=2, sp=True, grad_accum=8)
    assert refusals(plan, chip_name="tpu-v5e", chips=256, topology=(16, 16)) == ()


def test_an_unknown_model_binds_nothing_but_devices_and_batch():
    plan = ParallelismPlan(tp=7, dp=1, grad_accum=63)
    assert [found.rule for found in refusals(plan, model=None, chips=8)] == ["device_count", "global_batch"]


def test_an_unknown_chip_counts_one_device():
    plan = ParallelismPlan(dp=8, compute_dtype="fp8", grad_accum=8)
    assert check(plan, TRAIN, LLAMA, ClusterSpec(chip="h800", chips=8), None) == ()


def test_phases_do_not_mix():
    with pytest.raises(InvalidDescription, match="a serving plan for a training workload"):
        refusals(ENGINE)


def test_the_mask_is_the_check_of_every_plan():
    plans = [LEGAL, change(LEGAL, grad_accum=16), change(LEGAL, ep=2), change(LEGAL, zero_stage=1)]
    cluster = ClusterSpec(chip="h100-sxm", chips=8)
    mask = legal_mask(PlanBatch.from_plans(plans), TRAIN, LLAMA, cluster, chip("h100-sxm"))
    assert mask.tolist() == [refusals(plan) == () for plan in plans] == [True, False, False, True]
    assert mask.dtype == np.bool_


def test_rule_names_are_unique():
    assert len({rule.name for rule in RULES}) == len(RULES)


def projection(weights_bytes, capacity_bytes=80e9):
    return Projection(
        plan=LEGAL, chip="h100-sxm", chips=8, source="modelled", step_time_s=1.0,
        step_time_interval_s=Interval(low=1.0, high=1.0, basis="test"),
        breakdown=TimeBreakdown(source="modelled", total_s=1.0, compute_s=1.0, exposed_communication_s=0.0,
                                overlapped_communication_s=0.0, idle_s=0.0),
        memory=None if weights_bytes is None else MemoryBreakdown(
            weights_bytes=weights_bytes, capacity_bytes=capacity_bytes
        ),
    )  # fmt: skip


def test_memory_is_a_gate_that_names_the_overshoot():
    assert memory_rejection(projection(79e9)) is None
    assert memory_rejection(projection(None)) is None
    rejection = memory_rejection(projection(96e9))
    assert rejection is not None
    assert rejection.text == "peak memory a chip 96.0 GB > 80.0 GB"


@pytest.mark.parametrize(
    ("chip_name", "dtype", "trains"),
    [
        ("b200", "nvfp4", True),
        ("b200", "fp4", False),
        ("b200", "int8", False),
        ("tpu-v5p", "int8", True),
        ("h100-sxm", "int8", False),
    ],
)
def test_training_in_a_dtype_needs_a_recipe_for_the_kind_of_chip(chip_name, dtype, trains):
    plan = change(LEGAL, compute_dtype=dtype)
    found = [rejection.rule for rejection in refusals(plan, chip_name=chip_name)]
    assert ("training_dtype" not in found) == trains


@pytest.mark.parametrize(
    ("chip_name", "dtype"), [("a100-80-sxm", "fp8"), ("tpu-v5e", "fp8"), ("tpu-v5p", "fp4"), ("mi300x", "fp4")]
)
def test_a_compute_dtype_the_chip_lacks_is_refused_on_every_kind(chip_name, dtype):
    engine = change(ENGINE, compute_dtype=dtype)
    assert [found.text for found in refusals(engine, SERVE, chip_name=chip_name)] == [
        f"peak figures for {dtype} on {chip_name} 0 < 1"
    ]


def test_weights_may_be_stored_narrower_than_the_chip_computes():
    assert refusals(change(ENGINE, weight_dtype="fp4"), SERVE) == ()


@pytest.mark.parametrize("lengths", [{"seq_len": 4096, "global_batch": 64}, {"input_len": 3840, "output_len": 256}])
def test_learned_positions_end(lengths):
    training = "seq_len" in lengths
    workload = WorkloadSpec(
        phase="training" if training else "serving", **lengths, **({} if training else {"concurrency": 8})
    )
    model = LLAMA.model_copy(update={"positions": "learned", "max_positions": 2048})
    plan = LEGAL if training else ENGINE
    assert [found.text for found in refusals(plan, workload, model)] == [
        "tokens of a sequence (learned positions) 4096 > 2048"
    ]
    assert refusals(plan, workload, model.model_copy(update={"positions": "rope"})) == ()


def test_llama_3_405b_ran_126_layers_in_16_stages_of_8_chunks():
    plan = ParallelismPlan(dp=128, zero_stage=1, tp=8, sp=True, pp=16, vp=8, schedule="interleaved", grad_accum=16)
    workload = WorkloadSpec(seq_len=8192, global_batch=2048)
    assert refusals(plan, workload, architecture("llama-3.1-405b"), chips=16384) == ()


@pytest.mark.parametrize(("first", "last"), [(2, 0), (0, 5), (7, 7), (20, 2)])
def test_stages_of_their_own_length_leave_the_others_an_even_split(first, last):
    # 32 layers over 4 stages: 30 = 3 x 10, 27 = 3 x 9, 18 = 2 x 9, 10 = 2 x 5
    plan = change(LEGAL, tp=1, sp=False, dp=2, pp=4, first_stage_layers=first, last_stage_layers=last)
    assert refusals(plan) == ()


def test_a_two_way_pipeline_takes_an_even_number_of_devices_and_of_micro_batches():
    odd = change(LEGAL, tp=2, sp=True, dp=1, pp=3, schedule="dualpipe", grad_accum=64)
    assert [found.rule for found in refusals(odd, chips=6)] == ["two_way_pairs"]
    uneven = change(LEGAL, tp=2, sp=True, dp=1, pp=4, schedule="dualpipe", grad_accum=9)
    found = refusals(uneven, WorkloadSpec(seq_len=8192, global_batch=9))
    assert [(one.rule, one.text) for one in found] == [
        ("two_way_halves", "2 (micro-batches of a two-way schedule) 2 does not divide 9")
    ]
