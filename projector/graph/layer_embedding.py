"""Embeddings a layer of its own: a narrow vector looked up for each token and layer, gated and added (Gemma 3n, 4)."""

from collections.abc import Iterator
from dataclasses import replace

from projector.graph.gemm import gemm
from projector.graph.operator import Operator
from projector.graph.pointwise import norm, residual
from projector.graph.scope import Scope


def layer_embedding(scope: Scope) -> Iterator[Operator]:
    """Gate and projection of the hidden state to the narrow width, their product with the looked-up vector, projection
    back, norm and sum. Every TP rank holds these narrow matrices whole and works on the rows it holds.

    Left out: the element-wise products on the narrow width.
    """
    model = scope.model
    narrow = scope.one * model.layer_embedding_size
    if not model.layer_embedding_size:
        return
    hidden, rows = scope.one * model.hidden_size, replace(scope, tokens=scope.edge_tokens)
    yield gemm(rows, "layer_embedding_in", "layer", inner=hidden, outer=2 * narrow, input_tokens_kept=rows.tokens)
    yield gemm(rows, "layer_embedding_out", "layer", inner=narrow, outer=hidden, input_tokens_kept=2 * rows.tokens)
    yield norm(scope, "layer_embedding_norm", "layer")
    yield residual(scope, "layer_embedding_residual", "layer")
