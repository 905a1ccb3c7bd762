"""A Hugging Face config.json as a ModelArchitecture, for the families whose cost the projector models.

Whatever could change cost and is not understood is refused by name: state-space and hybrid layers, sparse attention,
layers that differ, encoders, vision, and any structural key nobody reads here.
A quantization_config says the dtype the checkpoint is stored in; what is served is the plan's weight_dtype. Rope, norm
and token settings do not change cost.
"""

import re

from pydantic import ValidationError

from projector.errors import InvalidDescription, UnknownName
from projector.hf import attention
from projector.hf.checkpoint import checkpoint_dtype
from projector.hf.encoders import language_part
from projector.hf.experts import experts
from projector.hf.families import FAMILIES, REFUSED, Family
from projector.hf.fields import Config, count, missing, optional_count, switch, with_common_names
from projector.hf.layers import Layers
from projector.hf.sorted_layers import READERS
from projector.specs.architecture import ModelArchitecture

READ = frozenset(
    """
    num_hidden_layers hidden_size num_attention_heads num_key_value_heads head_dim intermediate_size vocab_size
    max_position_embeddings tie_word_embeddings attention_bias sliding_window use_sliding_window max_window_layers
    layer_types is_encoder_decoder
    """.split()  # noqa: SIM905 - a word list reads better
)
READ_OF_EXPERTS = frozenset(
    """
    num_local_experts num_experts n_routed_experts num_experts_per_tok experts_per_token moe_intermediate_size
    n_shared_experts shared_expert_intermediate_size shared_intermediate_size decoder_sparse_step mlp_only_layers
    first_k_dense_replace moe_layer_freq interleave_moe_layer_step moe_layers
    """.split()  # noqa: SIM905 - a word list reads better
)
READ_OF_LATENTS = frozenset({*attention.LATENT_KEYS, "q_lora_rank"})
READ_OF_ONE: dict[str, frozenset[str]] = {
    "falcon": frozenset(
        {"num_kv_heads", "n_head_kv", "new_decoder_architecture", "multi_query", "alibi", "parallel_attn"}
    ),
    "gemma3_text": frozenset({"sliding_window_pattern", "_sliding_window_pattern"}),
    "llama4_text": frozenset(
        {"attention_chunk_size", "intermediate_size_mlp", "no_rope_layers", "no_rope_layer_interval"}
    ),
    "minimax_m2": frozenset({"attn_type_list", "mtp_transformer_layers", "num_mtp_modules", "use_mtp"}),
    "mpt": frozenset({"expansion_ratio"}),
}

# Structural in name only: no effect on the arithmetic of a step.
HARMLESS = frozenset(
    {
        "chunk_size_feed_forward",
        "encoder_no_repeat_ngram_size",
        "no_repeat_ngram_size",
        "rotary_dim",
        "scale_attn_by_inverse_layer_idx",
    }
)

STRUCTURAL = re.compile(
    r"layer|head|dim|size|rank|expert|window|interval|ssm|conv|lora|mamba|linear|alibi|parallel|moe|kv|mtp|nextn"
    r"|vision|audio|encoder|chunk|multi_query|sparse|cross_attention|bidirectional|index|ratio|attn_type"
)
NOT_STRUCTURAL = re.compile(r"dropout|pdrop|_std|_range|_eps|epsilon|token|_type$|transformers|partial_rotary")


