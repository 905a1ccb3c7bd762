"""Experts in a config: how many, how wide, which layers have them, and what stands beside them."""

from projector.errors import InvalidDescription
from projector.hf.fields import Config, first_count, missing, optional_count

# Families whose width of shared experts is that of all of them together.
ONE_WIDTH_FOR_ALL = ("nemotron_h",)


def experts(config: Config, width: int, layers: int | None) -> dict[str, int]:
    """The ModelArchitecture fields of a mixture of experts; `width` is intermediate_size. layers: None where
    the family says by itself which of them have experts.

    A DeepSeek-style model without routed experts would be dense and is refused like any config without them.
    """
    number = first_count(config, "n_routed_experts", "num_local_experts", "num_experts")
    chosen = first_count(config, "num_experts_per_tok", "experts_per_token")
    if not number or not chosen:
        raise missing("num_local_experts and num_experts_per_tok")
    width = optional_count(config, "moe_intermediate_size") or width
    if not width:
        raise missing("moe_intermediate_size")
    return {
        "experts": number,
        "experts_per_token": chosen,
        "moe_intermediate_size": width,
        **_groups(config, number),
        "shared_experts": _shared(config, width),
        **({} if layers is None else _dense_layers(config, layers)),
    }


def _groups(config: Config, number: int) -> dict[str, int]:
    """Groups of a router that picks groups before experts (DeepSeek-V2 and V3); one group restricts nothing."""
    groups = optional_count(config, "n_group") or 1
    chosen = optional_count(config, "topk_group") or groups
    if groups == 1:
        return {}
    if number % groups or chosen > groups:
        raise InvalidDescription(f"n_group {groups} and topk_group {chosen} do not fit {number} experts")
    return {"expert_groups": groups, "groups_per_token": chosen}


def _shared(config: Config, width: int) -> int:
    """Shared experts in units of a routed one's width."""
    llama4 = config.get("model_type") == "llama4_text"
    number = (optional_count(config, "n_shared_experts") or 0) + int(llama4)
    if config.get("model_type") in ONE_WIDTH_FOR_ALL:
        number = 0
    shared_width = first_count(config, "shared_expert_intermediate_size", "shared_intermediate_size") or 0
    if number and shared_width not in (0, width):
        raise InvalidDescription(f"shared experts of width {shared_width} beside experts of {width} are not modelled")
    if shared_width % width:
        raise InvalidDescription(f"a shared expert of width {shared_width} is no multiple of an expert's {width}")
    return number or shared_width // width


def _dense_layers(config: Config, layers: int) -> dict[str, int]:
    """Leading dense layers, or an expert layer in one of every so many."""
    first = first_count(config, "first_k_dense_replace") or 0
    listed = config.get("mlp_only_layers") or []
    if listed:
        if not isinstance(listed, list) or listed != list(range(len(listed))) or len(listed) > layers:
            raise InvalidDescription("mlp_only_layers other than the first layers are not modelled")
        first = first or len(listed)
    step = first_count(config, "decoder_sparse_step", "interleave_moe_layer_step") or 1
    pattern = config.get("moe_layer_freq", 1)
    if pattern not in (1, None) and not _leads(pattern, first, layers):
        raise InvalidDescription(f"moe_layer_freq {pattern!r} is not modelled: expert layers follow leading dense ones")
    stated = config.get("moe_layers")
    every = range(step - 1, layers, step)
    if stated is not None and not (isinstance(stated, list) and len(stated) == len(every) and stated == list(every)):
        raise InvalidDescription(f"moe_layers other than every {step}th layer are not modelled")
    return {"first_dense_layers": first, "moe_every_layers": step}


def _leads(pattern: object, first: int, layers: int) -> bool:
    """Whether a list says 0 for the first so many layers and 1 for all others. Sizes are compared before lists."""
    if not isinstance(pattern, list) or len(pattern) != layers or first > layers:
        return False
    return pattern == [0] * first + [1] * (layers - first)
