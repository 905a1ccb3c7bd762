"""A row as the plans it may mean: knobs it leaves open, what its framework does unasked, and reasons to refuse it."""

import pytest
from evaluation_examples import LLAMA, MIXTRAL, row

from agents.evaluation.cases import MOST_OPEN_STEP_TOKENS, case_of
from agents.evaluation.refusal import LONGEST_REASON, Refused
from projector.specs.software import MEGATRON_2022


def case(**changes):
    return case_of(row(**changes), "modern")


def plans(**changes):
    return [plan for option in case(**changes).options for plan in option.plans]


def test_a_row_that_states_everything_means_one_plan():
    one = case()
    (plan,) = plans()
    assert (plan.dp, plan.micro_batch, plan.grad_accum, plan.recompute) == (8, 1, 8, "none")
    assert one.assumed == ()
    assert one.stratum == "modern"


def test_open_knobs_are_choices_and_marked():
    one = case(micro_batch=None, adopted={"recompute": None})
    found = [plan for option in one.options for plan in option.plans]
    assert {plan.micro_batch for plan in found} == {1, 2, 4, 8}
    assert {plan.recompute for plan in found} == {"none", "selective", "full"}
    assert one.assumed == ("micro_batch", "recompute")
    assert all(plan.dp * plan.micro_batch * plan.grad_accum == 64 for plan in found)


def test_an_open_global_batch_is_tried_up_to_what_runs_use():
    one = case(global_batch=None)
    batches = [option.workload.global_batch for option in one.options]
    assert batches[0] == 8
    assert batches[-1] * 4096 == MOST_OPEN_STEP_TOKENS
    assert one.assumed == ("global_batch",)


def test_open_virtual_stages_are_those_that_are_legal():
    found = plans(adopted={"pp": 4, "vp": None})
    assert {plan.vp for plan in found} == {1, 2, 4}
    assert {plan.schedule for plan in found if plan.vp > 1} == {"interleaved"}
    assert {plan.vp for plan in plans(adopted={"pp": 4, "vp": None, "schedule": "1F1B"})} == {1}
    assert {plan.vp for plan in plans(adopted={"pp": 4, "vp": None}, framework="Megatron-DeepSpeed")} == {1}


def test_a_framework_says_how_weights_and_optimizer_are_sharded():
    (megatron,) = plans()
    assert (megatron.fsdp, megatron.zero_stage) == (1, 1)
    (fully_sharded,) = plans(framework="torchtitan")
    assert (fully_sharded.fsdp, fully_sharded.zero_stage) == (8, 3)
    (stated,) = plans(adopted={"fsdp": 4, "zero_stage": 3})
    assert (stated.fsdp, stated.zero_stage) == (4, 3)


def test_a_megatron_of_an_old_publication_is_another_stack():
    old = case(source="arXiv:2104.04473 Table 1", framework="Megatron-LM", adopted={"tp": 2})
    (plan,) = old.options[0].plans
    assert old.software == MEGATRON_2022
    assert (plan.zero_stage, plan.sp, plan.overlap_grad_reduce) == (0, False, False)
    (new,) = plans(source="arXiv:2502.00001 Table 1", framework="Megatron-LM", adopted={"tp": 2})
    assert (new.zero_stage, new.sp, new.overlap_grad_reduce) == (1, True, True)


def test_maxtext_pushes_all_sequences_of_a_device_through_at_once():
    tpu = {"chip": "TPU-v5e", "count": 16, "topology": "4x4"}
    one = case(framework="MaxText", hardware=tpu, micro_batch=4, adopted={"fsdp": 16})
    assert [(plan.micro_batch, plan.grad_accum) for plan in one.options[0].plans] == [(4, 1)]
    assert one.cluster.topology == (4, 4)
    assert case(framework="MaxText", hardware=tpu, micro_batch=4, global_batch=None).assumed == ()


def test_how_tokens_reach_experts_is_taken_from_the_row():
    sent_to_all = case(arch=MIXTRAL, adopted={"ep": 8, "extra": {"dispatcher": "A2A"}})
    forwarded = case(arch=MIXTRAL, adopted={"ep": 8, "extra": {"dispatcher": "DeepEP", "notes": "+1f1b overlap"}})
    assert {plan.expert_dispatch for plan in sent_to_all.options[0].plans} == {"all_to_all"}
    assert {(plan.expert_dispatch, plan.overlap_ep) for plan in forwarded.options[0].plans if plan.grad_accum > 1} == {
        ("deepep", True)
    }


def test_a_row_out_of_memory_needs_no_speed():
    one = case(measured={"tokens_per_s_per_chip": None}, derived={"oom": True})
    assert one.target is None
    assert one.row.measured.out_of_memory


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"adopted": {"extra": {"offload_optimizer": True}}}, "offloaded to the host"),
        ({"arch": None}, "no architecture stated"),
        ({"arch": {"model_type": "unheard-of"}}, "unheard-of"),
        ({"arch": {"model_type": "gpt", "num_hidden_layers": None}}, "architecture lacks num_hidden_layers"),
        ({"arch": {**LLAMA, "hidden_size": -2048}}, "hidden_size"),
        ({"hardware": {"chip": "abacus"}}, "chip 'abacus' is not in the catalogue"),
        ({"seq_len": None}, "sequence length not stated"),
        ({"precision_class": "ternary"}, "precision 'ternary'"),
        ({"measured": {"tokens_per_s_per_chip": None}}, "neither speed nor memory printed"),
        ({"adopted": {"tp": 3}}, "does not divide 8 devices"),
        ({"global_batch": 60}, "global batch 60 is not a multiple of the 8 data ranks"),
        ({"micro_batch": 3}, "micro-batch 3 does not divide the 8 sequences"),
        ({"micro_batch": 0.5}, "micro-batch 0.5 does not divide"),
        ({"adopted": {"fsdp": 3}}, "fsdp 3 does not divide dp 8"),
        ({"adopted": {"ep": 3}}, "does not divide dp * cp * tp"),
        ({"adopted": {"pp": 2, "schedule": "spiral"}}, "schedule 'spiral' is not modelled"),
        ({"hardware": {"count": 2**40}, "global_batch": 2**40}, "less than or equal"),
    ],
)
def test_what_cannot_be_projected_is_refused_with_its_reason(changes, reason):
    with pytest.raises(Refused) as refusal:
        case(**changes)
    assert reason in str(refusal.value)


