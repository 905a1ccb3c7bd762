"""Mamba beside or in turn with attention: Jamba, Granite 4, Bamba, Falcon-H1; and MiniMax-01's lightning attention."""

from collections.abc import Sequence

from projector.errors import InvalidDescription
from projector.hf.fields import Config, count, first_count, missing, optional_count
from projector.hf.layers import Layers, Reading, counted, listed
from projector.specs.layer_sort import LayerSort, MlpKind
from projector.specs.recurrence import Recurrence

MAMBA_2 = frozenset(
    """
    mamba_n_heads mamba_n_groups mamba_d_state mamba_d_head mamba_d_conv mamba_expand mamba_chunk_size mamba_conv_bias
    mamba_proj_bias mamba_d_ssm mamba_norm_before_gate mamba_rms_norm mamba_use_mlp layer_types layers_block_type
    """.split()  # noqa: SIM905 - a word list reads better
)
JAMBA_KEYS = frozenset(
    """
    attn_layer_period attn_layer_offset expert_layer_period expert_layer_offset mamba_d_state mamba_d_conv mamba_expand
    mamba_dt_rank mamba_conv_bias mamba_proj_bias use_mamba_kernels num_experts layers_block_type layer_types
    """.split()  # noqa: SIM905 - a word list reads better
)
GRANITE_KEYS = MAMBA_2 | {"shared_intermediate_size", "num_local_experts", "num_experts_per_tok", "init_method"}
BAMBA_KEYS = MAMBA_2 | {"attn_layer_indices", "z_loss_coefficient"}
FALCON_KEYS = MAMBA_2 | {
    "lm_head_multiplier", "attention_out_multiplier", "attention_in_multiplier", "key_multiplier", "mlp_multipliers",
    "ssm_multipliers", "ssm_in_multiplier", "ssm_out_multiplier", "projectors_bias", "mlp_expansion_factor",
}  # fmt: skip
MINIMAX_KEYS = frozenset(
    """
    attn_type_list layer_types block_size full_attn_alpha_factor full_attn_beta_factor linear_attn_alpha_factor
    linear_attn_beta_factor layernorm_full_attention_alpha layernorm_full_attention_beta
    layernorm_linear_attention_alpha layernorm_linear_attention_beta layernorm_mlp_alpha layernorm_mlp_beta rotary_dim
    shared_intermediate_size
    """.split()  # noqa: SIM905 - a word list reads better
)
ATTENTION, RECURRENT = LayerSort(layers=1), LayerSort(layers=1, attention=False, recurrent=True)
NAMES = {
    "attention": ATTENTION, "full_attention": ATTENTION, "mamba": RECURRENT, "linear_attention": RECURRENT,
}  # fmt: skip


