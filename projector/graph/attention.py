"""The attention block of a layer: norm, projections, attention core, output projection, residual."""

from collections.abc import Iterable, Iterator

import numpy as np

from projector.graph.columns import Column, switched
from projector.graph.gemm import gemm, quantise, tensor_parallel_exit
from projector.graph.indexer import index_scores, indexer_projections
from projector.graph.operator import HeadShape, Operator, Place
from projector.graph.pointwise import norm, residual
from projector.graph.projections import latent_projections, qkv_projection
from projector.graph.scope import AttentionWork, Scope

# Tensor cores take rows of whole 16 bytes: 8 elements of 16 bit. Batched products over heads of another width run
# without them, at the rate of fp32 arithmetic, as they sum in fp32: 312 against 19.5 TFLOP/s on A100 (datasheet). The
# four runs of BLOOM's trials with heads of 108 err by 4.6 % with it. Fused kernels pad instead.
ALIGNED_HEAD, UNALIGNED_SLOWDOWN = 8, 16.0


def attention_block(scope: Scope, beside: Iterable[Operator] = ()) -> Iterator[Operator]:
    """Forward operators of one attention block.

    Activation bytes kept for the backward pass follow Korthikanti et al. 2022 (arXiv:2205.05198, section 4) with
    grouped keys: norm input 2h, QKV input 2h, Q, K, V 2(q + k + v), output-projection input 2q, dropout mask h a token,
    and with unfused attention 5 bytes a score (softmax, its mask and its output; 2 without dropout). A fused kernel
    keeps one fp32 log-sum a query and head instead.
    A parallel block has one norm and one reduction for attention and MLP together: the MLP's.
    beside: operators of a mixer that reads the same input and whose partial sums join those of attention.
    """
    model = scope.model
    yield norm(scope, "attention_norm", "layer")
    yield from latent_projections(scope) if model.is_mla else qkv_projection(scope)
    yield from indexer_projections(scope)
    yield from _rotary(scope)
    for number, work in enumerate(scope.attention):
        yield from index_scores(scope, work, number)
        yield from _core(scope, work, number)
    if model.attention_gate:
        yield _output_gate(scope)
    yield from quantise(scope, "out_proj_cast", "layer", scope.tokens * scope.out_width)
    yield gemm(
        scope,
        "out_proj",
        "layer",
        inner=scope.out_width,
        outer=scope.one * model.hidden_size,
        input_tokens_kept=scope.tokens,
        recomputable_input=False,
    )
    yield from beside
    if model.parallel_block:
        return
    yield from tensor_parallel_exit(scope, "attention_reduce", "layer")
    if model.post_norms:
        yield norm(scope, "attention_post_norm", "layer")
    yield residual(scope, "attention_residual", "layer")


def _output_gate(scope: Scope) -> Operator:
    """What attention computed times the sigmoid of a gate: two reads, one write; gate and result are kept."""
    elements = scope.tokens * scope.out_width * scope.act_bytes
    return Operator(
        name="attention_gate",
        kind="elementwise",
        place="layer",
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=3 * elements * scope.software.pointwise_passes,
        saved_bytes=2 * elements,
        kept_bytes=2 * elements,
    )


def _rotary(scope: Scope) -> Iterator[Operator]:
    """Rotation of queries and keys, a read and a write; of latent attention only the rotary part of each head."""
    model = scope.model
    if model.positions != "rope":
        return
    width = scope.q_width + scope.k_width
    if model.is_mla:
        width = (scope.heads + 1) * model.qk_rope_head_dim
    yield Operator(
        name="rotary",
        kind="elementwise",
        place="layer",
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=2 * scope.tokens * width * scope.act_bytes * scope.software.pointwise_passes,
    )


