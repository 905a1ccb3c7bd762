"""Kimi Linear: Kimi delta attention in most layers, latent attention without positions in the others."""

from collections.abc import Mapping

from projector.errors import InvalidDescription
from projector.hf.fields import Config, count, first_count, missing, optional_count, switch
from projector.hf.layers import Layers, Reading, counted
from projector.hf.mlp_layers import mlp_kinds
from projector.specs.layer_sort import LayerSort
from projector.specs.recurrence import Recurrence

KEYS = frozenset(
    """
    linear_attn_config linear_head_dim linear_num_heads linear_conv_kernel_dim layer_types mlp_layer_types
    first_k_dense_replace moe_layer_freq num_experts_per_token num_shared_experts num_expert_group mla_use_nope
    mla_use_output_gate use_grouped_topk routed_expert_hidden_size latent_moe_use_norm moe_renormalize
    moe_router_activation_func num_nextn_predict_layers head_dim qk_head_dim num_beam_groups
    """.split()  # noqa: SIM905 - a word list reads better
)
CHUNK = 64


def read(config: Config) -> Layers:
    """Layers and mixer of a kimi_linear config, in the words of its checkpoints or of transformers."""
    said = config.get("linear_attn_config") or {}
    if not isinstance(said, dict):
        raise InvalidDescription(f"config key linear_attn_config is {said!r}, not an object")
    if said.get("use_full_rank_gate"):
        raise InvalidDescription("linear_attn_config.use_full_rank_gate is not modelled")
    layers = count(config, "num_hidden_layers")
    delta = _delta_layers(config, said, layers)
    reading = Reading(config)
    heads = first_count({**said, **config}, "num_heads", "linear_num_heads") or reading.count("linear_num_heads", 32)
    width = first_count({"a": said.get("head_dim"), "b": config.get("linear_head_dim")}, "a", "b")
    width = width or reading.count("linear_head_dim", 128)
    taps = optional_count(said, "short_conv_kernel_size") or reading.count("linear_conv_kernel_dim", 4)
    mixer = Recurrence(
        kind="kimi_delta", heads=heads, head_dim=width, groups=heads, state_size=width, conv_kernel=taps, chunk=CHUNK
    )
    kinds = mlp_kinds(config, layers)
    sorts = counted(
        LayerSort(layers=1, attention=not recurs, recurrent=recurs, mlp=mlp)
        for recurs, mlp in zip(delta, kinds, strict=True)
    )
    common = {
        "num_experts_per_tok": first_count(config, "num_experts_per_tok", "num_experts_per_token"),
        "n_shared_experts": first_count(config, "n_shared_experts", "num_shared_experts"),
    }
    return Layers(
        sorts=sorts,
        recurrence=mixer if any(delta) else None,
        common={key: value for key, value in common.items() if value is not None},
        fields={
            "attention_gate": switch(config, "mla_use_output_gate", False),
            "expert_latent_size": optional_count(config, "routed_expert_hidden_size") or 0,
        },
        experts="experts" in kinds,
        class_defaults=tuple(reading.left),
    )


def _delta_layers(config: Config, said: Mapping[str, object], layers: int) -> list[bool]:
    """Whether a layer has delta attention: layer_types, or the numbers of the others, counted from one."""
    types = config.get("layer_types")
    if types is not None:
        if not isinstance(types, list) or len(types) != layers:
            raise InvalidDescription(f"layer_types has to list {layers} layers")
        foreign = {str(kind) for kind in types} - {"linear_attention", "full_attention"}
        if foreign:
            raise InvalidDescription(f"layer_types {', '.join(sorted(foreign))} are not modelled")
        return [kind == "linear_attention" for kind in types]
    full, delta = said.get("full_attn_layers"), said.get("kda_layers")
    if not isinstance(full, list) or not isinstance(delta, list):
        raise missing("linear_attn_config.full_attn_layers and kda_layers")
    if any(isinstance(number, bool) or not isinstance(number, int) for number in (*full, *delta)):
        raise InvalidDescription("linear_attn_config lists layers by other things than numbers")
    if sorted([*full, *delta]) != list(range(1, layers + 1)):
        raise InvalidDescription(f"linear_attn_config does not name each of {layers} layers once")
    return [number in set(delta) for number in range(1, layers + 1)]
