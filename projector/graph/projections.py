"""Projections into attention: grouped-query and multi-head latent."""

from collections.abc import Iterator
from dataclasses import replace

from projector.graph.columns import switched
from projector.graph.gemm import communication, gemm, quantise, tensor_parallel_entry
from projector.graph.operator import Collective, Operator
from projector.graph.scope import Scope


def qkv_projection(scope: Scope) -> Iterator[Operator]:
    """One GEMM from the hidden state to this rank's query, key and value heads."""
    hidden = scope.model.hidden_size
    yield from tensor_parallel_entry(scope, "attention_gather", "layer")
    yield from quantise(scope, "qkv_cast", "layer", scope.tokens * hidden)
    yield gemm(
        scope,
        "qkv",
        "layer",
        inner=scope.one * hidden,
        outer=scope.projected_width,
        input_tokens_kept=scope.edge_tokens,
    )


def latent_projections(scope: Scope) -> Iterator[Operator]:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

    Down projections to the query and key-value latents are held whole by every TP rank and work on the rows it holds;
    with sequence parallelism the latents are gathered in place of the hidden state (as in Megatron-Core). Up
    projections are split by heads. Absorbed decoding multiplies with the same up-projection weights, so their GEMM
    stands for both forms; a prefill chunk expands the latents of the chunks before it once more (as in vLLM).
    Left out: norms and casts of the latents.
    """
    model, rows = scope.model, replace(scope, tokens=scope.edge_tokens)
    yield from quantise(scope, "qkv_cast", "layer", rows.tokens * model.hidden_size)
    yield gemm(
        rows,
        "latent_down",
        "layer",
        inner=scope.one * model.hidden_size,
        outer=scope.one * (model.kv_lora_rank + model.qk_rope_head_dim + model.q_lora_rank),
        input_tokens_kept=scope.edge_tokens,
    )
    yield _latent_gather(scope)
    yield gemm(
        scope,
        "query_up",
        "layer",
        inner=scope.one * (model.q_lora_rank or model.hidden_size),
        outer=scope.q_width,
        input_tokens_kept=scope.edge_tokens if model.q_lora_rank else scope.zero,
        recomputable_input=False,
    )
    yield gemm(
        replace(scope, tokens=scope.expanded_tokens),
        "key_value_up",
        "layer",
        inner=scope.one * model.kv_lora_rank,
        outer=scope.heads * (model.qk_nope_head_dim + model.v_head_dim),
        input_tokens_kept=scope.edge_tokens,
        recomputable_input=False,
    )
    if model.attention_gate:
        yield gemm(
            scope,
            "attention_gate_in",
            "layer",
            inner=scope.one * model.hidden_size,
            outer=scope.out_width,
            input_tokens_kept=scope.zero,
        )


def _latent_gather(scope: Scope) -> Operator:
    """What a TP group gathers with sequence parallelism: latents, and the hidden state where queries have no latent or
    a gate reads it."""
    model = scope.model
    hidden = model.hidden_size if model.attention_gate or not model.q_lora_rank else 0
    width = model.kv_lora_rank + model.qk_rope_head_dim + model.q_lora_rank + hidden
    collective = Collective("all_gather", "tp", "tp", scope.tokens * width * scope.act_bytes)
    return communication(scope, "latent_gather", "layer", collective, switched(scope.sp & (scope.tp > 1)))