def _core(scope: Scope, work: AttentionWork, number: int) -> Iterator[Operator]:
    sliding = scope.model.windowed_layers
    suffix = "" if number == 0 else f"_{number}"
    if sliding < scope.model.layers:
        yield _core_of(scope, work, f"attention{suffix}", "full_attention_layer", work.full_pairs, work.full_keys)
    if sliding:
        yield _core_of(
            scope, work, f"window_attention{suffix}", "sliding_attention_layer", work.window_pairs, work.window_keys
        )


def _core_of(scope: Scope, work: AttentionWork, name: str, place: Place, pairs: Column, keys: Column) -> Operator:
    """softmax(Q K^T) V. FLOP = 2 pairs (score width + value width); masked pairs are not computed.

    Widths are heads / tp times head_dim and value_dim; on absorbed latents (DeepSeek-V2, section 2.1.2)
    kv_lora_rank + rope and kv_lora_rank a head. Fused kernels read Q, K, V and write the output once (FlashAttention,
    arXiv:2205.14135). Unfused ones compute the whole square and move every score: write 2 bytes, softmax 4, dropout 5
    with its mask, read 2; they keep 5 bytes a score (2 without dropout).
    A ring of cp ranks runs cp kernels, each on a cp-th of the keys, and each reads the queries and writes the output
    (Liu et al. 2023, arXiv:2310.01889); its count says so, and every kernel pays the ramp and the floor.
    Left out: the imbalance of ring attention (zig-zag splits are assumed under cp).
    """
    score_width, value_width, key_bytes = _widths(scope, work)
    stored = work.queries * (score_width + value_width) * scope.act_bytes + keys / work.rounds * key_bytes
    qkv = work.queries * (scope.q_width + scope.k_width + scope.v_width) * scope.act_bytes
    flop = 2 * pairs / work.rounds * (score_width + value_width)
    unfused = scope.software.attention == "unfused"
    if unfused:
        scores = (2 * pairs - work.queries) * scope.heads / work.rounds
        bytes_moved, bytes_kept = (13, 5) if scope.software.dropout else (8, 2)
        moved, saved, kept = stored + bytes_moved * scores, qkv + bytes_kept * scores * work.rounds, qkv
        flop = 2 * flop
    else:
        moved, saved = stored, qkv + 4 * work.queries * scope.heads
        kept = saved
    return Operator(
        name=name,
        kind="attention",
        place=place,
        run="forward",
        count=switched(work.queries > 0) * work.rounds,
        flop=flop,
        moved_bytes=moved,
        math="wide",
        kernels=6.0 if unfused else 1.0,
        slowdown=_slowdown(scope),
        saved_bytes=saved / work.rounds,
        kept_bytes=kept / work.rounds,
        rerun=unfused,
        head=None if unfused or not work.shaped else _head(scope, work, pairs),
    )


def _head(scope: Scope, work: AttentionWork, pairs: Column) -> HeadShape:
    keys = pairs / work.rounds / np.maximum(work.queries, 1.0)
    return HeadShape(keys, scope.model.head_dim, scope.model.value_dim)


def _slowdown(scope: Scope) -> float:
    model, software = scope.model, scope.software
    if software.attention == "unfused":
        return UNALIGNED_SLOWDOWN if model.head_dim % ALIGNED_HEAD else 1.0
    return software.bias_slowdown if model.positions == "alibi" or software.attention_bias else 1.0


def _widths(scope: Scope, work: AttentionWork) -> tuple[Column, Column, Column]:
    """(features a score multiplies, features a value adds, bytes read a key and value) on one TP rank.

    Expanded latents are read at the width of activations, everything else as it is cached.
    """
    model = scope.model
    if model.is_mla and (work.absorbed or model.index_topk):
        latent = float(model.kv_lora_rank + model.qk_rope_head_dim)
        return scope.heads * latent, scope.heads * model.kv_lora_rank, latent * work.kv_bytes
    element = scope.act_bytes if model.is_mla else work.kv_bytes
    return scope.q_width, scope.out_width, (scope.k_width + scope.v_width) * element
