"""Projections into attention: grouped-query and multi-head latent."""

from collections.abc import Iterator

from projector.graph.gemm import gemm
from projector.graph.operator import Operator
from projector.graph.scope import Scope


def qkv_projection(scope: Scope) -> Iterator[Operator]:
    """One GEMM from the hidden state to this rank's query, key and value heads."""
    yield gemm(
        scope,
        "qkv",
        "layer",
        inner=scope.one * scope.model.hidden_size,
        outer=scope.q_width + scope.k_width + scope.v_width,
        input_tokens_kept=scope.edge_tokens,
    )


def latent_projections(scope: Scope) -> Iterator[Operator]:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

    Down projections to the query and key-value latents are held whole by every TP rank, up projections by heads.
    Absorbed decoding multiplies with the same up-projection weights, so their GEMM stands for both forms.
    Left out: the norms of the latents; with sequence parallelism the gather of latents in place of the hidden state.
    """
    model = scope.model
    latent = model.kv_lora_rank + model.qk_rope_head_dim + model.q_lora_rank
    yield gemm(
        scope,
        "latent_down",
        "layer",
        inner=scope.one * model.hidden_size,
        outer=scope.one * latent,
        input_tokens_kept=scope.edge_tokens,
    )
    yield gemm(
        scope,
        "query_up",
        "layer",
        inner=scope.one * (model.q_lora_rank or model.hidden_size),
        outer=scope.q_width,
        input_tokens_kept=scope.tokens if model.q_lora_rank else scope.zero,
        recomputable_input=False,
    )
    yield gemm(
        scope,
        "key_value_up",
        "layer",
        inner=scope.one * model.kv_lora_rank,
        outer=scope.heads * (model.qk_nope_head_dim + model.v_head_dim),
        input_tokens_kept=scope.tokens,
        recomputable_input=False,
    )
