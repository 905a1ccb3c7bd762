"""Jobs for the exporter tests: plain ones by keyword, and every legal one hypothesis can think of."""

from hypothesis import assume
from hypothesis import strategies as st

from agents.exporters.exporter import Job
from projector.catalog import architecture, chip
from projector.legality import check
from projector.rules.training_rules import TRAINING_DTYPES
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.vendors import attention_backends
from projector.specs.workload import WorkloadSpec

SEQ_LEN = 2048
# dense and grouped, many narrow experts with a window, wide experts, latent attention behind dense layers, 126 layers
MODELS = ("llama-3.1-8b", "gpt-oss-120b", "mixtral-8x7b", "deepseek-v3", "llama-3.1-405b", "gpt3-175b")
CHIPS = ("h100-sxm", "b200", "a100-80-sxm", "mi300x", "mi250x", "tpu-v5p", "tpu-v6e")
POWERS = (1, 2, 4, 8, 16)


def training_job(model="llama-3.1-8b", chip_id="h100-sxm", **fields):
    """A training job whose workload and cluster fit the plan."""
    plan = ParallelismPlan(**fields)
    load = WorkloadSpec(seq_len=SEQ_LEN, global_batch=plan.dp * plan.micro_batch * plan.grad_accum)
    return _job(plan, load, model, chip_id)


def serving_job(model="llama-3.1-8b", chip_id="h100-sxm", **fields):
    """A serving job of 1024 prompt and 256 new tokens a request."""
    plan = ParallelismPlan(phase="serving", **fields)
    return _job(plan, WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=64), model, chip_id)


