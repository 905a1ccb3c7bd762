"""Rules about a prefill pool: those of any engine, held against its own layout, and what ties it to the plan."""

from dataclasses import replace

import numpy as np

from projector.cost.pools import pool_fields_set, prefill_pool
from projector.rules.model_rules import MODEL_RULES
from projector.rules.rule import Breach, Rule, Setting, breach
from projector.rules.serving_rules import SERVING, SERVING_RULES
from projector.specs.plan_batch import PlanBatch

# Rules of layout that a prefill engine keeps like any other; the rest judge fields both pools share.
SHARED = (
    "attention_heads", "kv_heads", "recurrent_heads", "recurrent_groups", "hidden_size", "mlp_width", "expert_width",
    "experts", "dense_has_no_experts", "stages", "experts_inside_engine",
)  # fmt: skip


def _of_prefill_engines(rule: Rule) -> Rule:
    """The rule, held against the prefill engines of plans that have some."""

    def find(plans: PlanBatch, setting: Setting) -> Breach | None:
        pooled = plans.prefill_replicas > 0
        found = rule.find(prefill_pool(plans), setting) if pooled.any() else None
        return None if found is None else replace(found, broken=found.broken & pooled)

    return replace(
        rule, name=f"prefill_{rule.name}", quantity=f"of the prefill pool: {rule.quantity}", find=find, phases=SERVING
    )


def _pool_fields_need_pool(plans: PlanBatch, _: Setting) -> Breach:
    """What is said of a prefill pool or of a transfer to it has no meaning without one."""
    changed = pool_fields_set(plans)
    return breach(plans, (plans.prefill_replicas == 0) & (changed > 0), changed, 0)


def _mori_chip(plans: PlanBatch, setting: Setting) -> Breach:
    """MoRI is a library of ROCm: there is none for other vendors' chips."""
    return breach(plans, (plans.kv_transfer == "mori") & (setting.chip.vendor != "AMD"), 0, 1)


def _pools_fit(plans: PlanBatch, setting: Setting) -> Breach:
    """A prefill pool leaves devices to decode on."""
    left = setting.devices - plans.prefill_devices
    return breach(plans, np.where(plans.prefill_replicas > 0, left < 1, False), left, 1)


POOL_RULES: tuple[Rule, ...] = (
    Rule("pool_fields_need_pool", "fields of a prefill pool set where prefill_replicas is 0:", "!=",
         _pool_fields_need_pool, SERVING),
    Rule("pools_fit", "devices a prefill pool leaves to the decode pool:", "<", _pools_fit, SERVING),
    Rule("mori_chip", "MoRI libraries for this chip (AMD's alone have one):", "<", _mori_chip, SERVING,
         needs_chip=True),
    *(_of_prefill_engines(rule) for rule in (*MODEL_RULES, *SERVING_RULES) if rule.name in SHARED),
)  # fmt: skip
