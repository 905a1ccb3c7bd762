"""Nemotron-H: each layer is one mixer alone: Mamba-2, attention, MLP or experts."""

from projector.errors import InvalidDescription
from projector.hf.fields import Config, missing, optional_count
from projector.hf.layers import Layers, Reading, counted, listed
from projector.specs.layer_sort import LayerSort
from projector.specs.recurrence import Recurrence

KEYS = frozenset(
    """
    hybrid_override_pattern layers_block_type mamba_num_heads mamba_head_dim ssm_state_size n_groups conv_kernel
    chunk_size moe_latent_size moe_shared_expert_intermediate_size num_nextn_predict_layers expand use_conv_bias
    mamba_proj_bias mamba_hidden_act mamba_ssm_cache_dtype moe_shared_expert_overlap mtp_layers_block_type
    mtp_hybrid_override_pattern attention_head_dim use_mamba_kernels time_step_rank
    """.split()  # noqa: SIM905 - a word list reads better
)
MAMBA = LayerSort(layers=1, attention=False, recurrent=True, mlp="none")
ATTENTION = LayerSort(layers=1, mlp="none")
MLP = LayerSort(layers=1, attention=False, mlp="dense")
EXPERTS = LayerSort(layers=1, attention=False, mlp="experts")
LETTERS = {"M": MAMBA, "*": ATTENTION, "-": MLP, "E": EXPERTS}
NAMES = {
    "mamba": MAMBA, "linear_attention": MAMBA, "attention": ATTENTION, "full_attention": ATTENTION, "mlp": MLP,
    "moe": EXPERTS,
}  # fmt: skip


def read(config: Config) -> Layers:
    """Layers and mixer of a nemotron_h config. The pattern has to be there; sizes of the mixer have class defaults."""
    layers = _layers(config)
    stated = optional_count(config, "num_hidden_layers")
    if stated not in (None, len(layers)):
        raise InvalidDescription(f"config says num_hidden_layers {stated} and a pattern of {len(layers)} layers")
    reading = Reading(config)
    recurrence = Recurrence(
        kind="mamba2",
        heads=reading.count("mamba_num_heads", 128),
        head_dim=reading.count("mamba_head_dim", 64),
        groups=reading.count("n_groups", 8),
        state_size=reading.count("ssm_state_size", 128),
        conv_kernel=reading.count("conv_kernel", 4),
        chunk=reading.count("chunk_size", 128),
    )
    head_dim = optional_count(config, "attention_head_dim")
    return Layers(
        sorts=counted(layers),
        recurrence=recurrence if MAMBA in layers else None,
        common={
            "num_hidden_layers": len(layers),
            "head_dim": reading.count("head_dim", 128) if head_dim is None else head_dim,
            "shared_expert_intermediate_size": optional_count(config, "moe_shared_expert_intermediate_size"),
        },
        fields={"expert_latent_size": optional_count(config, "moe_latent_size") or 0},
        experts=EXPERTS in layers,
        class_defaults=tuple(reading.left),
    )


def _layers(config: Config) -> list[LayerSort]:
    pattern, names = config.get("hybrid_override_pattern"), config.get("layers_block_type")
    if pattern is None and names is None:
        raise missing("hybrid_override_pattern or layers_block_type")
    read = [
        listed(value, key, kinds)
        for value, key, kinds in (
            (pattern, "hybrid_override_pattern", LETTERS),
            (names, "layers_block_type", NAMES),
        )
        if value is not None
    ]
    if len(read) == 2 and read[0] != read[1]:
        raise InvalidDescription("hybrid_override_pattern and layers_block_type name different layers")
    return list(read[0])
