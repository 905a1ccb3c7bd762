"""vLLM: engines, ranks, experts, formats, and what it refuses."""

import pytest
from exporter_examples import has, outcome, refusal, serving_job, training_job, value_of

from agents.exporters.exporter import Job, Known
from agents.exporters.vllm import EXPORTER
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.specs.plan import ParallelismPlan


def exported(**fields):
    return EXPORTER.export(serving_job(**fields))


def test_one_engine():
    config = exported(tp=8, max_num_seqs=128, chunked_prefill_tokens=4096)
    assert config.command[:3] == ("vllm", "serve", "meta-llama/Meta-Llama-3.1-8B")
    assert value_of(config, "--tensor-parallel-size") == 8
    assert value_of(config, "--max-num-batched-tokens") == 4096
    assert config.copies == 1
    assert config.is_the_plan


def test_replicas_are_copies_of_the_command():
    config = exported(dp=4, tp=2)
    assert (config.copies, config.devices) == (4, 8)
    assert not has(config, "--data-parallel-size")
    assert EXPORTER.parse(config.command, Known(devices=8)).plan.dp == 4


def test_limits_are_those_of_one_data_parallel_rank():
    config = exported(model="mixtral-8x7b", dp=4, attention_dp=4, ep=4, max_num_seqs=64)
    assert value_of(config, "--data-parallel-size") == 4
    assert value_of(config, "--max-num-seqs") == 16
    odd = exported(model="mixtral-8x7b", dp=4, attention_dp=4, ep=4, max_num_seqs=6)
    assert refusal(odd, "max_num_seqs").instead == "8"


@pytest.mark.parametrize(
    ("ep", "etp", "flag", "refused"),
    [
        (8, 1, True, set()),
        (1, 8, False, set()),
        (1, 2, False, {"etp"}),
        (4, 1, True, {"ep"}),
        (4, 2, True, {"ep", "etp"}),
    ],
)
def test_experts_take_all_ranks_of_the_engine(ep, etp, flag, refused):
    config = exported(model="mixtral-8x7b", dp=4, attention_dp=4, tp=2, ep=ep, etp=etp)
    assert has(config, "--enable-expert-parallel") is flag
    assert {each.field for each in config.refused} == refused


def test_training_levers_are_refused_by_name():
    config = EXPORTER.export(training_job(dp=8, fsdp=8, zero_stage=3))
    assert config.command == ()
    assert "this is a training plan" in refusal(config, "fsdp").reason
    serving = EXPORTER.export(Job(ParallelismPlan(phase="serving", dp=8, fsdp=8)))
    assert refusal(serving, "fsdp").inert


def test_context_parallelism_is_refused():
    config = EXPORTER.export(Job(ParallelismPlan(phase="serving", cp=2, tp=2), hardware=chip("h100-sxm")))
    assert refusal(config, "cp").instead == "1, leaving 2 devices idle"
    assert config.devices == 2


@pytest.mark.parametrize(
    ("chip_id", "weight", "compute", "how"),
    [
        ("h100-sxm", "fp8", "fp8", "implied"),
        ("h100-sxm", "fp8", "bf16", "refused"),
        ("a100-80-sxm", "fp8", "bf16", "implied"),
        ("b200", "fp4", "fp4", "implied"),
        ("h100-sxm", "bf16", "fp8", "refused"),
    ],
)
def test_the_multiplication_follows_from_weights_and_chip(chip_id, weight, compute, how):
    config = exported(chip_id=chip_id, weight_dtype=weight, compute_dtype=compute)
    assert outcome(config, "compute_dtype") == how


def test_narrow_weights_are_quantised_while_they_are_loaded():
    config = exported(weight_dtype="fp8", compute_dtype="fp8")
    assert value_of(config, "--quantization") == "fp8_per_tensor"
    assert any("quantised already" in note for note in config.notes)
    assert refusal(exported(weight_dtype="int8"), "weight_dtype").instead == "bf16"


def test_a_wide_cache_has_the_type_of_the_activations():
    assert value_of(exported(kv_cache_dtype="fp8"), "--kv-cache-dtype") == "fp8"
    config = exported(kv_cache_dtype="fp16")
    assert refusal(config, "kv_cache_dtype").instead == "bf16"
    assert value_of(config, "--kv-cache-dtype") == "bfloat16"


def test_whole_prompts_need_room_for_the_longest_request():
    config = exported(chunked_prefill_tokens=0)
    assert has(config, "--disable-chunked-prefill")
    assert value_of(config, "--max-model-len") == 1280
    unknown = EXPORTER.export(Job(ParallelismPlan(phase="serving", chunked_prefill_tokens=0)))
    assert value_of(unknown, "--max-model-len") == "<MAX_MODEL_LEN>"