def test_a_value_out_of_range_is_refused_by_its_name():
    with pytest.raises(Refused, match="seq_len: Input should be less than"):
        case(seq_len=10**17)


def test_a_reason_that_quotes_a_file_stays_short():
    with pytest.raises(Refused) as refusal:
        case(hardware={"chip": "h" * 5000})
    assert len(str(refusal.value)) <= LONGEST_REASON + 3


def test_a_row_says_what_its_framework_keeps_in_memory():
    bf16 = case(framework="Megatron-DeepSpeed", release="trial 3, BF16 optimizer")
    assert bf16.software.gradient_bytes == 6
    assert case(framework="Megatron-DeepSpeed").software.gradient_bytes == 2
    assert case(framework="MaxText", adopted={"recompute": "custom"}).software.offloads_inputs
    assert not case(framework="MaxText", adopted={"recompute": "full"}).software.offloads_inputs


def test_torchtitan_did_not_compile_its_loss_before_2025():
    named = "github:pytorch/torchtitan@abc:benchmarks/llama3_h100_{}_torchtitan.md"
    old, new = (case(framework="torchtitan", source=named.format(month)) for month in ("202412", "2025-06"))
    assert (old.software.loss_bytes, new.software.loss_bytes) == (12.0, 4.0)


def test_modules_that_selective_recompute_repeats_are_read():
    adopted = {"recompute": "selective: layernorm, moe"}
    assert {(plan.recompute, plan.recompute_modules) for plan in plans(adopted=adopted)} == {
        ("selective", "layernorm+moe")
    }
    assert {plan.recompute_modules for plan in plans(adopted={"recompute": "norm, act, shared_expert"})} == {
        "layernorm+moe_act+shared_experts"
    }
    assert {plan.recompute_modules for plan in plans(adopted={"recompute": "selective"})} == {""}


def test_recompute_of_every_so_many_th_layer_is_open():
    found = plans(framework="fms-fsdp", adopted={"recompute": "selective"})
    assert {plan.recompute for plan in found} == {"none", "selective", "full"}


def test_what_a_configuration_recomputes_unless_told_otherwise_is_no_open_knob():
    one = case(framework="torchtitan", adopted={"recompute": None})
    assert {plan.recompute for option in one.options for plan in option.plans} == {"selective"}
    assert "recompute" not in one.assumed


def adapters(**changes):
    return [option.workload.adapter for option in case(phase="lora", **changes).options]


def test_a_lora_row_trains_the_adapters_it_states():
    (stated,) = adapters(note="packed length 8192; LoRA rank 16 on attention")
    assert (stated.rank, stated.targets) == (16, ("query", "key", "value", "output"))
    (by_field,) = adapters(adopted={"extra": {"lora_rank": 4, "lora_scope": "all linear"}})
    assert (by_field.rank, by_field.targets[-1], by_field.frozen_dtype) == (4, "down", "bf16")
    assert case(phase="lora", note="LoRA rank 16 on attention").assumed == ()


def test_adapters_a_row_leaves_out_are_those_of_its_framework_and_marked():
    (bridge,) = adapters(framework="Megatron-Bridge")
    (unknown,) = adapters(framework="somebody's trainer")
    assert (bridge.joint, unknown.joint) == (True, False)
    assert "adapter" in case(phase="lora").assumed


def test_frozen_weights_may_be_stored_as_narrow_as_products_run():
    assert [adapter.frozen_dtype for adapter in adapters(precision_class="fp8")] == ["bf16", "fp8"]
    assert "frozen_dtype" in case(phase="lora", precision_class="fp8").assumed
    (quantised,) = (option.workload.adapter for option in case(phase="qlora").options)
    assert quantised.frozen_dtype == "fp4"


def test_other_methods_and_phases_are_refused_by_name():
    for changes, word in (
        ({"phase": "rl"}, "rl: neither"),
        ({"phase": "sft", "adopted": {"extra": {"method": "dora"}}}, "dora: neither"),
        ({"phase": "lora", "adopted": {"extra": {"lora_scope": "heads"}}}, "'heads'"),
    ):
        with pytest.raises(Refused, match=word):
            case(**changes)


def test_where_recompute_is_open_megatron_may_repeat_some_layers_of_a_stage():
    open_ = {"adopted": {"pp": 2, "recompute": None}}
    assert {plan.recompute_layers for plan in plans(**open_) if plan.recompute == "full"} == {0, 2, 4, 6}
    assert {plan.recompute_layers for plan in plans(**open_) if plan.recompute != "full"} == {0}
    assert {plan.recompute_layers for plan in plans(framework="torchtune", adopted={"recompute": None})} == {0}
    assert {plan.recompute_layers for plan in plans(adopted={"recompute": "full"})} == {0}
