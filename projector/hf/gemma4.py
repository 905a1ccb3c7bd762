"""Gemma 4: windowed layers, and full ones with heads of another size; experts beside a dense MLP in some models."""

from collections.abc import Mapping
from dataclasses import dataclass

from projector.errors import InvalidDescription
from projector.hf.fields import Config, count, missing, optional_count, switch
from projector.hf.layers import Layers, counted
from projector.specs.layer_sort import LayerSort

KEYS = frozenset(
    """
    global_head_dim num_global_key_value_heads attention_k_eq_v num_kv_shared_layers enable_moe_block
    use_double_wide_mlp top_k_experts hidden_size_per_layer_input vocab_size_per_layer_input per_layer_config
    use_bidirectional_attention num_experts moe_intermediate_size
    """.split()  # noqa: SIM905 - a word list reads better
)
KINDS = ("sliding_attention", "full_attention")


@dataclass(frozen=True)
class Sizes:
    """What the layers of a config have in common."""

    heads: int
    kv_heads: int
    head_dim: int
    window: int
    one_projection: bool


def read(config: Config) -> Layers:
    """Layers of a gemma4_text config. Head sizes of full layers have to be there: published models differ in them."""
    names = config.get("layer_types")
    layers = count(config, "num_hidden_layers")
    if not isinstance(names, list) or len(names) != layers or set(names) - set(KINDS):
        raise InvalidDescription(f"layer_types has to name {layers} layers, each {' or '.join(KINDS)}")
    if config.get("attention_k_eq_v") is None:
        raise missing("attention_k_eq_v")
    sizes = Sizes(
        heads=count(config, "num_attention_heads"),
        kv_heads=count(config, "num_key_value_heads"),
        head_dim=count(config, "head_dim"),
        window=count(config, "sliding_window"),
        one_projection=switch(config, "attention_k_eq_v", False),
    )
    experts = bool(optional_count(config, "num_experts"))
    if experts != switch(config, "enable_moe_block", experts):
        raise InvalidDescription("enable_moe_block and num_experts contradict each other")
    shared = optional_count(config, "num_kv_shared_layers") or 0
    width = count(config, "intermediate_size")
    wide = switch(config, "use_double_wide_mlp", False)
    sorts = []
    for number, name in enumerate(names):
        reuses = number >= layers - shared
        sorts.append(
            _sort(config, number, name == "full_attention", sizes, reuses=reuses).model_copy(
                update={
                    "mlp": "experts" if experts else "dense",
                    "intermediate_size": 2 * width if reuses and wide else None,
                }
            )
        )
    each = optional_count(config, "hidden_size_per_layer_input")
    if each is None:
        raise missing("hidden_size_per_layer_input")
    return Layers(
        sorts=counted(sorts),
        # the dense MLP beside the experts is what every token passes: a shared expert of its width
        common={"num_experts_per_tok": count(config, "top_k_experts"), "shared_intermediate_size": width}
        if experts
        else {},
        fields={"layer_embedding_size": each},
        experts=experts,
    )


def _sort(config: Config, number: int, full: bool, sizes: Sizes, *, reuses: bool) -> LayerSort:
    if not full:
        return LayerSort(layers=1, window=sizes.window, reuses_keys=reuses)
    own = _own(config, number)
    head_dim = optional_count(own, "head_dim") or optional_count(config, "global_head_dim")
    if head_dim is None:
        raise missing("global_head_dim")
    kv_heads = sizes.kv_heads
    if sizes.one_projection:
        stated = optional_count(own, "num_key_value_heads") or optional_count(config, "num_global_key_value_heads")
        kv_heads = sizes.kv_heads if stated is None else stated
    return LayerSort(
        layers=1,
        head_dim=None if head_dim == sizes.head_dim else head_dim,
        kv_heads=None if kv_heads == sizes.kv_heads else kv_heads,
        shared_projection=sizes.one_projection and not reuses,
        reuses_keys=reuses,
    )


def _own(config: Config, number: int) -> Mapping[str, object]:
    """What per_layer_config says of one layer, as newer releases of transformers write it."""
    by_layer = config.get("per_layer_config") or {}
    if not isinstance(by_layer, dict):
        raise InvalidDescription(f"config key per_layer_config is {by_layer!r}, not an object")
    own = (
        next((said for key, said in by_layer.items() if str(key).lstrip("0") == (str(number).lstrip("0"))), None) or {}
    )
    if not isinstance(own, dict):
        raise InvalidDescription(f"per_layer_config of layer {number} is {own!r}, not an object")
    foreign = set(own) - {"head_dim", "num_key_value_heads"}
    if foreign:
        raise InvalidDescription(f"per_layer_config of layer {number} changes {', '.join(sorted(foreign))}")
    return own
