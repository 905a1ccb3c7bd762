"""MaxText: axes, slices, what its rules tie together, and what it refuses."""

from dataclasses import replace

import pytest
from exporter_examples import has, outcome, refusal, training_job, value_of

from agents.exporters.exporter import Job, Known
from agents.exporters.maxtext import EXPORTER
from agents.exporters.maxtext_model import model_name
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.specs.cluster import ClusterSpec
from projector.specs.fine_tuning import Adapter
from projector.specs.plan import ParallelismPlan
from projector.specs.sequence_lengths import SequenceLengths


def exported(model="llama-3.1-8b", chip_id="tpu-v5p", recompute="full", **fields):
    return EXPORTER.export(training_job(model=model, chip_id=chip_id, recompute=recompute, **fields))


def axes(config):
    return {
        setting.name.removesuffix("_parallelism"): setting.value
        for setting in config.settings
        if setting.name.startswith(("ici_", "dcn_")) and setting.value != 1
    }


def parse(*pairs, **known):
    return EXPORTER.parse(pairs, Known(**known)).plan


def test_a_hybrid_layout_in_one_slice():
    config = exported(dp=16, fsdp=4, zero_stage=3, tp=4)
    assert axes(config) == {"ici_data": 4, "ici_fsdp": 4, "ici_tensor": 4}
    assert config.is_the_plan
    assert value_of(config, "hardware") == "tpu"
    assert value_of(config, "per_device_batch_size") == 0.25


def test_slices_take_the_outer_axes():
    cluster = ClusterSpec(chip="tpu-v5p", chips=64, slices=4)
    plan = ParallelismPlan(dp=32, fsdp=16, zero_stage=3, tp=2, recompute="full")
    config = EXPORTER.export(Job(plan, None, architecture("llama-3.1-8b"), cluster, chip("tpu-v5p")))
    assert axes(config) == {"dcn_data": 2, "dcn_fsdp": 2, "ici_fsdp": 8, "ici_tensor": 2}


def test_a_plan_on_a_part_of_the_cluster_takes_as_few_slices():
    cluster = ClusterSpec(chip="tpu-v5p", chips=64, slices=4)
    plan = ParallelismPlan(dp=32, recompute="full")
    config = EXPORTER.export(Job(plan, None, architecture("llama-3.1-8b"), cluster, chip("tpu-v5p")))
    assert axes(config) == {"dcn_data": 2, "ici_data": 16}


def test_gpus_have_one_slice_a_fast_domain():
    config = exported(chip_id="h100-sxm", dp=32, fsdp=8, zero_stage=3)
    assert axes(config) == {"dcn_data": 4, "ici_fsdp": 8}
    assert any("4 slices of 8 devices" in note for note in config.notes)


def test_sequence_parallelism_is_an_axis_of_its_own():
    assert axes(exported(tp=4, sp=True)) == {"ici_tensor_sequence": 4}
    assert outcome(exported(tp=4), "sp") == "implied"


def test_experts_share_the_batch_and_the_weights():
    config = exported(model="mixtral-8x7b", dp=16, fsdp=16, zero_stage=3, ep=8)
    assert axes(config) == {"ici_fsdp": 2, "ici_expert": 8}
    assert config.is_the_plan


def test_the_expert_axis_shards_weights_that_the_plan_replicates():
    config = exported(model="mixtral-8x7b", dp=8, ep=8)
    assert refusal(config, "fsdp").instead == "8"
    assert refusal(config, "zero_stage").instead == "3"


def test_widths_of_experts_follow_the_tensor_axis():
    config = exported(model="mixtral-8x7b", dp=8, fsdp=8, zero_stage=3, tp=2, ep=8)
    assert refusal(config, "etp").instead == "2"
    assert outcome(exported(model="mixtral-8x7b", dp=8, fsdp=8, zero_stage=3, tp=2, ep=8, etp=2), "etp") == "implied"


def test_experts_across_tensor_ranks_have_no_axis():
    config = exported(model="mixtral-8x7b", tp=8, ep=8)
    assert refusal(config, "ep").instead == "1"


def test_the_context_axis_shards_weights():
    assert refusal(exported(dp=4, cp=2), "fsdp").reason == "the context axis shards the weights"
    assert outcome(exported(dp=4, cp=2, fsdp=4, zero_stage=3), "fsdp") == "exported"


def test_ring_attention_where_the_kernels_allow_it():
    ring = exported(dp=4, cp=2, fsdp=4, zero_stage=3)
    assert value_of(ring, "context_parallel_strategy") == "ring"
    assert value_of(ring, "use_tokamax_splash") is True
    windowed = exported(model="gpt-oss-120b", dp=4, cp=2, fsdp=4, zero_stage=3)
    assert value_of(windowed, "context_parallel_strategy") == "all_gather"
    gpu = exported(chip_id="h100-sxm", dp=4, cp=2, fsdp=4, zero_stage=3)
    assert value_of(gpu, "attention") == "cudnn_flash_te"
    assert value_of(gpu, "max_segments_per_seq") == "<MAX_SEGMENTS>"


