"""The forward operators of a whole model, once a place; training and serving share them."""

from collections.abc import Iterator

from projector.graph.attention import attention_block
from projector.graph.edges import embedding, head
from projector.graph.mlp import dense_mlp, mlp_norm
from projector.graph.moe import moe_block
from projector.graph.operator import Operator
from projector.graph.scope import Scope


def forward(scope: Scope, *, training: bool) -> Iterator[Operator]:
    """Embedding, one layer of every sort the model has, head: in execution order."""
    yield from embedding(scope)
    yield from attention_block(scope)
    yield from mlp_norm(scope)
    if scope.model.moe_layers < scope.model.layers:
        yield from dense_mlp(scope)
    if scope.model.is_moe:
        yield from moe_block(scope)
    yield from head(scope, training=training)
