"""What a ModelArchitecture may not say at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from projector.specs.architecture import ModelArchitecture


def contradictions(model: ModelArchitecture) -> Iterator[str]:
    """Sizes that contradict each other or lack what they need, one sentence each."""
    if model.heads % model.kv_heads:
        yield f"kv_heads {model.kv_heads} does not divide heads {model.heads}"
    if model.experts and not (model.experts_per_token and model.moe_intermediate_size):
        yield "a mixture of experts needs experts_per_token and moe_intermediate_size"
    if model.experts_per_token > model.experts:
        yield f"experts_per_token {model.experts_per_token} > experts {model.experts}"
    if model.first_dense_layers and model.moe_every_layers > 1:
        yield "leading dense layers and dense layers in between are not modelled together"
    if (model.sliding_layers or model.chunked_window) and model.sliding_window is None:
        yield "sliding_layers or chunked_window without sliding_window"
    if max(model.sliding_layers, model.first_dense_layers) > model.layers:
        yield "more sliding or dense layers than layers"
    if model.positions == "learned" and model.max_positions is None:
        yield "learned positions without max_positions"
    if (model.index_heads > 0) != (model.index_topk > 0) or (model.index_heads > 0) != (model.index_head_dim > 0):
        yield "sparse attention needs index_topk, index_heads and index_head_dim"
    if model.index_topk and model.sliding_layers and not model.sorts:
        yield "windows and sparse attention in one model need sorts of layers"
    yield from _of_latents(model)
    yield from _of_sorts(model)
    if model.trained_mtp_layers and (model.parallel_block or not model.attention_layers):
        yield "prediction layers of models with parallel blocks or without attention are not modelled"


def _of_sorts(model: ModelArchitecture) -> Iterator[str]:
    recurrent = any(sort.recurrent for sort in model.sorts)
    if recurrent != (model.recurrence is not None):
        yield "recurrence belongs to models with recurrent layers in `sorts`, and to them alone"
    if not model.sorts:
        if model.layer_embedding_size:
            yield "embeddings of each layer's own are modelled with sorts of layers"
        return
    if sum(sort.layers for sort in model.sorts) != model.layers:
        yield f"sorts hold {sum(sort.layers for sort in model.sorts)} layers, the model {model.layers}"
    if model.first_dense_layers or model.moe_every_layers > 1 or model.parallel_block:
        yield "sorts say which layers are dense: first_dense_layers and the like do not go with them"
    if any(sort.mlp == "experts" for sort in model.sorts) != model.is_moe:
        yield "experts belong to models with layers of experts in `sorts`, and to them alone"
    for sort in model.sorts:
        heads, kv_heads = sort.heads or model.heads, sort.kv_heads or model.kv_heads
        if heads % kv_heads:
            yield f"kv_heads {kv_heads} does not divide heads {heads}"
        if model.is_mla and (sort.heads or sort.kv_heads or sort.head_dim):
            yield "latent attention has the same heads in every layer"


def _of_latents(model: ModelArchitecture) -> Iterator[str]:
    dims = (model.q_lora_rank, model.qk_nope_head_dim, model.qk_rope_head_dim)
    if not model.is_mla:
        if any(dims):
            yield "latent attention sizes without kv_lora_rank"
        return
    if not all((*dims[1:], model.v_head_dim)):
        yield "latent attention needs qk_nope_head_dim, qk_rope_head_dim and v_head_dim"
    if model.head_dim != model.qk_nope_head_dim + model.qk_rope_head_dim:
        yield "head_dim of latent attention is qk_nope_head_dim + qk_rope_head_dim"
    if model.kv_heads != model.heads:
        yield "latent attention has as many key and value heads as heads"
