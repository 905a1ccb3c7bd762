"""Attention in a config: heads, latents, positions, sliding windows and which layers have them."""

from dataclasses import dataclass

from projector.errors import InvalidDescription
from projector.hf.families import Family
from projector.hf.fields import Config, count, first_count, missing, optional_count, switch
from projector.specs.architecture import Positions

LATENT_KEYS = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
WINDOWED = {"sliding_attention": False, "chunked_attention": True}


@dataclass(frozen=True)
class Windows:
    """Window in tokens (None: none), layers that have it, and whether it is a fixed chunk of the sequence."""

    tokens: int | None = None
    layers: int = 0
    chunked: bool = False


def kv_heads(config: Config, family: Family, model_type: str, heads: int) -> int:
    """Key and value heads; Falcon says them in its own way."""
    if model_type == "falcon":
        return _falcon_kv_heads(config, heads)
    value = optional_count(config, "num_key_value_heads")
    if value is not None:
        return value
    if not family.kv_heads_default_to_heads:
        raise missing("num_key_value_heads")
    return heads


def _falcon_kv_heads(config: Config, heads: int) -> int:
    stated = first_count(config, "num_kv_heads", "n_head_kv", "num_key_value_heads")
    if switch(config, "new_decoder_architecture", False):
        if stated is None:
            raise missing("num_kv_heads")
        return stated
    return 1 if switch(config, "multi_query", True) else heads


def head_dim(config: Config, family: Family, hidden: int, heads: int) -> int:
    """Features of a query and key head; with latents, of both its parts."""
    if family.latent:
        return count(config, "qk_nope_head_dim") + count(config, "qk_rope_head_dim")
    value = optional_count(config, "head_dim")
    if value is not None:
        return value
    if not family.head_dim_derived:
        raise missing("head_dim")
    if hidden % heads:
        raise InvalidDescription(f"num_attention_heads {heads} does not divide hidden_size {hidden}")
    return hidden // heads


def latents(config: Config, family: Family) -> dict[str, int]:
    """Sizes of multi-head latent attention, {} for a family without. q_lora_rank null or 0: queries have no latent."""
    if not family.latent:
        return {}
    sizes = {key: count(config, key) for key in LATENT_KEYS}
    return sizes | {"q_lora_rank": optional_count(config, "q_lora_rank") or 0}


def positions(config: Config, family: Family, model_type: str) -> Positions:
    """How positions enter. ALiBi where a Falcon says so; an MPT without it is refused."""
    if model_type == "falcon":
        return "alibi" if switch(config, "alibi", False) else "rope"
    if model_type == "mpt":
        options = config.get("attn_config")
        if not isinstance(options, dict) or options.get("alibi") is not True:
            raise InvalidDescription("an MPT model without attn_config.alibi is not modelled")
        _refuse_other_mpt_attention(options)
    elif family.positions != "alibi" and "alibi" in str(config.get("position_embedding_type", "")).lower():
        raise InvalidDescription("ALiBi positions are not modelled for this model_type")
    return family.positions


def _refuse_other_mpt_attention(options: dict[str, object]) -> None:
    for key, usual in (("attn_type", "multihead_attention"), ("prefix_lm", False), ("qk_ln", False)):
        if options.get(key, usual) != usual:
            raise InvalidDescription(f"attn_config.{key} {options[key]!r} is not modelled")


def parallel_block(config: Config, family: Family, model_type: str) -> bool:
    """Whether attention and MLP stand side by side."""
    if model_type == "falcon":
        return switch(config, "new_decoder_architecture", False) or switch(config, "parallel_attn", True)
    return family.parallel_block


def windows(config: Config, family: Family, model_type: str, layers: int) -> Windows:
    """Which layers see a window of the sequence only."""
    if any(kind != 1 for kind in _list(config, "attn_type_list")):
        raise InvalidDescription("attn_type_list other than full attention (1) is not modelled")
    window = optional_count(config, "attention_chunk_size" if model_type == "llama4_text" else "sliding_window")
    if window is None or not switch(config, "use_sliding_window", not model_type.startswith(("qwen", "mimo"))):
        return Windows()
    sliding, chunked = _windowed_layers(config, family, model_type, layers)
    return Windows(window, sliding, chunked) if sliding else Windows()


def _windowed_layers(config: Config, family: Family, model_type: str, layers: int) -> tuple[int, bool]:
    types = config.get("layer_types")
    if types is not None:
        return _listed(types, layers)
    if model_type == "llama4_text":
        return layers - layers // _llama4_interval(config, layers), True
    if model_type == "gpt_oss":
        raise missing("layer_types")
    if model_type.startswith(("qwen", "mimo")):
        return max(layers - (optional_count(config, "max_window_layers") or 0), 0), False
    every = first_count(config, "sliding_window_pattern", "_sliding_window_pattern") or family.full_every
    return (layers if every is None else layers - layers // every), False


def _llama4_interval(config: Config, layers: int) -> int:
    """Every n-th layer has no rotary positions and attends to all."""
    interval = optional_count(config, "no_rope_layer_interval") or 4
    listed = config.get("no_rope_layers")
    if listed and listed != [int((layer + 1) % interval != 0) for layer in range(layers)]:
        raise InvalidDescription(f"no_rope_layers other than every {interval}th layer are not modelled")
    return interval


def _list(config: Config, key: str) -> list[object]:
    value = config.get(key) or []
    if not isinstance(value, list):
        raise InvalidDescription(f"config key {key} is {value!r}, not a list")
    return value


def _listed(types: object, layers: int) -> tuple[int, bool]:
    if not isinstance(types, list) or len(types) != layers:
        raise InvalidDescription(f"layer_types has to list {layers} layers")
    foreign = {str(kind) for kind in types} - {*WINDOWED, "full_attention"}
    if foreign:
        raise InvalidDescription(f"layer_types {', '.join(sorted(foreign))} are not modelled")
    kinds = sorted(set(types) - {"full_attention"})
    if len(kinds) > 1:
        raise InvalidDescription(f"layer_types {' and '.join(kinds)} in one model are not modelled")
    return (types.count(kinds[0]), WINDOWED[kinds[0]]) if kinds else (0, False)