def read_jamba(config: Config) -> Layers:
    """Jamba: attention in one of so many layers, Mamba-1 in the others; experts in one of so many, dense MLPs else."""
    layers, hidden = count(config, "num_hidden_layers"), count(config, "hidden_size")
    attends = _every(config, "attn_layer", layers)
    experts = _every(config, "expert_layer", layers) if count(config, "num_experts") > 1 else [False] * layers
    rank = config.get("mamba_dt_rank", "auto")
    mixer = Recurrence(
        kind="mamba1",
        heads=count(config, "mamba_expand") * hidden,
        head_dim=1,
        groups=1,
        state_size=count(config, "mamba_d_state"),
        conv_kernel=count(config, "mamba_d_conv"),
        step_rank=-(-hidden // 16) if rank == "auto" else count(config, "mamba_dt_rank"),
    )
    sorts = [
        _with_mlp(ATTENTION if attention else RECURRENT, "experts" if moe else "dense")
        for attention, moe in zip(attends, experts, strict=True)
    ]
    return Layers(sorts=counted(sorts), recurrence=_used(mixer, sorts), experts=any(experts))


def read_granite(config: Config) -> Layers:
    """Granite 4: Mamba-2 or attention, then experts beside a shared MLP, or that MLP alone."""
    sorts = _mixers(config)
    experts = bool(optional_count(config, "num_local_experts"))
    shared = count(config, "shared_intermediate_size")
    if config.get("position_embedding_type") not in (None, "nope", "rope"):
        raise InvalidDescription(f"position_embedding_type {config['position_embedding_type']!r} is not modelled")
    kinds = [_with_mlp(sort, "experts" if experts else "dense") for sort in sorts]
    return Layers(
        sorts=counted(kinds),
        recurrence=_used(_mamba_2(config), kinds),
        common={} if experts else {"intermediate_size": shared},
        fields={"positions": "rope" if config.get("position_embedding_type") == "rope" else "none"},
        experts=experts,
    )


def read_bamba(config: Config) -> Layers:
    """Bamba: attention in the listed layers, Mamba-2 in the others, a dense MLP in each."""
    layers = count(config, "num_hidden_layers")
    chosen = config.get("attn_layer_indices")
    if not isinstance(chosen, list) or any(not isinstance(layer, int) or layer >= layers for layer in chosen):
        raise missing("attn_layer_indices, a list of layers")
    sorts = [ATTENTION if layer in set(chosen) else RECURRENT for layer in range(layers)]
    return Layers(sorts=counted(sorts), recurrence=_used(_mamba_2(config), sorts))


def read_falcon_h1(config: Config) -> Layers:
    """Falcon-H1: attention and Mamba-2 side by side in every layer, then a dense MLP."""
    layers = count(config, "num_hidden_layers")
    return Layers(sorts=(LayerSort(layers=layers, recurrent=True),), recurrence=_mamba_2(config))


def read_minimax(config: Config) -> Layers:
    """MiniMax-01: lightning attention (as many heads as attention has) or attention, then experts."""
    layers, heads = count(config, "num_hidden_layers"), count(config, "num_attention_heads")
    head_dim = optional_count(config, "head_dim") or count(config, "hidden_size") // heads
    flags = config.get("attn_type_list")
    if flags is None:
        sorts = _listed(config, layers)
    elif isinstance(flags, list) and len(flags) == layers and all(flag in (0, 1) for flag in flags):
        sorts = [ATTENTION if flag == 1 else RECURRENT for flag in flags]
    else:
        raise InvalidDescription(f"attn_type_list has to name {layers} layers, 0 or 1 each")
    reading = Reading(config)
    mixer = Recurrence(
        kind="lightning", heads=heads, head_dim=head_dim, groups=heads, state_size=head_dim,
        chunk=reading.count("block_size", 256),
    )  # fmt: skip
    kinds = [_with_mlp(sort, "experts") for sort in sorts]
    return Layers(
        sorts=counted(kinds),
        recurrence=_used(mixer, kinds),
        common={"head_dim": head_dim},
        class_defaults=tuple(reading.left),
    )


def _mamba_2(config: Config) -> Recurrence:
    """The Mamba-2 mixer in these families' words; mamba_d_head "auto" is what the inner width leaves a head."""
    heads, hidden = count(config, "mamba_n_heads"), count(config, "hidden_size")
    inner = optional_count(config, "mamba_d_ssm") or count(config, "mamba_expand") * hidden
    stated = config.get("mamba_d_head")
    width = inner // heads if stated in ("auto", None) else count(config, "mamba_d_head")
    if width * heads != inner:
        raise InvalidDescription(f"{heads} Mamba heads of {width} are not the inner width {inner}")
    return Recurrence(
        kind="mamba2",
        heads=heads,
        head_dim=width,
        groups=count(config, "mamba_n_groups"),
        state_size=count(config, "mamba_d_state"),
        conv_kernel=count(config, "mamba_d_conv"),
        chunk=count(config, "mamba_chunk_size"),
    )


def _mixers(config: Config) -> Sequence[LayerSort]:
    return _listed(config, count(config, "num_hidden_layers"))


def _listed(config: Config, layers: int) -> Sequence[LayerSort]:
    key = "layer_types" if config.get("layer_types") is not None else "layers_block_type"
    if config.get(key) is None:
        raise missing("layer_types")
    sorts = listed(config[key], key, NAMES)
    if len(sorts) != layers:
        raise InvalidDescription(f"{key} has to list {layers} layers")
    return sorts


def _every(config: Config, name: str, layers: int) -> list[bool]:
    period, offset = count(config, f"{name}_period"), first_count(config, f"{name}_offset")
    if offset is None or offset >= period:
        raise InvalidDescription(f"{name}_offset {offset} is not below {name}_period {period}")
    return [layer % period == offset for layer in range(layers)]


def _with_mlp(sort: LayerSort, mlp: MlpKind) -> LayerSort:
    return sort.model_copy(update={"mlp": mlp})


def _used(mixer: Recurrence, sorts: Sequence[LayerSort]) -> Recurrence | None:
    return mixer if any(sort.recurrent for sort in sorts) else None