def _job(plan, load, model, chip_id):
    profile = chip(chip_id)
    assert plan.devices % profile.devices_per_chip == 0
    cluster = ClusterSpec(chip=profile.id, chips=plan.devices // profile.devices_per_chip)
    return Job(plan, load, architecture(model), cluster, profile)


def outcome(config, field):
    """How a plan field fared: 'exported', 'implied' or 'refused'."""
    refused = {refusal.field for refusal in config.refused}
    return "refused" if field in refused else {each.field: each.how for each in config.stated}[field]


def refusal(config, field):
    """The refusal of a field."""
    return next(each for each in config.refused if each.field == field)


def value_of(config, name):
    """Value of a setting; None for a switch. KeyError where it is absent."""
    return {setting.name: setting.value for setting in config.settings}[name]


def has(config, name):
    """Whether a setting is there."""
    return name in {setting.name for setting in config.settings}


def _has(model, module):
    if module == "mlp":
        return model.moe_layers < model.layers
    return model.is_moe or not module.startswith("moe")


@st.composite
def training_jobs(draw):
    """Legal training jobs: the degrees are drawn so that few have to be thrown away."""
    model, profile = architecture(draw(st.sampled_from(MODELS))), chip(draw(st.sampled_from(CHIPS)))
    tp = draw(st.sampled_from([t for t in (1, 2, 4, 8) if _splits(model, t)]))
    pp = draw(st.sampled_from([p for p in (1, 2, 3, 4) if p <= model.layers]))
    vp = draw(st.sampled_from([v for v in (1, 2, 4) if v == 1 or (pp > 1 and _interleaves(model, pp * v))]))
    dp, cp = draw(st.sampled_from(POWERS)), draw(st.sampled_from([1, 1, 2, 4]))
    fsdp = draw(st.sampled_from([d for d in POWERS if dp % d == 0]))
    ep, etp = draw(_expert_degrees(model, dp * cp * tp, (1, tp)))
    zero_stage = 3 if fsdp > 1 else draw(st.sampled_from([0, 1, 2, 3] if dp == 1 else [0, 1, 2]))
    recompute = draw(st.sampled_from(["none", "selective", "full"]))
    grad_accum = draw(st.integers(1, 9)) * (pp if vp > 1 else 1)
    modules = [m for m in ("core_attn", "layernorm", "mlp", "moe", "moe_act") if draw(st.booleans()) and _has(model, m)]
    plan = ParallelismPlan(
        dp=dp,
        fsdp=fsdp,
        zero_stage=zero_stage,
        optimizer_shard=draw(st.sampled_from([0, *(d for d in POWERS if d < dp * cp and dp * cp % d == 0)]))
        if zero_stage == 1
        else 0,
        tp=tp,
        sp=tp > 1 and draw(st.booleans()),
        pp=pp,
        vp=vp,
        schedule="interleaved" if vp > 1 else "1f1b",
        first_stage_layers=draw(st.sampled_from([0, *_first_stages(model.layers, pp, vp)])),
        cp=cp,
        cp_kind=draw(
            st.sampled_from(["ring", "all_gather", *(["all_to_all"] if model.kv_heads % (tp * cp) == 0 else [])])
        )
        if cp > 1
        else "ring",
        ep=ep,
        etp=etp,
        expert_dispatch=draw(st.sampled_from(["auto", "all_to_all", "deepep", "all_gather"])) if ep > 1 else "auto",
        overlap_ep=ep > 1 and grad_accum > 1 and draw(st.booleans()),
        micro_batch=draw(st.integers(1, 5)),
        grad_accum=grad_accum,
        optimizer=draw(st.sampled_from(["adam", "adam_bf16", "adam_8bit", "adafactor", "muon", "sgd"])),
        offload_optimizer=profile.host is not None and draw(st.booleans()),
        recompute=recompute,
        recompute_modules="+".join(modules) if recompute == "selective" else "",
        recompute_layers=0 if recompute == "none" else draw(st.integers(0, -(-model.layers // pp))),
        compute_dtype=draw(st.sampled_from(sorted({*TRAINING_DTYPES} & {*profile.peak_flop_per_s}))),
        overlap_grad_reduce=draw(st.booleans()),
        overlap_param_gather=draw(st.booleans()),
        overlap_tp=tp > 1 and draw(st.booleans()),
    )
    batch = plan.dp * plan.micro_batch * plan.grad_accum
    return _known(draw, plan, WorkloadSpec(seq_len=SEQ_LEN, global_batch=batch), model, profile)


def _first_stages(layers, pp, vp):
    """Lengths of a first stage that leave the others an even split."""
    if pp == 1:
        return []
    return [first for first in range(vp, layers // pp + 3, vp) if (layers - first) % ((pp - 1) * vp) == 0][-2:]


@st.composite
def serving_jobs(draw):
    """Legal serving jobs."""
    model, profile = architecture(draw(st.sampled_from(MODELS))), chip(draw(st.sampled_from(CHIPS)))
    tp = draw(st.sampled_from([t for t in (1, 2, 4, 8) if _splits(model, t)]))
    attention_dp, replicas = draw(st.sampled_from([1, 1, 2, 4])), draw(st.sampled_from([1, 2, 3]))
    ranks = attention_dp * tp
    ep, etp = draw(_expert_degrees(model, ranks, (1, tp, ranks)))
    limit = draw(st.sampled_from([1, 7, 64, 256]))
    plan = ParallelismPlan(
        phase="serving",
        dp=attention_dp * replicas,
        attention_dp=attention_dp,
        tp=tp,
        pp=draw(st.sampled_from([1, 1, 2])),
        ep=ep,
        etp=etp,
        compute_dtype=draw(st.sampled_from(sorted(profile.peak_flop_per_s))),
        weight_dtype=draw(st.sampled_from(["bf16", "fp16", "fp32", "fp8", "int8", "fp4"])),
        kv_cache_dtype=draw(st.sampled_from(["bf16", "fp16", "fp32", "fp8", "int8", "fp4"])),
        max_num_seqs=limit,
        chunked_prefill_tokens=draw(st.sampled_from([0, max(limit, 512), 2048, 8192])),
        cuda_graphs=draw(st.booleans()),
        **draw(_engine_fields(model, profile, ep)),
    )
    load = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=64)
    return _known(draw, plan, load, model, profile)


@st.composite
def _engine_fields(draw, model, profile, ep):
    """Kernels, graphs, memory and speculation of an engine."""
    drafter = draw(st.sampled_from(["none", "eagle", "ngram", "draft_model", *(["mtp"] if model.mtp_layers else [])]))
    return {
        "cuda_graph_mode": draw(st.sampled_from(["full", "piecewise"])),
        "hbm_frac": draw(st.sampled_from([0.8, 0.9, 0.95])),
        "kv_block_tokens": draw(st.sampled_from([16, 32, 64])),
        "attention_backend": draw(st.sampled_from(attention_backends(profile))),
        "fuse_all_reduce_norm": draw(st.booleans()),
        "speculation": drafter,
        "speculative_tokens": 0 if drafter == "none" else draw(st.integers(1, 8)),
        "expert_dispatch": draw(st.sampled_from(["auto", "all_to_all", "deepep", "all_gather"]))
        if ep > 1 and profile.kind == "gpu"
        else "auto",
        "overlap_ep": ep > 1 and draw(st.booleans()),
        "redundant_experts": draw(st.sampled_from([0, 16, 32])) if ep > 1 else 0,
    }


def _interleaves(model, chunks):
    return chunks <= model.layers


def _splits(model, tp):
    kv = model.kv_heads
    even = kv % tp == 0 if tp <= kv else tp % kv == 0
    widths = (model.heads, model.hidden_size, model.intermediate_size)
    return even and all(width % tp == 0 for width in widths)


def _expert_degrees(model, ranks, slices):
    if not model.is_moe:
        return st.just((1, 1))
    fits = [
        (ep, etp)
        for ep in POWERS
        for etp in sorted(set(slices))
        if ranks % (ep * etp) == 0 and model.experts % ep == 0 and model.moe_intermediate_size % etp == 0
    ]
    return st.sampled_from(fits)


def _known(draw, plan, load, model, profile):
    """The job, if it is legal, now and then without its model, chip or workload."""
    per_chip = profile.devices_per_chip
    cluster = ClusterSpec(chip=profile.id, chips=plan.devices // per_chip) if plan.devices % per_chip == 0 else None
    if cluster is not None:
        assume(not check(plan, load, model, cluster, profile))
    with_model, with_chip, with_load = (draw(st.integers(0, 5)) > 0 for _ in range(3))
    return Job(
        plan,
        load if with_load else None,
        model if with_model else None,
        cluster if with_chip else None,
        profile if with_chip else None,
    )
