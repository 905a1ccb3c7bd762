"""Multi-token prediction: layers behind the model that predict tokens further ahead, trained beside it."""

from collections.abc import Iterator
from dataclasses import replace

from projector.graph.columns import switched
from projector.graph.edges import head
from projector.graph.gemm import gemm, hidden_state_collective
from projector.graph.operator import Operator
from projector.graph.pointwise import norm
from projector.graph.scope import Scope


def entry(scope: Scope) -> Iterator[Operator]:
    """Norms of the hidden state and of the next token's embedding, and the projection of both to one hidden state.

    DeepSeek-V3 (arXiv:2412.19437, section 2.2). Output features are shared out over tp, as Megatron-Core does.
    """
    hidden = scope.one * scope.model.hidden_size
    yield norm(scope, "prediction_hidden_norm", "layer")
    yield norm(scope, "prediction_embedding_norm", "layer")
    yield gemm(
        scope, "prediction_in", "layer", inner=2 * hidden, outer=hidden / scope.tp,
        input_tokens_kept=scope.edge_tokens, recomputable_input=False,
    )  # fmt: skip
    yield hidden_state_collective(scope, "prediction_gather", "layer", "all_gather", switched(scope.tp > 1))


def prediction(scope: Scope, layer: Iterator[Operator], *, training: bool) -> Iterator[Operator]:
    """What the trained prediction layers add: entry, a layer (`layer`, of the model's kind), a vocabulary product and
    loss each, with the embedding and the head of the model. They stand on the last stage.

    Left out: the look-up of the shifted tokens, a second copy of the embedding where the first stage is another one.
    """
    times = scope.model.trained_mtp_layers
    if not times or not training or scope.prediction is None:
        return
    for operator in (*entry(scope.prediction), *layer):
        owned = None if operator.parameters is None else times * operator.parameters
        yield replace(operator, place="mtp_layer", part=operator.place, count=times * operator.count, parameters=owned)
    for operator in head(scope, training=True):
        owned = (
            times * operator.parameters if operator.name == "final_norm" and operator.parameters is not None else None
        )
        yield replace(operator, place="mtp_head", count=times * operator.count, parameters=owned)