@pytest.mark.parametrize(
    ("zero_stage", "how", "switch"), [(0, "implied", False), (1, "exported", True), (2, "refused", True)]
)
def test_optimizer_sharding(zero_stage, how, switch):
    config = exported(dp=8, zero_stage=zero_stage)
    assert outcome(config, "zero_stage") == how
    assert has(config, "shard_optimizer_over_data") is switch


def test_pipelines_are_not_one_forward_one_backward():
    config = exported(pp=4, vp=2, schedule="interleaved", grad_accum=8)
    assert "GPipe" in refusal(config, "schedule").reason
    assert value_of(config, "num_pipeline_repeats") == 2
    assert value_of(config, "num_layers_per_pipeline_stage") == 4
    assert value_of(config, "num_pipeline_microbatches") == 8
    assert value_of(config, "per_device_batch_size") == 2.0


def test_layers_that_do_not_fill_the_stages_run_outside():
    config = exported(model="llama-3.1-405b", pp=4, grad_accum=4)
    assert value_of(config, "pipeline_parallel_layers") == 124


def test_leading_dense_layers_stay_outside_the_pipeline():
    config = exported(model="deepseek-v2", pp=4, grad_accum=4)
    assert value_of(config, "num_layers_per_pipeline_stage") == 14
    assert value_of(config, "pipeline_parallel_layers") == 56


def test_pipeline_micro_batches_are_a_multiple_of_the_stages():
    config = exported(pp=4, grad_accum=6)
    assert refusal(config, "grad_accum").instead == "4"


def test_recompute_none_cannot_be_said():
    config = exported(recompute="none")
    assert value_of(config, "remat_policy") == "minimal_with_context"
    assert "recomputes whole layers" in refusal(config, "recompute").reason
    assert outcome(exported(recompute="selective"), "recompute") == "exported"


def test_quantisation_depends_on_the_chip_and_leaves_experts_out():
    assert value_of(exported(chip_id="tpu-v7x-ironwood", dp=2, compute_dtype="fp8"), "quantization") == "fp8_full"
    assert value_of(exported(chip_id="h100-sxm", compute_dtype="fp8"), "quantization") == "te_fp8_currentscaling"
    assert outcome(exported(chip_id="mi300x", compute_dtype="fp8"), "compute_dtype") == "refused"
    moe = exported(model="mixtral-8x7b", chip_id="h100-sxm", dp=8, compute_dtype="fp8")
    assert "grouped expert GEMMs" in refusal(moe, "compute_dtype").reason


def test_overlap_is_not_a_setting():
    config = exported(dp=2, overlap_grad_reduce=False, overlap_tp=False)
    assert refusal(config, "overlap_grad_reduce").instead == "on"
    assert outcome(config, "overlap_param_gather") == "implied"


def test_a_chip_that_is_neither():
    config = EXPORTER.export(Job(ParallelismPlan(dp=2), hardware=chip("trainium1")))
    assert config.command == ()


def test_model_names():
    assert model_name(architecture("llama-3.1-8b")) == "llama3.1-8b"
    assert model_name(architecture("gpt3-175b")) == "gpt3-175b"
    own = architecture("llama-3.1-8b").model_copy(update={"layers": 40})
    assert model_name(own) is None
    config = EXPORTER.export(Job(ParallelismPlan()))
    assert value_of(config, "model_name") == "<MODEL_NAME>"


def test_open_axes_fill_up():
    plan = parse("ici_tensor_parallelism=4", "per_device_batch_size=1", devices=16)
    assert (plan.dp, plan.fsdp, plan.tp, plan.micro_batch) == (4, 4, 4, 4)


def test_two_slices_replicate_by_default():
    plan = parse("num_slices=2", "per_device_batch_size=1", devices=16)
    assert (plan.dp, plan.fsdp) == (16, 8)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (("ici_tensor_parallelism=3",), "3 does not divide 8"),
        (("ici_tensor_parallelism=-1",), "both left open"),
        (("per_device_batch_size=lots",), "not a number above 0"),
        (("per_device_batch_size=nan",), "not a number above 0"),
        (("per_device_batch_size=1e308",), "not a number above 0"),
        (("quantization=fp3",), "'fp3'"),
        (("shard_optimizer_over_data=perhaps",), "neither true nor false"),
        (("ici_fsdp_parallelism=8", "per_device_batch_size=0.3"), "8 does not divide 2"),
    ],
)
def test_overrides_that_cannot_be(pairs, message):
    with pytest.raises(InvalidDescription, match=message):
        parse(*pairs, devices=8)


def test_the_devices_have_to_be_known_where_an_axis_is_open():
    with pytest.raises(InvalidDescription, match="left to fill up the devices"):
        parse("ici_tensor_parallelism=4")


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