def test_an_engine_of_several_hosts():
    config = exported(tp=8, pp=2)
    assert value_of(config, "--nnodes") == 2
    assert value_of(config, "--node-rank") == "<NODE_RANK>"
    assert any("--headless" in note for note in config.notes)


def test_eager_mode():
    assert has(exported(cuda_graphs=False), "--enforce-eager")


def test_an_unknown_model_is_left_to_fill_in():
    config = EXPORTER.export(Job(ParallelismPlan(phase="serving", tp=2), hardware=chip("h100-sxm")))
    assert config.command[2] == "<HF_MODEL_ID>"
    assert "<HF_MODEL_ID>" in {each.token for each in config.placeholders}


@pytest.mark.parametrize("given", ["--trust-remote-code", "a/b; rm -rf /", "a\nb", "../../etc", "a/b/c", "-x", ""])
def test_what_is_no_identifier_never_reaches_the_command(given):
    own = architecture("llama-3.1-8b").model_copy(update={"hf_id": given})
    config = EXPORTER.export(Job(ParallelismPlan(phase="serving"), architecture=own))
    assert config.command[2] == "<HF_MODEL_ID>"
    assert given not in config.command


def test_short_flags_and_underscores():
    text = "vllm serve m -tp 4 --data_parallel_size=2 -ep --max-num-seqs 8 --port 80"
    parsed = EXPORTER.parse(text.split())
    assert (parsed.plan.tp, parsed.plan.attention_dp, parsed.plan.ep, parsed.plan.max_num_seqs) == (4, 2, 8, 16)
    assert parsed.ignored == ("--port",)


def test_devices_that_are_no_whole_number_of_engines():
    with pytest.raises(InvalidDescription, match="devices of an engine: 4 does not divide 6"):
        EXPORTER.parse(["--tensor-parallel-size", "4"], Known(devices=6))


def test_the_share_of_memory_is_always_said_as_the_release_takes_another_unasked():
    assert value_of(exported(), "--gpu-memory-utilization") == 0.9
    assert EXPORTER.parse(["vllm", "serve", "m"]).plan.hbm_frac == 0.92


def test_graphs_and_fusions_share_one_argument():
    config = exported(tp=2, cuda_graph_mode="piecewise", fuse_all_reduce_norm=True)
    said = value_of(config, "--compilation-config")
    assert said == '{"cudagraph_mode":"PIECEWISE","pass_config":{"fuse_allreduce_rms":true}}'
    assert not has(exported(tp=2), "--compilation-config")
    assert refusal(exported(cuda_graphs=False, cuda_graph_mode="piecewise"), "cuda_graph_mode").inert


def test_attention_kernels_go_by_the_name_for_the_models_kind_of_attention():
    assert value_of(exported(attention_backend="flashinfer"), "--attention-backend") == "FLASHINFER"
    latent = exported(model="deepseek-v3", tp=8, etp=8, attention_backend="flashinfer")
    assert value_of(latent, "--attention-backend") == "FLASHINFER_MLA"
    assert refusal(exported(attention_backend="ck", chip_id="mi300x"), "attention_backend").instead == "auto"


def test_a_drafter_of_its_own_is_left_to_fill_in():
    config = exported(speculation="eagle", speculative_tokens=3)
    assert value_of(config, "--spec-method") == "eagle3"
    assert value_of(config, "--spec-tokens") == 3
    assert value_of(config, "--spec-model") == "<DRAFT_MODEL>"
    mtp = exported(model="deepseek-v3", tp=8, etp=8, speculation="mtp", speculative_tokens=1)
    assert value_of(mtp, "--spec-method") == "mtp"
    assert not has(mtp, "--spec-model")


def test_copies_of_experts_need_the_balancer():
    config = exported(model="deepseek-v3", dp=8, attention_dp=8, ep=8, redundant_experts=32)
    assert has(config, "--enable-eplb")
    assert value_of(config, "--eplb-config") == '{"num_redundant_experts":32}'
    assert EXPORTER.parse(config.command, Known(devices=8)).plan.redundant_experts == 32


def test_a_prefill_pool_is_a_launch_of_its_own():
    config = exported(tp=4, prefill_replicas=1, prefill_tp=4)
    assert "--kv-transfer-config" in refusal(config, "prefill_replicas").reason
    assert not config.is_the_plan


@pytest.mark.parametrize(
    "tokens",
    [
        ["--compilation-config", "3"],
        ["--compilation-config", "{"],
        ["--enable-eplb", "--eplb-config", '{"num_redundant_experts": -1}'],
        ["--spec-method", "crystal_ball"],
        ["--attention-backend", "MAGIC"],
    ],
)
def test_engine_arguments_that_make_no_sense_are_refused(tokens):
    with pytest.raises(InvalidDescription):
        EXPORTER.parse(tokens)
