"""Families whose attention layers differ in heads or width: MiMo-V2, Step-3.5, and searched (NAS) Llamas."""

from collections.abc import Mapping

from projector.errors import InvalidDescription
from projector.hf.fields import Config, count, missing, optional_count
from projector.hf.layers import Layers, counted
from projector.hf.mlp_layers import mlp_kinds
from projector.specs.layer_sort import LayerSort

MIMO_KEYS = frozenset(
    """
    hybrid_layer_pattern layer_types swa_num_attention_heads swa_num_key_value_heads swa_head_dim swa_v_head_dim
    v_head_dim sliding_window_size attention_chunk_size moe_layer_freq mlp_layer_types add_swa_attention_sink_bias
    add_full_attention_sink_bias attention_value_scale per_layer_config hybrid_block_size
    """.split()  # noqa: SIM905 - a word list reads better
)
NAS_KEYS = frozenset({"block_configs"})
# Searched MLP widths are rounded up to a multiple of this (as in their class).
NAS_WIDTH_MULTIPLE = 256


def read_mimo(config: Config) -> Layers:
    """MiMo-V2-Flash: windowed layers with more key and value heads than full ones; values narrower than keys."""
    layers = count(config, "num_hidden_layers")
    windowed = _windowed(config, layers)
    window = optional_count(config, "sliding_window_size") or count(config, "sliding_window")
    same = {"heads": "num_attention_heads", "kv_heads": "num_key_value_heads", "head_dim": "head_dim"}
    own = {field: optional_count(config, f"swa_{key}") for field, key in same.items()}
    if own["kv_heads"] is None and any(windowed):
        raise missing("swa_num_key_value_heads")
    if optional_count(config, "swa_v_head_dim") not in (None, count(config, "v_head_dim")):
        raise InvalidDescription("values of another width in windowed layers are not modelled")
    other = {field: None if own[field] == count(config, key) else own[field] for field, key in same.items()}
    kinds = mlp_kinds(config, layers)
    sorts = [
        LayerSort.model_validate({"layers": 1, "mlp": mlp, **(other | {"window": window} if slides else {})})
        for mlp, slides in zip(kinds, windowed, strict=True)
    ]
    return Layers(sorts=counted(sorts), fields={"v_head_dim": count(config, "v_head_dim")})


def _windowed(config: Config, layers: int) -> list[bool]:
    pattern, types = config.get("hybrid_layer_pattern"), config.get("layer_types")
    stated = types if pattern is None else pattern
    if stated is None:
        raise missing("hybrid_layer_pattern or layer_types")
    known: Mapping[object, bool] = {1: True, 0: False, "sliding_attention": True, "full_attention": False}
    if not isinstance(stated, list) or len(stated) != layers:
        raise InvalidDescription(f"the list of windowed layers has to name {layers} layers")
    if any(isinstance(word, list | dict) or word not in known for word in stated):
        raise InvalidDescription("layers are sliding_attention (1) or full_attention (0)")
    return [known[word] for word in stated]


def read_nas(config: Config) -> Layers:
    """A searched Llama (Llama-Nemotron Super and Ultra): each block with its own group of heads and MLP, or neither."""
    blocks = config.get("block_configs")
    layers, heads, hidden = (count(config, key) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    if not isinstance(blocks, list) or len(blocks) != layers:
        raise InvalidDescription(f"block_configs has to describe {layers} layers")
    described = [_block(block, heads, hidden) for block in blocks]
    found = [sort for sort in described if sort is not None]
    if not found:
        raise InvalidDescription("block_configs describes no layer that does anything")
    widths = [sort.intermediate_size for sort in found if sort.intermediate_size]
    groups = [sort.kv_heads for sort in found if sort.kv_heads]
    if not widths or not groups:
        raise InvalidDescription("block_configs without any attention or any MLP")
    return Layers(
        sorts=counted(found),
        common={
            "num_hidden_layers": len(found),
            "intermediate_size": max(widths),
            "num_key_value_heads": max(groups),
        },
    )


def _block(block: object, heads: int, hidden: int) -> LayerSort | None:
    """One layer; None for one without attention and MLP, which is no layer."""
    parts = block if isinstance(block, dict) else {}
    attention, mlp = parts.get("attention"), parts.get("ffn")
    if not isinstance(attention, dict) or not isinstance(mlp, dict):
        raise InvalidDescription("a block of block_configs has to hold attention and ffn")
    for part, unusual in (
        (attention, ("replace_with_linear", "sparsify", "window_length")),
        (mlp, ("replace_with_linear", "sparsify")),
    ):
        changed = [key for key in unusual if part.get(key)]
        if changed:
            raise InvalidDescription(f"block_configs with {', '.join(changed)} is not modelled")
    attends, has_mlp = not attention.get("no_op"), not mlp.get("no_op")
    if not attends and not has_mlp:
        return None
    group = optional_count(attention, "n_heads_in_group") if attends else None
    if attends and (not group or heads % group):
        raise InvalidDescription(f"n_heads_in_group {group} does not divide {heads} heads")
    return LayerSort(
        layers=1,
        attention=attends,
        mlp="dense" if has_mlp else "none",
        kv_heads=heads // group if group else None,
        intermediate_size=_width(mlp.get("ffn_mult"), hidden) if has_mlp else None,
    )


def _width(times: object, hidden: int) -> int:
    """Width of a searched MLP: two thirds of so many hidden sizes, rounded up."""
    if isinstance(times, bool) or not isinstance(times, int | float) or not 0 < times < 100:
        raise InvalidDescription(f"ffn_mult is {times!r}, not a number above 0")
    width = int(2 * times * hidden / 3)
    return -(-width // NAS_WIDTH_MULTIPLE) * NAS_WIDTH_MULTIPLE
