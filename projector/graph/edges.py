"""The two ends of the model: embedding, final norm, vocabulary projection, loss or sampling."""

from collections.abc import Iterator

import numpy as np

from projector.graph.columns import switched
from projector.graph.gemm import hidden_state_collective
from projector.graph.operator import Collective, Operator
from projector.graph.scope import Scope


def embedding(scope: Scope) -> Iterator[Operator]:
    """Row look-up of a vocabulary-sharded table; its partial rows are summed over the TP group.

    A table of learned positions is held whole by every rank. Vectors for each layer are looked up here for all layers.
    """
    model = scope.model
    features = model.hidden_size + model.layers * model.layer_embedding_size
    hidden_bytes = scope.tokens * features * scope.act_bytes
    mask = scope.edge_tokens * scope.model.hidden_size if scope.software.dropout else scope.zero
    yield Operator(
        name="embedding",
        kind="embedding",
        place="embedding",
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=2 * hidden_bytes,
        parameters=(model.embedding_parameters + model.layer_embedding_parameters) / scope.tp
        + model.position_parameters,
        saved_bytes=mask,
        kept_bytes=mask,
    )
    sharded = scope.tp > 1
    yield hidden_state_collective(
        scope, "embedding_scatter", "embedding", "reduce_scatter", switched(sharded & scope.sp)
    )
    yield hidden_state_collective(scope, "embedding_reduce", "embedding", "all_reduce", switched(sharded & ~scope.sp))


def head(scope: Scope, *, training: bool) -> Iterator[Operator]:
    """Final norm, projection to vocab / tp logits in 16 bit, then the loss (training) or sampling (serving).

    Training keeps logits in fp32 for the loss: 4 bytes a logit beside the 2-byte product (Korthikanti et al. 2022,
    section 4.3), 6 bytes: the loss of Megatron and of XLA, which overwrite them with their gradient. Other losses
    hold other copies: `Software.loss_bytes`.
    Tied embeddings own no weights here, except in a pipeline, which holds the table at both ends.
    """
    model, rows, edge = scope.model, scope.head_tokens, np.minimum(scope.edge_tokens, scope.head_tokens)
    hidden, logits = model.hidden_size, rows * model.vocab_size / scope.tp
    yield Operator(
        name="final_norm",
        kind="norm",
        place="head",
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=2 * edge * hidden * scope.act_bytes,
        parameters=scope.one * hidden,
        saved_bytes=edge * hidden * scope.act_bytes,
        kept_bytes=edge * hidden * scope.act_bytes,
    )
    owned = np.where(model.tied_embeddings & (scope.pp == 1), 0.0, model.embedding_parameters / scope.tp)
    sharded = switched((scope.tp > 1) & scope.sp)
    yield hidden_state_collective(scope, "head_gather", "head", "all_gather", sharded)
    yield Operator(
        name="head",
        kind="gemm",
        place="head",
        run="forward",
        count=scope.one,
        flop=2 * rows * hidden * model.vocab_size / scope.tp,
        moved_bytes=(rows * hidden + hidden * model.vocab_size / scope.tp + logits) * scope.act_bytes,
        math="wide",
        parameters=owned,
        saved_bytes=edge * hidden * scope.act_bytes,
        kept_bytes=edge * hidden * scope.act_bytes,
    )
    logit_bytes = logits * (scope.act_bytes + scope.software.loss_bytes) if training else scope.zero
    yield Operator(
        name="loss" if training else "sampling",
        kind="elementwise" if training else "sampling",
        place="head",
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=logits * (scope.act_bytes + 12.0) if training else logits * 2 * scope.act_bytes,
        kernels=4.0,
        saved_bytes=logit_bytes,
        kept_bytes=logit_bytes,
    )
    yield _logit_collective(scope, training)


def _logit_collective(scope: Scope, training: bool) -> Operator:
    """Training sums three fp32 scalars a row over the vocabulary shards; serving gathers the logits to sample."""
    rows = scope.head_tokens
    if training:
        collective = Collective("all_reduce", "tp", "tp", rows * 12.0)
    else:
        collective = Collective("all_gather", "tp", "tp", rows * scope.model.vocab_size * scope.act_bytes)
    return Operator(
        name="logit_reduce" if training else "logit_gather",
        kind="other",
        place="head",
        run="forward",
        count=switched(scope.tp > 1),
        flop=scope.zero,
        moved_bytes=scope.zero,
        collective=collective,
    )
