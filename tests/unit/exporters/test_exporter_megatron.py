"""Megatron-LM: what each plan field becomes, and what it refuses."""

from dataclasses import replace

import pytest
from exporter_examples import has, outcome, refusal, serving_job, training_job, value_of

from agents.exporters.exporter import Job, Known, Variable
from agents.exporters.megatron import EXPORTER
from projector.errors import InvalidDescription
from projector.specs.fine_tuning import Adapter
from projector.specs.plan import ParallelismPlan
from projector.specs.sequence_lengths import SequenceLengths


def exported(**fields):
    return EXPORTER.export(training_job(**fields))


def parse(text, **known):
    return EXPORTER.parse(text.split(), Known(**known))


def test_a_three_dimensional_layout():
    config = exported(dp=2, tp=8, pp=4, sp=True, micro_batch=2, grad_accum=16)
    assert config.command[:5] == ("torchrun", "--nnodes", "8", "--nproc-per-node", "8")
    assert value_of(config, "--tensor-model-parallel-size") == 8
    assert value_of(config, "--pipeline-model-parallel-size") == 4
    assert value_of(config, "--global-batch-size") == 2 * 2 * 16
    assert has(config, "--sequence-parallel")
    assert config.is_the_plan
    assert outcome(config, "dp") == "implied"


def test_interleaving_is_said_by_the_virtual_stages():
    config = exported(pp=4, vp=2, schedule="interleaved", grad_accum=8)
    assert value_of(config, "--num-virtual-stages-per-pipeline-rank") == 2
    assert outcome(config, "schedule") == "implied"


def test_embedding_and_head_count_as_layers_where_that_makes_equal_chunks():
    config = exported(model="llama-3.1-405b", pp=4, vp=4, schedule="interleaved", grad_accum=4)
    assert has(config, "--account-for-embedding-in-pipeline-split")
    assert has(config, "--account-for-loss-in-pipeline-split")
    assert not has(exported(pp=4, grad_accum=4), "--account-for-loss-in-pipeline-split")


def test_stages_that_do_not_divide_get_a_layout_with_the_longer_ones_first():
    config = exported(model="deepseek-v3", pp=4, grad_accum=4)
    assert value_of(config, "--pipeline-model-parallel-layout") == "Et*16|t*15|t*15|t*15L"
    assert any("61 layers" in note for note in config.notes)


def test_chunks_that_do_not_divide_get_a_layout_in_place_of_their_number():
    config = exported(model="deepseek-v3", pp=4, vp=2, schedule="interleaved", grad_accum=4)
    assert value_of(config, "--pipeline-model-parallel-layout") == "Et*8|t*8|t*8|t*8|t*8|t*7|t*7|t*7L"
    assert not has(config, "--num-virtual-stages-per-pipeline-rank")
    assert EXPORTER.parse(config.command).plan.vp == 2


def test_a_layout_with_groups_is_refused_by_name():
    with pytest.raises(InvalidDescription, match="layout"):
        EXPORTER.parse(("--pipeline-model-parallel-layout", "E|(t|)*3L"), Known(devices=8))


def test_first_and_last_stages_of_their_own_length_are_written():
    config = exported(model="deepseek-v3", pp=4, first_stage_layers=16, last_stage_layers=13, grad_accum=4)
    assert value_of(config, "--decoder-first-pipeline-num-layers") == 16
    assert value_of(config, "--decoder-last-pipeline-num-layers") == 13
    assert not has(config, "--pipeline-model-parallel-layout")


@pytest.mark.parametrize("schedule", ["zero_bubble", "dualpipe"])
def test_schedules_without_an_argument_are_refused(schedule):
    config = exported(pp=4, schedule=schedule, grad_accum=8)
    assert outcome(config, "schedule") == "refused"


@pytest.mark.parametrize(
    ("fields", "flags"),
    [
        ({"zero_stage": 1}, {"--use-distributed-optimizer": None}),
        ({"zero_stage": 2}, {"--use-megatron-fsdp": None, "--data-parallel-sharding-strategy": "optim_grads"}),
        ({"fsdp": 8, "zero_stage": 3}, {"--data-parallel-sharding-strategy": "optim_grads_params"}),
        ({"fsdp": 2, "zero_stage": 3}, {"--num-distributed-optimizer-instances": 4}),
    ],
)
def test_sharding(fields, flags):
    config = exported(dp=8, **fields)
    assert {name: value_of(config, name) for name in flags} == flags
    assert config.is_the_plan


def test_fsdp_forbids_the_variable_that_tensor_parallelism_demands():
    assert exported(tp=2).environment == (Variable(name="CUDA_DEVICE_MAX_CONNECTIONS", value="1"),)
    sharded = exported(dp=4, fsdp=4, zero_stage=3)
    assert sharded.environment == (Variable(name="CUDA_DEVICE_MAX_CONNECTIONS", value=None),)
    assert value_of(sharded, "--ckpt-format") == "fsdp_dtensor"
    assert exported(dp=4).environment == ()


def test_fully_sharded_weights_are_always_overlapped():
    config = exported(dp=4, fsdp=4, zero_stage=3, overlap_grad_reduce=False, overlap_param_gather=False)
    assert {each.field for each in config.refused} == {"overlap_grad_reduce", "overlap_param_gather"}
    assert refusal(config, "overlap_param_gather").instead == "on"
    assert not config.is_the_plan


def test_a_gather_overlap_without_gathers_is_refused_without_effect():
    config = exported(dp=4, overlap_param_gather=False)
    assert refusal(config, "overlap_param_gather").inert
    assert config.is_the_plan


