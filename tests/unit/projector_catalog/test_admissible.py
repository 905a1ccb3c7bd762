"""What a search may try, and where a field cannot matter."""

import numpy as np
import pytest

from projector.admissible import admissible, admissible_fields, inert, inert_reasons, lever_fields
from projector.catalog import architecture, chip
from projector.errors import UnknownName
from projector.legality import check, legal_mask
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

LOAD = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=64)
TRAINING = WorkloadSpec(seq_len=4096, global_batch=64)


def choices(field, model="deepseek-v3", chip_id="h200", chips=8, workload=LOAD):
    hardware = chip(chip_id)
    return admissible(field, architecture(model), ClusterSpec(chip=hardware.id, chips=chips), hardware, workload)


def test_degrees_are_divisors_the_model_allows():
    assert choices("tp", "llama-3.1-70b").values == (1, 2, 4, 8)
    # 40 heads of Qwen2.5-14B do not divide by 16
    assert choices("tp", "qwen2.5-14b", chips=16).values == (1, 2, 4, 8)
    assert choices("ep", "gpt-oss-120b", chips=16).values == (1, 2, 4, 8, 16)


@pytest.mark.parametrize(
    ("field", "model", "chip_id", "because"),
    [
        ("ep", "llama-3.1-70b", "h200", "the model has no experts"),
        ("expert_dtype", "llama-3.1-70b", "h200", "the model has no experts"),
        ("redundant_experts", "llama-3.1-70b", "h200", "the model has no experts"),
        ("expert_all_to_all", "llama-3.1-70b", "h200", "the model has no experts"),
        ("quick_reduce", "llama-3.1-70b", "h200", "AMD's chips alone"),
        ("attention_backend", "llama-3.1-70b", "tpu-v6e", "one set of attention kernels"),
        ("cuda_graphs", "llama-3.1-70b", "tpu-v6e", "one program"),
        ("cuda_graph_mode", "llama-3.1-70b", "tpu-v6e", "one program"),
        ("hbm_frac", "llama-3.1-8b", "trainium2", "take no share"),
    ],
)
def test_inert_of_this_model_or_chip(field, model, chip_id, because):
    found = choices(field, model, chip_id)
    assert because in found.inert_because
    assert found.values == (found.default,)


@pytest.mark.parametrize(
    "field", ["tp", "tp_all_reduce", "fuse_all_reduce_norm", "prefill_replicas", "kv_transfer", "ep"]
)
def test_nothing_is_split_on_one_device(field):
    assert choices(field, chips=1).inert_because == "the cluster has one device"


def test_words_of_the_vendor_and_of_the_checkpoint():
    assert choices("attention_backend", chip_id="mi355x").values == ("auto", "aiter", "ck", "triton")
    assert "trtllm" in choices("attention_backend", chip_id="b200").values
    assert "trtllm" not in choices("attention_backend", chip_id="h200").values
    assert "mtp" in choices("speculation").values
    assert "mtp" not in choices("speculation", "llama-3.1-70b").values
    assert choices("quick_reduce", chip_id="mi355x").values == (False, True)


def test_four_bit_needs_units_for_it():
    assert "fp4" in choices("weight_dtype", chip_id="b200").values
    assert "fp4" not in choices("weight_dtype", chip_id="h200").values


def test_every_value_alone_is_legal_or_lacks_only_its_partners():
    """A value of one field breaks no rule that the same plan with other fields at their defaults keeps, save pairs."""
    hardware, model = chip("mi355x"), architecture("deepseek-v3")
    cluster = ClusterSpec(chip=hardware.id, chips=8)
    partners = {
        "device_count", "experts_inside_engine", "copies_need_ep", "dispatch_needs_ep", "overlap_ep_needs_ep",
        "token_budget", "step_budget", "pool_fields_need_pool",
    }  # fmt: skip
    for found in admissible_fields(model, cluster, hardware, LOAD):
        for value in found.values:
            fields = {"phase": "serving", found.field: value}
            if found.field in ("ep", "etp"):
                fields |= {"tp": value}
            if found.field == "attention_dp":
                fields |= {"dp": value}
            if found.field in ("speculation", "speculative_tokens") or found.field.startswith("prefill"):
                continue  # worth nothing without the other field: validated by the plan itself
            broken = {one.rule for one in check(ParallelismPlan.model_validate(fields), LOAD, model, cluster, hardware)}
            assert broken <= partners, (found.field, value)