def from_hf_config(config: Config, *, name: str, source: str) -> ModelArchitecture:
    """The architecture a config.json describes.

    config: the parsed JSON object, of a multimodal model its language part is read; name: how the catalogue or user
    calls the model; source: where it was read.
    InvalidDescription when it is incomplete, contradicts itself or holds something that is not modelled;
    UnknownName when its model_type is in no list.
    """
    config, encoder_parameters = language_part(config)
    model_type = config.get("model_type")
    if not isinstance(model_type, str):
        raise InvalidDescription("config has no model_type", hint="pass the whole config.json of the language model")
    family = _family(config, model_type)
    _refuse_what_is_not_read(config, model_type, family)
    config = with_common_names(config, family)
    found = _layers(config, model_type, name)
    config = {**config, **found.common}
    heads, layers = count(config, "num_attention_heads"), count(config, "num_hidden_layers")
    hidden = count(config, "hidden_size")
    width = _mlp_width(config, family, model_type, hidden)
    windows = attention.windows(config, family, model_type, layers) if not found.sorts else attention.Windows()
    moe = family.moe if found.experts is None else found.experts
    fields = {
        "name": name,
        "layers": layers,
        "hidden_size": hidden,
        "heads": heads,
        "kv_heads": heads if family.latent else attention.kv_heads(config, family, model_type, heads),
        "head_dim": attention.head_dim(config, family, hidden, heads),
        "intermediate_size": _dense_width(config, model_type, width),
        "vocab_size": count(config, "vocab_size"),
        "gated_mlp": family.gated_mlp,
        "tied_embeddings": switch(config, "tie_word_embeddings", family.tied_by_default),
        "clamped_experts": family.clamped_experts,
        "attention_bias": switch(config, "attention_bias", family.attention_bias),
        "positions": attention.positions(config, family, model_type),
        "parallel_block": attention.parallel_block(config, family, model_type),
        "post_norms": family.post_norms,
        "sliding_window": windows.tokens,
        "sliding_layers": windows.layers,
        "chunked_window": windows.chunked,
        "mtp_layers": _mtp_layers(config, family, model_type),
        "max_positions": optional_count(config, "max_position_embeddings"),
        "checkpoint_dtype": checkpoint_dtype(config),
        "encoder_parameters": encoder_parameters,
        "source": source,
        **attention.latents(config, family),
        **(experts(config, width, None if found.sorts else layers) if moe else {}),
        "sorts": found.sorts,
        "recurrence": found.recurrence,
        "class_defaults": found.class_defaults,
        **found.fields,
    }
    try:
        return ModelArchitecture.model_validate(fields)
    except ValidationError as error:
        raise InvalidDescription(f"config of {name!r}: {error.errors()[0]['msg']}") from error


def _family(config: Config, model_type: str) -> Family:
    if model_type in REFUSED:
        raise InvalidDescription(f"model_type {model_type!r} is not modelled: {REFUSED[model_type]}")
    if model_type not in FAMILIES:
        raise UnknownName("model_type", model_type, FAMILIES)
    if config.get("is_encoder_decoder"):
        raise InvalidDescription("an encoder-decoder model is not modelled")
    return FAMILIES[model_type]


def _layers(config: Config, model_type: str, name: str) -> Layers:
    """Sorts of layers and what else the family's own reader finds; nothing for families without one."""
    if model_type not in READERS:
        return Layers()
    try:
        return READERS[model_type].read(config)
    except ValidationError as error:
        raise InvalidDescription(f"config of {name!r}: {error.errors()[0]['msg']}") from error


def _refuse_what_is_not_read(config: Config, model_type: str, family: Family) -> None:
    known = READ | HARMLESS | family.ignored | set(family.keys.values()) | READ_OF_ONE.get(model_type, frozenset())
    known |= READ_OF_EXPERTS if family.moe else frozenset()
    known |= READ_OF_LATENTS if family.latent else frozenset()
    known |= READERS[model_type].keys if model_type in READERS else frozenset()
    known |= {"num_nextn_predict_layers"} if family.mtp else frozenset()
    foreign = [
        key
        for key, value in config.items()
        if key not in known
        and value not in (None, False, 0, [], {})
        and STRUCTURAL.search(key)
        and not NOT_STRUCTURAL.search(key)
    ]
    if foreign:
        raise InvalidDescription(
            f"config keys that may change cost and are not modelled: {', '.join(sorted(foreign))}",
            hint="describe the model as an architecture if they do not matter",
        )


def _mlp_width(config: Config, family: Family, model_type: str, hidden: int) -> int:
    stated = optional_count(config, "intermediate_size")
    if model_type == "mpt":
        ratio = optional_count(config, "expansion_ratio")
        return (4 if ratio is None else ratio) * hidden
    if stated is None:
        if not family.four_wide_mlp:
            raise missing("intermediate_size")
        return 4 * hidden
    return stated


def _dense_width(config: Config, model_type: str, width: int) -> int:
    """Width of a dense MLP; Llama 4 calls an expert's width intermediate_size and states the dense one apart."""
    return count(config, "intermediate_size_mlp") if model_type == "llama4_text" else width


def _mtp_layers(config: Config, family: Family, model_type: str) -> int:
    if model_type == "minimax_m2":
        modules = optional_count(config, "num_mtp_modules") or 0
        return modules * (optional_count(config, "mtp_transformer_layers") or 1)
    return (optional_count(config, "num_nextn_predict_layers") or 0) if family.mtp else 0
