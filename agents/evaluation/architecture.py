"""The model of a row: a hub config through the catalogue's reader, plain transformer sizes as they stand."""

from collections.abc import Mapping

from pydantic import ValidationError

from agents.evaluation.fields import Fields
from agents.evaluation.refusal import Refused, first_problem
from projector.catalog import architecture, from_hf_config
from projector.errors import ShardwiseError
from projector.specs.architecture import ModelArchitecture

# model_type -> gated MLP, for rows that state sizes without a hub config
PLAIN_MODELS = {"gpt": False, "gpt3": False, "internlm": True, "llama2": True, "maxtext-default": True}
# keys of a row that have to agree with the catalogue's model
SIZES = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden_size",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "vocab_size": "vocab_size",
    "num_experts": "experts",
    "n_routed_experts": "experts",
    "num_experts_per_tok": "experts_per_token",
    "moe_intermediate_size": "moe_intermediate_size",
}
NEEDED = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")


def architecture_of(arch: Mapping[str, object], name: str, source: str) -> ModelArchitecture:
    """The architecture a row inlines. Refused where it is missing, incomplete or of a kind the projector refuses.

    Where sizes a family needs are not among the row's, the catalogue's model of the row's name stands for them, if it
    agrees with every size the row states.
    """
    if not arch:
        raise Refused("no architecture stated")
    if Fields(arch).text("model_type") in PLAIN_MODELS:
        return _plain(Fields(arch), name, source)
    try:
        return from_hf_config(dict(arch), name=name, source=source)
    except ShardwiseError as error:
        known = _catalogued(arch, name)
        if known is None:
            raise Refused(str(error)) from error
        return known


def _catalogued(arch: Mapping[str, object], name: str) -> ModelArchitecture | None:
    try:
        known = architecture(name)
    except ShardwiseError:
        return None
    disagree = [key for key, size in SIZES.items() if arch.get(key) is not None and arch[key] != getattr(known, size)]
    return None if disagree else known


def _plain(arch: Fields, name: str, source: str) -> ModelArchitecture:
    missing = [key for key in NEEDED if not arch.whole(key)]
    if missing:
        raise Refused(f"architecture lacks {', '.join(missing)}")
    layers, hidden, heads, width, vocabulary = (arch.whole(key) for key in NEEDED)
    assert hidden is not None
    assert heads is not None
    try:
        return ModelArchitecture.model_validate(
            {
                "name": name,
                "layers": layers,
                "hidden_size": hidden,
                "heads": heads,
                "kv_heads": arch.whole("num_key_value_heads") or heads,
                "head_dim": arch.whole("head_dim") or hidden // heads,
                "intermediate_size": width,
                "vocab_size": vocabulary,
                "gated_mlp": PLAIN_MODELS[str(arch.values["model_type"])],
                "tied_embeddings": bool(arch.switch("tie_word_embeddings")),
                "source": source,
            }
        )
    except ValidationError as error:
        raise Refused(f"architecture: {first_problem(error)}") from error
