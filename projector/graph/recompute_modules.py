"""Modules that selective recompute can repeat alone: which operators they are, and which kept bytes they free.

Names and meaning as Megatron-Core's `recompute_modules` (transformer_config.py): layernorm, moe_act and mla_up_proj
drop what they put out, core_attn, mlp, moe and shared_experts all that lies inside them but not their input.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from projector.graph.columns import Column, Switch
from projector.graph.operator import Operator, changed, sort_number
from projector.graph.scope import Scope
from projector.specs.plan import RecomputeModule
from projector.specs.plan_batch import Column as AnyColumn

# Products that read what a norm before them put out.
READS_NORM = frozenset({"qkv", "latent_down", "mlp_up", "shared_expert_up"})
OUTSIDE_BLOCK = ("_residual", "_post_norm")


def chosen_modules(names: AnyColumn) -> dict[RecomputeModule, Switch]:
    """The modules any plan names in `recompute_modules`, each with the plans that do, shape [n]."""
    chosen: dict[RecomputeModule, Switch] = {}
    if not (names != "").any():  # sorting words costs more than all the rest of a batch that names none
        return chosen
    for text in np.unique(names).tolist():
        for module in filter(None, text.split("+")):
            chosen[module] = chosen.get(module, np.zeros(len(names), dtype=np.bool_)) | (names == text)
    return chosen


def with_modules(
    operators: Iterable[Operator], scope: Scope, chosen: Mapping[RecomputeModule, Switch], by_module: Switch
) -> Iterator[Operator]:
    """The operators with what their plans' modules run again and keep; untouched where no plan names any."""
    if not chosen:
        yield from operators
        return
    whole = scope
    for operator in operators:
        number = sort_number(operator.place)
        scope = whole if number is None else whole.sorts[number]
        again = np.zeros_like(by_module)
        freed = scope.zero
        for module, plans in chosen.items():
            again = again | (plans & RUNS[module](operator))
            freed = freed + np.where(plans, freed_bytes(operator, module, scope), 0.0)
        rerun = np.where(by_module, again, operator.rerun)
        if operator.saved_bytes is None or operator.kept_bytes is None:
            yield changed(operator, rerun=rerun)
            continue
        left = np.maximum(operator.saved_bytes - freed, 0.0) + _block_input(operator, scope, chosen)
        yield changed(operator, rerun=rerun, kept_bytes=np.where(by_module, left, operator.kept_bytes))


def freed_bytes(operator: Operator, module: RecomputeModule, scope: Scope) -> Column:
    """Bytes of `saved_bytes` that need not be kept when this module runs again."""
    saved = operator.saved_bytes
    if saved is None:
        return scope.zero
    if module in ("core_attn", "mla_up_proj"):
        if not _is_core(operator):
            return scope.zero
        inside = saved - _attention_inputs(operator, scope)
        return inside if module == "core_attn" else saved - inside
    if module == "layernorm":
        return saved if operator.name in READS_NORM else scope.zero
    if module == "moe_act":
        return saved if operator.name == "expert_down" else scope.zero
    inside_block = RUNS[module](operator) and operator.name not in ("mlp_up", "shared_expert_up")
    return saved if inside_block else scope.zero


def _attention_inputs(operator: Operator, scope: Scope) -> Column:
    """Queries, keys and values a core of attention keeps; as many as it saves where that is all."""
    assert operator.saved_bytes is not None
    widths = scope.q_width + scope.k_width + scope.v_width
    rounds = np.maximum(operator.count, 1.0)
    return np.minimum(scope.tokens * widths * scope.act_bytes / rounds, operator.saved_bytes)


def _block_input(operator: Operator, scope: Scope, chosen: Mapping[RecomputeModule, Switch]) -> Column:
    """The hidden state a repeated MoE block starts from, where no shared expert and no norm keeps or makes it."""
    if operator.name != "router" or "moe" not in chosen or scope.model.shared_experts:
        return scope.zero
    kept = chosen["moe"] & ~chosen.get("layernorm", np.zeros_like(chosen["moe"]))
    return np.where(kept, scope.edge_tokens * scope.model.hidden_size * scope.act_bytes, 0.0)


def _is_core(operator: Operator) -> bool:
    """A core of attention; the scan of a recurrent mixer and the scores of an indexer are none."""
    return operator.kind == "attention" and not operator.name.startswith(("recurrence", "index_scores"))


def _in_block(operator: Operator, place: str) -> bool:
    return operator.block == place and not operator.name.endswith(OUTSIDE_BLOCK)


RUNS: Mapping[RecomputeModule, Callable[[Operator], bool]] = {
    "core_attn": lambda operator: _is_core(operator),
    "layernorm": lambda operator: operator.name in ("attention_norm", "mlp_norm"),
    "mla_up_proj": lambda operator: operator.name in ("query_up", "key_value_up", "rotary"),
    "mlp": lambda operator: _in_block(operator, "dense_layer"),
    "moe": lambda operator: _in_block(operator, "moe_layer"),
    "moe_act": lambda operator: operator.name == "expert_activation",
    "shared_experts": lambda operator: operator.name.startswith("shared_"),
}
