"""Rules about a training step: batch, sequence, schedule, sharding, and fields that belong to serving."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from projector.graph.recompute_modules import chosen_modules
from projector.rules.rule import Breach, Rule, Setting, breach, does_not_divide
from projector.specs.plan import ComputeDtype, Phase, RecomputeModule
from projector.specs.plan_batch import DEFAULTS, PlanBatch, is_one_value

TRAINING: tuple[Phase, ...] = ("training",)
SERVING_FIELDS = (
    "attention_dp", "weight_dtype", "kv_cache_dtype", "max_num_seqs", "chunked_prefill_tokens", "cuda_graphs",
    "cuda_graph_mode", "expert_dtype", "max_batched_tokens", "kv_block_tokens", "hbm_frac", "fused_kernels",
    "attention_backend", "tp_all_reduce", "quick_reduce", "fuse_all_reduce_norm", "expert_all_to_all",
    "redundant_experts", "speculation", "speculative_tokens", "prefill_replicas", "prefill_tp", "prefill_pp",
    "prefill_attention_dp", "prefill_ep", "prefill_etp", "kv_transfer",
)  # fmt: skip
TRAINING_DTYPES: tuple[ComputeDtype, ...] = ("fp32", "bf16", "fp16", "fp8", "mxfp8", "nvfp4")
# Integers train on TPUs alone: MaxText's quantized products (AQT, Qwix).
TRAINING_DTYPES_OF_TPUS: tuple[ComputeDtype, ...] = (*TRAINING_DTYPES, "int8")


def count_changed(plans: PlanBatch, fields: Sequence[str]) -> NDArray[np.int64]:
    """How many of the fields differ from their default, shape [n]."""
    changed = np.zeros(len(plans), dtype=np.int64)
    for field in fields:
        column, default = plans.columns[field], DEFAULTS[field]
        if not is_one_value(column) or (len(column) and column[0] != default):
            changed += column != default
    return changed


def _training_dtype(plans: PlanBatch, setting: Setting) -> Breach:
    """Dtypes some stack trains in on this kind of chip; 4 bit only with scales of blocks."""
    tpu = setting.hardware is not None and setting.hardware.kind == "tpu"
    return breach(plans, ~np.isin(plans.compute_dtype, TRAINING_DTYPES_OF_TPUS if tpu else TRAINING_DTYPES), 0, 1)


def _serving_fields(plans: PlanBatch, _: Setting) -> Breach:
    changed = count_changed(plans, SERVING_FIELDS)
    return breach(plans, changed > 0, changed, 0)


def _global_batch(plans: PlanBatch, setting: Setting) -> Breach | None:
    batch = setting.workload.global_batch
    if batch is None:
        return None
    product = plans.dp * plans.micro_batch * plans.grad_accum
    return breach(plans, product != batch, product, batch)


def _context_chunks(plans: PlanBatch, setting: Setting) -> Breach | None:
    """Each rank gets one early and one late chunk, so the sequence splits into 2 cp chunks, or where tokens are traded
    for heads into cp."""
    if setting.workload.seq_len is None:
        return None
    chunks = np.where(plans.cp_kind == "all_to_all", plans.cp, 2 * plans.cp)
    return does_not_divide(plans, np.where(plans.cp > 1, chunks, 1), setting.workload.seq_len)


def _cp_kind_needs_cp(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, (plans.cp_kind != "ring") & (plans.cp < 2), plans.cp, 2)


def _sequence_shards(plans: PlanBatch, setting: Setting) -> Breach | None:
    if setting.workload.seq_len is None:
        return None
    shards = np.where(plans.sp, plans.cp * plans.tp, 1)
    return does_not_divide(plans, shards, setting.workload.seq_len)


def _sp_needs_tp(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, plans.sp & (plans.tp < 2), plans.tp, 2)


def _overlap_tp_needs_tp(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, plans.overlap_tp & (plans.tp < 2), plans.tp, 2)


def _fsdp_is_stage_3(plans: PlanBatch, _: Setting) -> Breach:
    """A weight-sharding group and ZeRO stage 3 are one thing; stages 1 and 2 shard over all of dp with fsdp = 1."""
    return breach(plans, (plans.fsdp > 1) & (plans.zero_stage != 3), plans.zero_stage, 3)


def _stage_3_is_fsdp(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, (plans.zero_stage == 3) & (plans.fsdp < 2) & (plans.dp > 1), plans.fsdp, 2)


def _modules_need_selective(plans: PlanBatch, _: Setting) -> Breach:
    named = plans.recompute_modules != ""
    return breach(plans, named & (plans.recompute != "selective"), 0, 1)


def _layers_need_recompute(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, (plans.recompute_layers > 0) & (plans.recompute == "none"), plans.recompute_layers, 0)


def _modules_exist(plans: PlanBatch, setting: Setting) -> Breach:
    """Modules of latent attention, of experts and of dense MLPs, only where the model has them."""
    model, missing = setting.model, np.zeros(len(plans), dtype=np.int64)
    exist: dict[RecomputeModule, bool] = {
        "mla_up_proj": model.is_mla,
        "mlp": model.moe_layers < model.layers,
        "moe": model.is_moe,
        "moe_act": model.is_moe,
        "shared_experts": bool(model.shared_experts),
    }
    for module, named in chosen_modules(plans.recompute_modules).items():
        missing += named & (not exist.get(module, True))
    return breach(plans, missing > 0, missing, 0)


def _recompute_layers(plans: PlanBatch, setting: Setting) -> Breach:
    """No more layers than the longest stage holds."""
    uneven = (plans.first_stage_layers > 0) | (plans.last_stage_layers > 0)
    between = plans.pp - (plans.first_stage_layers > 0) - (plans.last_stage_layers > 0)
    rest = setting.model.layers - plans.first_stage_layers - plans.last_stage_layers
    middle = np.where(between > 0, rest // np.maximum(between, 1), 0)
    longest = np.maximum(middle, np.maximum(plans.first_stage_layers, plans.last_stage_layers))
    most = np.where(uneven, longest, -(-setting.model.layers // plans.pp))
    return breach(plans, plans.recompute_layers > most, plans.recompute_layers, most)


def _dispatch_needs_ep(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, (plans.expert_dispatch != "auto") & (plans.ep < 2), plans.ep, 2)


def _overlap_ep_needs_ep(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, plans.overlap_ep & (plans.ep < 2), plans.ep, 2)


def _overlap_ep_needs_two(plans: PlanBatch, _: Setting) -> Breach:
    """Two micro-batches alternate: there have to be two."""
    return breach(plans, plans.overlap_ep & (plans.grad_accum < 2), plans.grad_accum, 2)


def _offload_counts_no_layers(plans: PlanBatch, _: Setting) -> Breach:
    """What is kept of some layers and of others is offloaded alike only where they keep alike."""
    return breach(plans, plans.offload_activations & (plans.recompute_layers > 0), plans.recompute_layers, 0)


def _interleaved_needs_vp(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, (plans.schedule == "interleaved") & (plans.vp < 2), plans.vp, 2)


def _vp_needs_interleaved(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, (plans.schedule != "interleaved") & (plans.vp > 1), plans.vp, 1)


def _schedule_needs_pp(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, np.isin(plans.schedule, ("zero_bubble", "dualpipe")) & (plans.pp < 2), plans.pp, 2)


def _two_way_pairs(plans: PlanBatch, _: Setting) -> Breach:
    """Of a two-way pipeline each device holds the stages of two positions."""
    return does_not_divide(plans, np.where(plans.schedule == "dualpipe", 2, 1), plans.pp)


def _two_way_micro_batches(plans: PlanBatch, _: Setting) -> Breach:
    """Half of the micro-batches enter at each end, at least as many as there are devices."""
    return breach(plans, (plans.schedule == "dualpipe") & (plans.grad_accum < 2 * plans.pp), plans.grad_accum,
                  2 * plans.pp)  # fmt: skip


def _two_way_halves(plans: PlanBatch, _: Setting) -> Breach:
    return does_not_divide(plans, np.where(plans.schedule == "dualpipe", 2, 1), plans.grad_accum)


def _vp_needs_pp(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, (plans.vp > 1) & (plans.pp < 2), plans.pp, 2)


def _uneven_needs_pp(plans: PlanBatch, _: Setting) -> Breach:
    """One stage holds all layers. Of two the first and the last are all there is, so one of them follows."""
    given = (plans.first_stage_layers > 0) | (plans.last_stage_layers > 0)
    return breach(plans, given & (plans.pp < 2), plans.pp, 2)


def _interleaved_rounds(plans: PlanBatch, _: Setting) -> Breach:
    """The interleaved schedule works in rounds of pp micro-batches."""
    return does_not_divide(plans, np.where(plans.vp > 1, plans.pp, 1), plans.grad_accum)


TRAINING_RULES: tuple[Rule, ...] = (
    Rule("serving_fields", "serving fields set in a training plan", "!=", _serving_fields, TRAINING),
    Rule("training_dtype", "training recipes for the compute dtype", "<", _training_dtype, TRAINING,
         name_quantity=lambda plan, _: f"training recipes for {plan.compute_dtype}"),
    Rule("global_batch", "dp * micro_batch * grad_accum", "!=", _global_batch, TRAINING),
    Rule("context_chunks", "2 * cp (sequence length)", "does not divide", _context_chunks, TRAINING),
    Rule("cp_kind_needs_cp", "cp with a named cp_kind", "<", _cp_kind_needs_cp, TRAINING),
    Rule("sequence_shards", "cp * tp with sp (sequence length)", "does not divide", _sequence_shards, TRAINING),
    Rule("sp_needs_tp", "tp with sp", "<", _sp_needs_tp, TRAINING),
    Rule("overlap_tp_needs_tp", "tp with overlap_tp", "<", _overlap_tp_needs_tp, TRAINING),
    Rule("dispatch_needs_ep", "ep with a named expert_dispatch", "<", _dispatch_needs_ep),
    Rule("overlap_ep_needs_ep", "ep with overlap_ep", "<", _overlap_ep_needs_ep),
    Rule("overlap_ep_needs_two", "micro-batches with overlap_ep", "<", _overlap_ep_needs_two, TRAINING),
    Rule("fsdp_is_stage_3", "zero_stage with fsdp > 1", "!=", _fsdp_is_stage_3, TRAINING),
    Rule("stage_3_is_fsdp", "fsdp with zero_stage 3", "<", _stage_3_is_fsdp, TRAINING),
    Rule("modules_need_selective", "selective recompute of the plan's recompute_modules", "<",
         _modules_need_selective, TRAINING),
    Rule("layers_need_recompute", "recompute_layers without recompute", ">", _layers_need_recompute, TRAINING),
    Rule("modules_exist", "recompute_modules that the model lacks", ">", _modules_exist, TRAINING, needs_model=True),
    Rule("recompute_layers", "recompute_layers (layers of a stage)", ">", _recompute_layers, TRAINING,
         needs_model=True),
    Rule("offload_counts_no_layers", "recompute_layers with offload_activations", ">", _offload_counts_no_layers,
         TRAINING),
    Rule("interleaved_needs_vp", "vp of an interleaved schedule", "<", _interleaved_needs_vp, TRAINING),
    Rule("vp_needs_interleaved", "vp of a schedule that is not interleaved", ">", _vp_needs_interleaved, TRAINING),
    Rule("vp_needs_pp", "pp with vp > 1", "<", _vp_needs_pp, TRAINING),
    Rule("schedule_needs_pp", "pp of a zero-bubble or two-way schedule", "<", _schedule_needs_pp, TRAINING),
    Rule("two_way_pairs", "2 (pp of a two-way schedule)", "does not divide", _two_way_pairs, TRAINING),
    Rule("two_way_micro_batches", "micro-batches of a two-way schedule", "<", _two_way_micro_batches, TRAINING),
    Rule("two_way_halves", "2 (micro-batches of a two-way schedule)", "does not divide", _two_way_halves, TRAINING),
    Rule("uneven_needs_pp", "pp with first_stage_layers or last_stage_layers", "<", _uneven_needs_pp, TRAINING),
    Rule("interleaved_rounds", "pp of an interleaved schedule (micro-batches)", "does not divide",
         _interleaved_rounds, TRAINING),
)  # fmt: skip
