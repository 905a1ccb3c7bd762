"""Qwen3-Next and Qwen3.5: gated delta nets in most layers, gated attention in the others, experts or dense MLPs."""

from projector.errors import InvalidDescription
from projector.hf.fields import Config, count, first_count, optional_count, switch
from projector.hf.layers import Layers, Reading, counted, listed
from projector.specs.layer_sort import LayerSort, MlpKind
from projector.specs.recurrence import Recurrence

KEYS = frozenset(
    """
    linear_num_key_heads linear_num_value_heads linear_key_head_dim linear_value_head_dim linear_conv_kernel_dim
    full_attention_interval attn_output_gate mtp_num_hidden_layers mtp_use_dedicated_embeddings mamba_ssm_dtype
    """.split()  # noqa: SIM905 - a word list reads better
)
DELTA = LayerSort(layers=1, attention=False, recurrent=True)
NAMES = {"linear_attention": DELTA, "full_attention": LayerSort(layers=1)}
# Tokens the delta rule's kernels take at once (flash-linear-attention).
CHUNK = 64


def read(config: Config) -> Layers:
    """Layers and mixer. Where no layer_types are listed every fourth layer attends, as the class has it."""
    if not switch(config, "attn_output_gate", True):
        raise InvalidDescription("attn_output_gate false is not modelled")
    reading = Reading(config)
    layers = count(config, "num_hidden_layers")
    if config.get("layer_types") is None:
        interval = reading.count("full_attention_interval", 4)
        names: object = ["linear_attention" if (layer + 1) % interval else "full_attention" for layer in range(layers)]
    else:
        names = config["layer_types"]
    mixers = listed(names, "layer_types", NAMES)
    if len(mixers) != layers:
        raise InvalidDescription(f"layer_types has to list {layers} layers")
    recurrence = Recurrence(
        kind="gated_delta",
        heads=reading.count("linear_num_value_heads", 32),
        head_dim=reading.count("linear_value_head_dim", 128),
        groups=reading.count("linear_num_key_heads", 16),
        state_size=reading.count("linear_key_head_dim", 128),
        conv_kernel=reading.count("linear_conv_kernel_dim", 4),
        chunk=CHUNK,
    )
    mlps = [_mlp(config, layer) for layer in range(layers)]
    width = first_count(config, "intermediate_size", "moe_intermediate_size") if "dense" not in mlps else None
    return Layers(
        sorts=counted(mixer.model_copy(update={"mlp": mlp}) for mixer, mlp in zip(mixers, mlps, strict=True)),
        recurrence=recurrence if DELTA in mixers else None,
        common={} if width is None else {"intermediate_size": width},
        fields={
            "attention_gate": True,
            "mtp_layers": optional_count(config, "mtp_num_hidden_layers") or 0,
        },
        experts="experts" in mlps,
        class_defaults=tuple(reading.left),
    )


def _mlp(config: Config, layer: int) -> MlpKind:
    """Experts, but in layers that mlp_only_layers or decoder_sparse_step leave dense."""
    if not optional_count(config, "num_experts"):
        return "dense"
    dense = config.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        raise InvalidDescription(f"config key mlp_only_layers is {dense!r}, not a list")
    step = optional_count(config, "decoder_sparse_step") or 1
    return "dense" if layer in dense or (layer + 1) % step else "experts"
