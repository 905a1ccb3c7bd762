"""What a model_type implies where its config says nothing, and which ones are refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from projector.specs.architecture import Positions


@dataclass(frozen=True)
class Family:
    """Facts of a model_type; defaults are those of its transformers class.

    keys            the family's own names of common keys
    ignored         keys that look structural and change no cost in this family
    four_wide_mlp   the MLP is four hidden sizes wide unless stated
    full_every      where layer_types is missing, every n-th layer attends to all and the others have the window
    mtp             its num_nextn_predict_layers are multi-token-prediction layers beside the model
    """

    gated_mlp: bool = True
    tied_by_default: bool = False
    attention_bias: bool = False
    clamped_experts: bool = False
    kv_heads_default_to_heads: bool = False
    head_dim_derived: bool = True
    four_wide_mlp: bool = False
    moe: bool = False
    latent: bool = False
    positions: Positions = "rope"
    parallel_block: bool = False
    post_norms: bool = False
    full_every: int | None = None
    mtp: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()


GPT_KEYS = {
    "num_hidden_layers": "n_layer",
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "intermediate_size": "n_inner",
    "max_position_embeddings": "n_positions",
}
MPT_KEYS = {
    "num_hidden_layers": "n_layers",
    "hidden_size": "d_model",
    "num_attention_heads": "n_heads",
    "max_position_embeddings": "max_seq_len",
}
BLOOM_KEYS = {"num_hidden_layers": "n_layer", "hidden_size": "n_embed", "num_attention_heads": "n_head"}
FALCON_KEYS = {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "intermediate_size": "ffn_hidden_size"}
DEEPSEEK = Family(moe=True, latent=True, mtp=True, ignored=frozenset({"ep_size", "head_dim", "qk_head_dim"}))

FAMILIES: dict[str, Family] = {
    "llama": Family(kv_heads_default_to_heads=True),
    "internlm": Family(attention_bias=True, kv_heads_default_to_heads=True),
    "mistral": Family(),
    "mixtral": Family(moe=True),
    "qwen2": Family(attention_bias=True),
    "qwen3": Family(head_dim_derived=False),
    "qwen3_moe": Family(moe=True, head_dim_derived=False),
    "mimo": Family(attention_bias=True, mtp=True),
    "olmo3": Family(kv_heads_default_to_heads=True, full_every=4),
    "gemma": Family(tied_by_default=True, head_dim_derived=False),
    "gemma2": Family(tied_by_default=True, head_dim_derived=False, post_norms=True, full_every=2),
    "gemma3_text": Family(tied_by_default=True, head_dim_derived=False, post_norms=True, full_every=6),
    "nemotron": Family(gated_mlp=False),
    "nemotron_h": Family(gated_mlp=False, moe=True, mtp=True, positions="none"),
    "gemma4_text": Family(tied_by_default=True, head_dim_derived=False, post_norms=True),
    "qwen3_next": Family(moe=True, head_dim_derived=False),
    "qwen3_5_text": Family(head_dim_derived=False),
    "qwen3_5_moe_text": Family(moe=True, head_dim_derived=False),
    "qwen3_vl_text": Family(head_dim_derived=False),
    "qwen3_vl_moe_text": Family(moe=True, head_dim_derived=False),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), DEEPSEEK),
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl_text"), Family(moe=True, head_dim_derived=False)),
    "mimo_v2_flash": Family(moe=True, head_dim_derived=False),
    "nemotron-nas": Family(),
    "kimi_linear": Family(moe=True, latent=True, mtp=True, positions="none", kv_heads_default_to_heads=True),
    "jamba": Family(moe=True, positions="none"),
    "granitemoehybrid": Family(moe=True, kv_heads_default_to_heads=True),
    "bamba": Family(),
    "falcon_h1": Family(),
    "minimax": Family(moe=True, head_dim_derived=False),
    "gpt_oss": Family(moe=True, attention_bias=True, clamped_experts=True, head_dim_derived=False),
    "minimax_m2": Family(
        moe=True,
        head_dim_derived=False,
        ignored=frozenset(
            {
                "mlp_intermediate_size",
                "layernorm_full_attention_beta",
                "layernorm_linear_attention_beta",
                "layernorm_mlp_beta",
            }
        ),
    ),
    "llama4_text": Family(moe=True, head_dim_derived=False, full_every=4),
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
    "kimi_k2": DEEPSEEK,
    "gpt2": Family(
        gated_mlp=False,
        tied_by_default=True,
        attention_bias=True,
        kv_heads_default_to_heads=True,
        four_wide_mlp=True,
        positions="learned",
        keys=GPT_KEYS,
        ignored=frozenset({"n_ctx"}),
    ),
    "gptj": Family(
        gated_mlp=False,
        kv_heads_default_to_heads=True,
        four_wide_mlp=True,
        parallel_block=True,
        keys=GPT_KEYS,
        ignored=frozenset({"n_ctx"}),
    ),
    "bloom": Family(
        gated_mlp=False,
        tied_by_default=True,
        attention_bias=True,
        kv_heads_default_to_heads=True,
        four_wide_mlp=True,
        positions="alibi",
        keys=BLOOM_KEYS,
        ignored=frozenset({"offset_alibi"}),
    ),
    "mpt": Family(
        gated_mlp=False,
        tied_by_default=True,
        kv_heads_default_to_heads=True,
        four_wide_mlp=True,
        positions="alibi",
        keys=MPT_KEYS,
    ),
    "falcon": Family(
        gated_mlp=False,
        tied_by_default=True,
        four_wide_mlp=True,
        keys=FALCON_KEYS,
        ignored=frozenset({"num_ln_in_parallel_attn"}),
    ),
}

HYBRID = "hybrid attention and state-space or linear-attention layers"
VARYING = "layers that differ in heads, head size or width"

REFUSED: dict[str, str] = {
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "rwkv"), "state-space layers"),
    **dict.fromkeys(("zamba2", "olmo_hybrid"), HYBRID),
    "deepseek_v4": "attention over compressed keys, of another kind from layer to layer",
    **dict.fromkeys(("deci", "step3p5", "step3p7"), VARYING),
    "gemma4_small": "key and value sharing and widths its source does not state",
    **dict.fromkeys(("gemma3n", "gemma3n_text"), "per-layer embeddings and shared keys and values"),
    **dict.fromkeys(("bert", "roberta", "t5", "bart", "whisper", "vit", "clip"), "an encoder"),
}
