"""Rules about the model: what can be split how far. The vocabulary is no rule: trainers and servers pad it to tp."""

import numpy as np

from projector.rules.rule import Breach, Rule, Setting, breach, does_not_divide
from projector.specs.plan_batch import PlanBatch


def _attention_heads(plans: PlanBatch, setting: Setting) -> Breach:
    return does_not_divide(plans, plans.tp, setting.model.heads)


def _kv_heads(plans: PlanBatch, setting: Setting) -> Breach:
    """Up to kv_heads ranks split them; beyond, each head is copied to an equal number of ranks."""
    kv_heads = setting.model.kv_heads
    uneven = np.where(plans.tp <= kv_heads, kv_heads % plans.tp != 0, plans.tp % kv_heads != 0)
    return breach(plans, uneven, plans.tp, kv_heads)


def _hidden_size(plans: PlanBatch, setting: Setting) -> Breach:
    return does_not_divide(plans, plans.tp, setting.model.hidden_size)


def _mlp_width(plans: PlanBatch, setting: Setting) -> Breach | None:
    if setting.model.moe_layers == setting.model.layers:
        return None
    return does_not_divide(plans, plans.tp, setting.model.intermediate_size)


def _expert_width(plans: PlanBatch, setting: Setting) -> Breach | None:
    if not setting.model.is_moe:
        return None
    return does_not_divide(plans, plans.etp, setting.model.moe_intermediate_size)


def _experts(plans: PlanBatch, setting: Setting) -> Breach | None:
    if not setting.model.is_moe:
        return None
    return does_not_divide(plans, plans.ep, setting.model.experts)


def _dense_has_no_experts(plans: PlanBatch, setting: Setting) -> Breach | None:
    if setting.model.is_moe:
        return None
    degree = plans.ep * plans.etp
    return breach(plans, degree > 1, degree, 1)


def _stages(plans: PlanBatch, setting: Setting) -> Breach:
    """Every stage holds at least one layer; stages may be uneven where nothing is interleaved."""
    return breach(plans, plans.pp * plans.vp > setting.model.layers, plans.pp * plans.vp, setting.model.layers)


def _even_virtual_stages(plans: PlanBatch, setting: Setting) -> Breach:
    """Interleaving needs chunks of equal size."""
    chunks = plans.pp * plans.vp
    return breach(plans, (plans.vp > 1) & (setting.model.layers % chunks != 0), chunks, setting.model.layers)


MODEL_RULES: tuple[Rule, ...] = (
    Rule("attention_heads", "tp (attention heads)", "does not divide", _attention_heads, needs_model=True),
    Rule("kv_heads", "tp (KV heads, split or copied evenly)", "does not divide", _kv_heads, needs_model=True),
    Rule("hidden_size", "tp (hidden size)", "does not divide", _hidden_size, needs_model=True),
    Rule("mlp_width", "tp (MLP width)", "does not divide", _mlp_width, needs_model=True),
    Rule("expert_width", "etp (expert width)", "does not divide", _expert_width, needs_model=True),
    Rule("experts", "ep (experts)", "does not divide", _experts, needs_model=True),
    Rule("dense_has_no_experts", "ep * etp of a dense model", ">", _dense_has_no_experts, needs_model=True),
    Rule("stages", "pp * vp (layers)", ">", _stages, needs_model=True),
    Rule("even_virtual_stages", "pp * vp (layers)", "does not divide", _even_virtual_stages, needs_model=True),
)
