"""Rules about the model: what can be split how far. The vocabulary is no rule: trainers and servers pad it to tp."""

import math

import numpy as np

from projector.cost.stages import ends_count_as_layers
from projector.graph.columns import Switch
from projector.rules.rule import Breach, Rule, Setting, breach, does_not_divide
from projector.specs.plan_batch import PlanBatch


def _attention_heads(plans: PlanBatch, setting: Setting) -> Breach | None:
    """Of every sort of layers that attends: tp has to divide what divides the heads of all."""
    heads = [one.heads for one in setting.model.by_sort() if one.attention_layers]
    return does_not_divide(plans, plans.tp, math.gcd(*heads)) if heads else None


def _kv_heads(plans: PlanBatch, setting: Setting) -> Breach | None:
    """Up to kv_heads ranks split them; beyond, each head is copied to an equal number of ranks."""
    found = None
    for kv_heads in sorted({one.kv_heads for one in setting.model.by_sort() if one.attention_layers}):
        uneven = np.where(plans.tp <= kv_heads, kv_heads % plans.tp != 0, plans.tp % kv_heads != 0)
        mine = breach(plans, uneven, plans.tp, kv_heads)
        found = mine if found is None else found.then(mine)
    return found


def _recurrent_heads(plans: PlanBatch, setting: Setting) -> Breach | None:
    """Heads of a recurrent mixer are shared out over tp, and over cp in exchange for tokens."""
    mixer = setting.model.recurrence
    return None if mixer is None else does_not_divide(plans, plans.tp * plans.cp, mixer.heads)


def _recurrent_groups(plans: PlanBatch, setting: Setting) -> Breach | None:
    """Trainers split the groups of heads that share keys (Megatron-Core); engines copy them where tp is a multiple."""
    mixer = setting.model.recurrence
    if mixer is None or mixer.kind == "mamba1":
        return None
    split, copied = mixer.groups % plans.tp == 0, plans.tp % mixer.groups == 0
    whole = split | copied if setting.workload.phase == "serving" else split
    return breach(plans, ~whole, plans.tp, mixer.groups)


def _traded_heads(plans: PlanBatch, setting: Setting) -> Breach | None:
    """Tokens are traded for whole heads: tp and cp split them together, of keys as of queries, in every sort."""
    heads = [one.kv_heads for one in setting.model.by_sort() if one.attention_layers]
    ranks = np.where(plans.cp_kind == "all_to_all", plans.tp * plans.cp, 1)
    return does_not_divide(plans, ranks, math.gcd(*heads)) if heads else None


def _hidden_size(plans: PlanBatch, setting: Setting) -> Breach:
    return does_not_divide(plans, plans.tp, setting.model.hidden_size)


def _mlp_width(plans: PlanBatch, setting: Setting) -> Breach | None:
    if setting.model.moe_layers == setting.model.layers:
        return None
    widths = [one.intermediate_size for one in setting.model.by_sort() if one.has_dense_mlp]
    return does_not_divide(plans, plans.tp, math.gcd(*widths)) if widths else None


def _expert_width(plans: PlanBatch, setting: Setting) -> Breach | None:
    if not setting.model.is_moe:
        return None
    return does_not_divide(plans, plans.etp, setting.model.moe_intermediate_size)


def _experts(plans: PlanBatch, setting: Setting) -> Breach | None:
    """Copies of busy experts count: what is spread are slots, each of one expert."""
    if not setting.model.is_moe:
        return None
    return does_not_divide(plans, plans.ep, setting.model.experts + plans.redundant_experts)


def _dense_has_no_experts(plans: PlanBatch, setting: Setting) -> Breach | None:
    if setting.model.is_moe:
        return None
    degree = plans.ep * plans.etp
    return breach(plans, degree > 1, degree, 1)


def _stages(plans: PlanBatch, setting: Setting) -> Breach:
    """Every chunk holds at least one layer, save that the first may hold the embedding alone and the last the head.

    Chunks may be uneven (Megatron-Core's pipeline layouts, torchtitan's split by layers).
    """
    chunks, layers = plans.pp * plans.vp, setting.model.layers
    ends = (plans.vp > 1) & ends_count_as_layers(layers, chunks) & ~_uneven(plans)
    too_many = (chunks > layers) & ~ends
    return breach(plans, too_many, chunks, layers)


def _uneven(plans: PlanBatch) -> Switch:
    found: Switch = (plans.first_stage_layers > 0) | (plans.last_stage_layers > 0)
    return found


def _end_chunks(plans: PlanBatch, _: Setting) -> Breach:
    """The layers of a first or last stage of its own length divide over its virtual stages."""
    first_breaks = plans.first_stage_layers % plans.vp != 0
    broken = first_breaks | (plans.last_stage_layers % plans.vp != 0)
    return breach(plans, broken, plans.vp, np.where(first_breaks, plans.first_stage_layers, plans.last_stage_layers))


def _middle_stages(plans: PlanBatch, setting: Setting) -> Breach:
    """The stages between share the other layers evenly, with at least one layer a virtual stage."""
    between = plans.pp - (plans.first_stage_layers > 0) - (plans.last_stage_layers > 0)
    chunks = between * plans.vp
    rest = setting.model.layers - plans.first_stage_layers - plans.last_stage_layers
    shared = (rest >= chunks) & (rest % np.maximum(chunks, 1) == 0) & ((between > 0) | (rest == 0))
    return breach(plans, _uneven(plans) & (plans.pp > 1) & ~shared, chunks, rest)


def _positions(plans: PlanBatch, setting: Setting) -> Breach | None:
    """A table of learned positions ends; computed positions only lose accuracy, which is said, not refused."""
    model, tokens = setting.model, setting.workload.sequence_tokens
    if model.positions != "learned" or model.max_positions is None or tokens is None:
        return None
    return breach(plans, tokens > model.max_positions, tokens, model.max_positions)


MODEL_RULES: tuple[Rule, ...] = (
    Rule("attention_heads", "tp (attention heads)", "does not divide", _attention_heads, needs_model=True),
    Rule("kv_heads", "tp (KV heads, split or copied evenly)", "does not divide", _kv_heads, needs_model=True),
    Rule("recurrent_heads", "tp * cp (heads of recurrent layers)", "does not divide", _recurrent_heads,
         needs_model=True),
    Rule("recurrent_groups", "tp (groups of recurrent heads)", "does not divide", _recurrent_groups, needs_model=True),
    Rule("traded_heads", "tp * cp of all-to-all context parallelism (KV heads)", "does not divide", _traded_heads,
         ("training",), needs_model=True),
    Rule("hidden_size", "tp (hidden size)", "does not divide", _hidden_size, needs_model=True),
    Rule("mlp_width", "tp (MLP width)", "does not divide", _mlp_width, needs_model=True),
    Rule("expert_width", "etp (expert width)", "does not divide", _expert_width, needs_model=True),
    Rule("experts", "ep (experts)", "does not divide", _experts, needs_model=True),
    Rule("dense_has_no_experts", "ep * etp of a dense model", ">", _dense_has_no_experts, needs_model=True),
    Rule("stages", "pp * vp (layers)", ">", _stages, needs_model=True),
    Rule("end_chunks", "vp (layers of a stage of its own length)", "does not divide", _end_chunks, needs_model=True),
    Rule("middle_stages", "chunks of the other stages (their layers)", "does not divide", _middle_stages,
         needs_model=True),
    Rule("positions", "tokens of a sequence (learned positions)", ">", _positions, needs_model=True),
)  # fmt: skip
