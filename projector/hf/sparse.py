"""Families with sparse attention: an indexer beside attention chooses the keys a token sees."""

from collections.abc import Mapping

from projector.errors import InvalidDescription
from projector.hf.fields import Config, count, first_count, missing, optional_count
from projector.hf.layers import Layers, counted
from projector.hf.mlp_layers import leading_dense, mlp_kinds
from projector.specs.layer_sort import LayerSort

KEYS = frozenset(
    """
    index_topk index_n_heads index_head_dim indexer_types index_topk_freq index_skip_topk_offset index_topk_pattern
    indexer_rope_interleave index_share_for_mtp_iteration head_dim qk_head_dim ep_size layer_types moe_router_dtype
    mlp_layer_types first_k_dense_replace moe_layer_freq
    """.split()  # noqa: SIM905 - a word list reads better
)
KEYS_OF_MINIMAX = frozenset(
    """
    index_n_heads index_head_dim index_block_size index_topk_blocks index_local_blocks sparse_attention_config
    dense_intermediate_size layer_types mlp_layer_types moe_layer_freq first_k_dense_replace num_mtp_modules
    num_nextn_predict_layers attention_output_gate qk_norm_type
    """.split()  # noqa: SIM905 - a word list reads better
)


def read(config: Config) -> Layers:
    """DeepSeek-V3.2 and GLM-5: latent attention over index_topk keys; some layers may reuse an earlier one's choice."""
    layers = count(config, "num_hidden_layers")
    kinds = mlp_kinds(config, layers)
    fields = {
        "index_topk": count(config, "index_topk"),
        "index_heads": count(config, "index_n_heads"),
        "index_head_dim": count(config, "index_head_dim"),
    }
    leading = leading_dense(kinds)
    shared = _shared(config, layers)
    if leading is not None and not any(shared):
        return Layers(fields=fields, common={"first_k_dense_replace": leading, "moe_layer_freq": 1})
    sorts = counted(
        LayerSort(layers=1, mlp=mlp, selection="shared" if reuses else "own")
        for mlp, reuses in zip(kinds, shared, strict=True)
    )
    return Layers(sorts=sorts, fields=fields)


def _shared(config: Config, layers: int) -> list[bool]:
    """Whether a layer reuses an earlier one's choice of keys."""
    types = config.get("indexer_types")
    if types is None:
        if (optional_count(config, "index_topk_freq") or 1) > 1 or config.get("index_topk_pattern"):
            raise missing("indexer_types")
        return [False] * layers
    if not isinstance(types, list) or len(types) != layers or set(map(str, types)) - {"full", "shared"}:
        raise InvalidDescription(f"indexer_types has to name {layers} layers, each full or shared")
    return [kind == "shared" for kind in types]


def read_minimax(config: Config) -> Layers:
    """MiniMax-M3: grouped attention over chosen blocks of keys, in most layers; the others attend to all."""
    layers = count(config, "num_hidden_layers")
    said = config.get("sparse_attention_config") or {}
    if not isinstance(said, dict):
        raise InvalidDescription(f"config key sparse_attention_config is {said!r}, not an object")
    if config.get("attention_output_gate"):
        raise InvalidDescription("attention_output_gate is not modelled for this model_type")
    sizes = {
        key: _either(config, said, key, own)
        for key, own in (
            ("index_n_heads", "sparse_num_index_heads"),
            ("index_head_dim", "sparse_index_dim"),
            ("index_block_size", "sparse_block_size"),
            ("index_topk_blocks", "sparse_topk_blocks"),
        )
    }
    sparse = _sparse_layers(config, said, layers)
    kinds = mlp_kinds(config, layers)
    return Layers(
        sorts=counted(
            LayerSort(layers=1, mlp=mlp, selection="own" if chosen else "none")
            for mlp, chosen in zip(kinds, sparse, strict=True)
        ),
        common={
            "intermediate_size": count(config, "dense_intermediate_size"),
            "moe_intermediate_size": first_count(config, "moe_intermediate_size", "intermediate_size"),
        },
        fields={
            "index_topk": sizes["index_block_size"] * sizes["index_topk_blocks"],
            "index_heads": sizes["index_n_heads"],
            "index_head_dim": sizes["index_head_dim"],
            "mtp_layers": optional_count(config, "num_nextn_predict_layers") or 0,
        },
    )


def _either(config: Config, said: Mapping[str, object], key: str, own: str) -> int:
    value = first_count({key: config.get(key), own: said.get(own)}, key, own)
    if not value:
        raise missing(f"{key} or sparse_attention_config.{own}")
    return value


def _sparse_layers(config: Config, said: Mapping[str, object], layers: int) -> list[bool]:
    types, flags = config.get("layer_types"), said.get("sparse_attention_freq")
    known = {"minimax_m3_sparse": True, "full_attention": False, 1: True, 0: False}
    stated = flags if types is None else types
    if stated is None:
        raise missing("layer_types or sparse_attention_config.sparse_attention_freq")
    if not isinstance(stated, list) or len(stated) != layers:
        raise InvalidDescription(f"the list of sparse layers has to name {layers} layers")
    if any(isinstance(word, list | dict) or word not in known for word in stated):
        raise InvalidDescription("layers are minimax_m3_sparse or full_attention")
    return [known[word] for word in stated]
