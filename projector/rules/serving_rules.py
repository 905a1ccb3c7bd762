"""Rules about a serving engine, and fields that belong to training."""

import numpy as np

from projector.rules.rule import Breach, Rule, Setting, breach, does_not_divide
from projector.rules.training_rules import count_changed
from projector.specs.plan import Phase
from projector.specs.plan_batch import PlanBatch
from projector.specs.vendors import attention_backends, has_quick_reduce

SERVING: tuple[Phase, ...] = ("serving",)
TRAINING_FIELDS = (
    "fsdp", "zero_stage", "optimizer_shard", "sp", "vp", "micro_batch", "grad_accum", "recompute", "recompute_modules",
    "recompute_layers", "schedule", "first_stage_layers", "last_stage_layers",
    "overlap_grad_reduce", "overlap_param_gather", "overlap_tp", "cp_kind", "optimizer",
    "offload_optimizer", "offload_activations",
)  # fmt: skip


def _training_fields(plans: PlanBatch, _: Setting) -> Breach:
    changed = count_changed(plans, TRAINING_FIELDS)
    return breach(plans, changed > 0, changed, 0)


def _no_context_parallelism(plans: PlanBatch, _: Setting) -> Breach:
    """Context-parallel serving exists and is not modelled: refused rather than guessed."""
    return breach(plans, plans.cp > 1, plans.cp, 1)


def _seats_for_ranks(plans: PlanBatch, _: Setting) -> Breach:
    """Each attention rank owns whole requests: seats for fewer than one a rank leave ranks idle for good."""
    return breach(plans, plans.max_num_seqs < plans.attention_dp, plans.max_num_seqs, plans.attention_dp)


def _token_budget(plans: PlanBatch, _: Setting) -> Breach:
    """Engines refuse a token budget a step that is smaller than the number of sequences they may run; with attention
    data parallelism both are of one rank."""
    chunk, seqs = plans.chunked_prefill_tokens, -(-plans.max_num_seqs // plans.attention_dp)
    return breach(plans, (chunk > 0) & (chunk < seqs), chunk, seqs)


def _experts_inside_engine(plans: PlanBatch, _: Setting) -> Breach:
    """An engine is attention_dp * tp ranks a stage; its experts cannot live in another one."""
    return does_not_divide(plans, plans.ep * plans.etp, plans.attention_dp * plans.tp)


def _step_budget(plans: PlanBatch, _: Setting) -> Breach:
    """Engines refuse a budget of a rank's step that cannot hold a token of each of its sequences, and the drafted ones
    that are verified with it."""
    budget, share = plans.max_batched_tokens, -(-plans.max_num_seqs // plans.attention_dp)
    share = share * (1 + plans.speculative_tokens)
    return breach(plans, (budget > 0) & (budget < share), budget, share)


def _prediction_layers(plans: PlanBatch, setting: Setting) -> Breach:
    return breach(plans, (plans.speculation == "mtp") & (setting.model.mtp_layers == 0), setting.model.mtp_layers, 1)


def _backend_exists(plans: PlanBatch, setting: Setting) -> Breach:
    return breach(plans, ~np.isin(plans.attention_backend, attention_backends(setting.chip)), 0, 1)


def _quick_reduce_exists(plans: PlanBatch, setting: Setting) -> Breach:
    return breach(plans, plans.quick_reduce & (not has_quick_reduce(setting.chip)), 0, 1)


def _deepep_exists(plans: PlanBatch, setting: Setting) -> Breach:
    return breach(plans, (plans.expert_dispatch == "deepep") & (setting.chip.kind != "gpu"), 0, 1)


def _copies_need_ep(plans: PlanBatch, _: Setting) -> Breach:
    return breach(plans, (plans.redundant_experts > 0) & (plans.ep < 2), plans.ep, 2)


SERVING_RULES: tuple[Rule, ...] = (
    Rule("training_fields", "training fields set in a serving plan", "!=", _training_fields, SERVING),
    Rule("no_context_parallelism", "cp of a serving plan", ">", _no_context_parallelism, SERVING),
    Rule("seats_for_ranks", "max_num_seqs against attention_dp:", "<", _seats_for_ranks, SERVING),
    Rule("token_budget", "chunked_prefill_tokens against max_num_seqs:", "<", _token_budget, SERVING),
    Rule("experts_inside_engine", "ep * etp (attention_dp * tp)", "does not divide", _experts_inside_engine, SERVING),
    Rule("step_budget", "max_batched_tokens against max_num_seqs of a rank:", "<", _step_budget, SERVING),
    Rule("prediction_layers", "prediction layers of the checkpoint, which speculation mtp drafts with:", "<",
         _prediction_layers, SERVING, needs_model=True),
    Rule("backend_exists", "such attention kernels for this chip:", "<", _backend_exists, SERVING, needs_chip=True,
         name_quantity=lambda plan, setting: f"{plan.attention_backend} attention kernels for {setting.chip.id}:"),
    Rule("quick_reduce_exists", "quick_reduce kernels for this chip (AMD's alone have them):", "<",
         _quick_reduce_exists, SERVING, needs_chip=True),
    Rule("deepep_exists", "DeepEP kernels for this chip (GPUs have them):", "<", _deepep_exists, SERVING,
         needs_chip=True),
    Rule("copies_need_ep", "ep with redundant_experts", "<", _copies_need_ep, SERVING),
)  # fmt: skip