def test_gathers_cannot_overlap_alone():
    config = exported(dp=4, zero_stage=1, overlap_grad_reduce=False)
    assert refusal(config, "overlap_param_gather").reason == "needs overlap_grad_reduce"
    assert not has(config, "--overlap-param-gather")


def test_experts_with_tensor_parallelism_need_sequence_parallelism():
    config = exported(model="mixtral-8x7b", dp=4, tp=2, ep=8)
    assert refusal(config, "sp").instead == "on"
    assert has(config, "--sequence-parallel")


def test_experts_with_biases_are_not_sliced():
    config = exported(model="gpt-oss-120b", dp=4, tp=2, sp=True, ep=4, etp=2)
    assert refusal(config, "etp").instead == "1"
    assert value_of(config, "--expert-tensor-parallel-size") == 1


def test_replicas_that_do_not_divide_the_ranks_of_the_experts():
    config = exported(model="mixtral-8x7b", dp=8, fsdp=2, zero_stage=3, ep=4)
    assert refusal(config, "fsdp").instead == "8"


def test_narrow_types():
    assert value_of(exported(compute_dtype="fp8"), "--fp8-format") == "hybrid"
    assert value_of(exported(chip_id="b200", compute_dtype="fp4"), "--fp4-format") == "e2m1"
    assert refusal(exported(compute_dtype="int8"), "compute_dtype").instead == "bf16"
    assert not {"--bf16", "--fp16"} & {setting.name for setting in exported(compute_dtype="fp32").settings}


def test_selective_recompute_names_its_modules_and_a_recipe_that_allows_them():
    config = exported(model="mixtral-8x7b", dp=8, recompute="selective", compute_dtype="fp8")
    assert value_of(config, "--recompute-modules") == ("layernorm", "moe_act")
    assert value_of(config, "--fp8-recipe") == "tensorwise"


def test_overlapped_tensor_parallelism_needs_sequence_parallelism():
    assert outcome(exported(tp=2, sp=True, overlap_tp=True), "overlap_tp") == "exported"
    assert outcome(exported(tp=2, overlap_tp=True), "overlap_tp") == "refused"


def test_the_shape_comes_from_the_catalogue_and_what_it_lacks_is_left_open():
    config = exported(model="deepseek-v3", dp=8, ep=8)
    assert value_of(config, "--kv-lora-rank") == 512
    assert value_of(config, "--moe-layer-freq") == "([0]*3+[1]*58)"
    assert not has(config, "--group-query-attention")
    assert value_of(config, "--normalization") == "<NORMALIZATION>"
    assert "<NORMALIZATION>" in {each.token for each in config.placeholders}


def test_without_a_chip_the_processes_are_stated_in_words():
    config = EXPORTER.export(Job(ParallelismPlan(dp=12)))
    assert "<NODES>" in config.command
    assert any("start 12 processes" in note for note in config.notes)
    assert EXPORTER.parse(config.command, Known(devices=12)).plan.dp == 12


def test_serving_plans_and_tpus_are_refused_whole():
    for job in (serving_job(), training_job(chip_id="tpu-v5p")):
        config = EXPORTER.export(job)
        assert config.command == ()
        assert not config.is_the_plan
        assert {each.field for each in config.refused} == set(ParallelismPlan.model_fields)


def test_serving_fields_in_a_training_plan_are_named():
    config = exported(max_num_seqs=8)
    assert refusal(config, "max_num_seqs").inert


def test_a_command_of_somebody_else():
    parsed = parse(
        "torchrun --nproc_per_node=8 --nnodes=4 pretrain_gpt.py --tensor-model-parallel-size 4 --lr 1e-4 "
        "--micro-batch-size 2 --global-batch-size 64 --bf16 --num-experts 8 --expert-model-parallel-size 8"
    )
    assert parsed.plan.dp == 8
    assert parsed.plan.grad_accum == 4
    assert parsed.plan.etp == 4
    assert not parsed.plan.overlap_grad_reduce
    assert parsed.ignored == ("--lr",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--tensor-model-parallel-size eight", "not a whole number"),
        ("--tensor-model-parallel-size 0", "not a whole number"),
        ("--tensor-model-parallel-size --bf16", "stands without its value"),
        ("--tensor-model-parallel-size 3", "3 does not divide 8"),
        ("--recompute-granularity most", "'most'"),
        ("--global-batch-size 12", "8 does not divide 12"),
        ("--expert-model-parallel-size 3 --expert-tensor-parallel-size 1", "contradict each other: ep * etp"),
    ],
)
def test_arguments_that_cannot_be(text, message):
    with pytest.raises(InvalidDescription, match=message.replace("*", r"\*")):
        parse(text, devices=8)


def test_the_processes_have_to_be_known():
    with pytest.raises(InvalidDescription, match="number of processes"):
        parse("--tensor-model-parallel-size 2")


def test_adapters_are_not_launched_as_a_step_on_all_weights():
    job = training_job(dp=8, fsdp=8, zero_stage=3)
    work = job.workload.model_copy(update={"adapter": Adapter(rank=16)})
    config = EXPORTER.export(replace(job, workload=work))
    assert config.command == ()
    assert all("low-rank adapters" in each.reason for each in config.refused)


def test_packed_rows_are_left_to_the_data_and_said():
    job = training_job(dp=8, fsdp=8, zero_stage=3)
    work = job.workload.model_copy(update={"lengths": SequenceLengths(rows="packed", mean_tokens=512)})
    assert any("512 tokens in the mean, packed" in note for note in EXPORTER.export(replace(job, workload=work)).notes)