def test_an_unknown_field_is_refused_with_the_nearest():
    with pytest.raises(UnknownName) as error:
        choices("tp_allreduce")
    assert error.value.nearest[0] == "tp_all_reduce"
    with pytest.raises(UnknownName):
        choices("micro_batch")


def test_each_phase_has_its_own_fields():
    assert "recompute" not in lever_fields("serving")
    assert "kv_cache_dtype" not in lever_fields("training")
    assert choices("micro_batch", "llama-3.1-8b", workload=TRAINING).values == (1, 2, 4, 8, 16)
    assert choices("recompute", "llama-3.1-8b", workload=TRAINING).values == ("none", "selective", "full")


def test_inert_in_this_plan():
    hardware, model = chip("mi355x"), architecture("deepseek-v3")
    cluster = ClusterSpec(chip=hardware.id, chips=8)
    plan = ParallelismPlan(phase="serving", dp=8, attention_dp=8, ep=8, cuda_graphs=False)
    reasons = inert_reasons(plan, model, cluster, hardware, LOAD)
    assert reasons["tp_all_reduce"] == "tp is 1: nothing is reduced"
    assert reasons["cuda_graph_mode"] == "CUDA graphs are off"
    assert reasons["kv_transfer"] == "there is no prefill pool"
    assert "expert_all_to_all" not in reasons
    plans = PlanBatch.from_plans([plan, plan.model_copy(update={"dp": 1, "attention_dp": 1, "tp": 8})])
    assert inert("tp_all_reduce", plans, model, cluster, hardware, LOAD).tolist() == [True, False]
    assert not inert("hbm_frac", plans, model, cluster, hardware, LOAD).any()


@pytest.mark.parametrize(
    ("fields", "model", "chip_id", "text"),
    [
        ({"speculation": "mtp", "speculative_tokens": 1}, "llama-3.1-8b", "h200",
         "prediction layers of the checkpoint, which speculation mtp drafts with: 0 < 1"),
        ({"quick_reduce": True}, "llama-3.1-8b", "h200",
         "quick_reduce kernels for this chip (AMD's alone have them): 0 < 1"),
        ({"attention_backend": "aiter"}, "llama-3.1-8b", "h200", "aiter attention kernels for h200: 0 < 1"),
        ({"redundant_experts": 8}, "deepseek-v3", "h200", "ep with redundant_experts 1 < 2"),
        ({"ep": 8, "redundant_experts": 4}, "deepseek-v3", "h200", "ep (experts) 8 does not divide 260"),
        ({"max_batched_tokens": 32}, "llama-3.1-8b", "h200",
         "max_batched_tokens against max_num_seqs of a rank: 32 < 64"),
        ({"expert_dispatch": "deepep"}, "deepseek-v3", "h200", "ep with a named expert_dispatch 1 < 2"),
        ({"overlap_ep": True}, "deepseek-v3", "h200", "ep with overlap_ep 1 < 2"),
    ],
)  # fmt: skip
def test_illegal_combinations_say_what_is_missing(fields, model, chip_id, text):
    hardware = chip(chip_id)
    plan = ParallelismPlan.model_validate({"phase": "serving", "tp": 8} | fields)
    cluster = ClusterSpec(chip=hardware.id, chips=8)
    found = check(plan, LOAD, architecture(model), cluster, hardware)
    assert [one.text for one in found] == [text]
    assert not legal_mask(PlanBatch.from_plans([plan]), LOAD, architecture(model), cluster, hardware)[0]


def test_copies_make_other_degrees_divide():
    """160 experts do not spread over 48 ranks; with 32 copies 192 slots do."""
    hardware, model = chip("h200"), architecture("qwen3-coder-480b-a35b")
    assert model.experts == 160
    plans = [ParallelismPlan(phase="serving", dp=48, attention_dp=48, ep=48, redundant_experts=n) for n in (0, 32)]
    rules = [
        {one.rule for one in check(plan, LOAD, model, ClusterSpec(chip=hardware.id, chips=48), hardware)}
        for plan in plans
    ]
    assert ["experts" in broken for broken in rules] == [True, False]
    assert np.all([plan.devices == 48 for plan in plans])


def test_libraries_that_move_the_cache_between_pools_are_those_of_the_vendor():
    assert choices("kv_transfer").values == ("auto", "nixl", "mooncake")
    assert "mori" in choices("kv_transfer", chip_id="mi355x").values


def test_a_wrong_name_without_end_is_told_back_in_part():
    error = UnknownName("objective", "ttft" + "x" * 100_000, ["ttft_ms"])
    assert len(str(error)) < 300
    assert error.name.endswith("...")
