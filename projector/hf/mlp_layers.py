"""Which layers have experts, in the ways configs of several families say it."""

from projector.errors import InvalidDescription
from projector.hf.fields import Config, optional_count
from projector.specs.layer_sort import MlpKind

WORDS: dict[object, MlpKind] = {
    "dense": "dense", "sparse": "experts", "moe": "experts", "hash_moe": "experts", 0: "dense", 1: "experts",
}  # fmt: skip
KEYS = frozenset({"mlp_layer_types", "moe_layer_freq", "first_k_dense_replace", "mtp_mlp_layer_types"})


def mlp_kinds(config: Config, layers: int) -> list[MlpKind]:
    """The MLP of each layer: mlp_layer_types or a moe_layer_freq list, else experts behind first_k_dense_replace dense
    ones. A list of another length, or words it does not know, are refused."""
    stated = config.get("mlp_layer_types")
    if stated is None and isinstance(config.get("moe_layer_freq"), list):
        stated = config["moe_layer_freq"]
    if stated is None:
        dense = min(optional_count(config, "first_k_dense_replace") or 0, layers)
        return ["dense" if layer < dense else "experts" for layer in range(layers)]
    if not isinstance(stated, list) or len(stated) != layers:
        raise InvalidDescription(f"the list of MLPs by layer has to name {layers} layers")
    if any(isinstance(word, list | dict) or word not in WORDS for word in stated):
        raise InvalidDescription(f"MLPs by layer: known are {', '.join(str(word) for word in WORDS)}")
    return [WORDS[word] for word in stated]


def leading_dense(kinds: list[MlpKind]) -> int | None:
    """How many dense layers lead, where all others have experts; None where dense layers stand elsewhere too."""
    dense = kinds.count("dense")
    return dense if "dense" not in kinds[dense:] else None
