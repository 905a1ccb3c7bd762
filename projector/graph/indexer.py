"""Sparse attention: an indexer scores every earlier token, and attention sees the best of them (DeepSeek-V3.2)."""

from collections.abc import Iterator
from dataclasses import replace

from projector.graph.columns import Column, switched
from projector.graph.gemm import gemm
from projector.graph.operator import Operator
from projector.graph.scope import AttentionWork, Scope

# Bytes of a score as it is written for the choice of the best, which reads it.
SCORE_BYTES = 4.0


def indexer_projections(scope: Scope) -> Iterator[Operator]:
    """Queries, one key and weights of the indexer's heads; every TP rank holds and computes them whole.

    Queries come from the query latent where attention has one.
    """
    model = scope.model
    if not model.index_heads:
        return
    rows = replace(scope, tokens=scope.edge_tokens)
    width = scope.one * model.index_heads * model.index_head_dim
    from_latent = model.q_lora_rank > 0
    yield gemm(
        rows, "index_query", "layer", inner=scope.one * (model.q_lora_rank or model.hidden_size), outer=width,
        input_tokens_kept=scope.zero, recomputable_input=False,
    )  # fmt: skip
    weights = model.index_heads if from_latent else 0
    yield gemm(
        rows, "index_key", "layer", inner=scope.one * model.hidden_size,
        outer=scope.one * (model.index_head_dim + weights), input_tokens_kept=scope.zero,
    )  # fmt: skip


def index_scores(scope: Scope, work: AttentionWork, number: int) -> Iterator[Operator]:
    """Scores of all pairs and the choice of the best keys. FLOP = 2 pairs heads head_dim; scores, summed over heads,
    are written and read once. Under tp the rows are shared out (every rank needs the choice, which is small).

    Left out: the exchange of the choice, the selection's own kernels beyond that traffic.
    """
    model = scope.model
    if not model.index_heads:
        return
    pairs: Column = work.full_pairs / work.rounds / scope.tp
    width = model.index_heads * model.index_head_dim
    keys = work.full_keys / work.rounds * model.index_head_dim * work.kv_bytes
    yield Operator(
        name="index_scores" if number == 0 else f"index_scores_{number}",
        kind="attention",
        place="layer",
        run="forward",
        count=switched(work.queries > 0) * work.rounds,
        flop=2 * pairs * width,
        moved_bytes=keys + 2 * SCORE_BYTES * pairs,
        math="wide",
        kernels=2.0,
        saved_bytes=work.queries / scope.tp * (width + model.index_head_dim) * scope.act_bytes / work.rounds,
        kept_bytes=work.queries / scope.tp * (width + model.index_head_dim) * scope.act_bytes / work.rounds,
    )
