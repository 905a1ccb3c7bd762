"""The forward operators of a whole model, once a place; training and serving share them."""

from collections.abc import Iterator
from dataclasses import replace

from projector.graph.attention import attention_block
from projector.graph.edges import embedding, head
from projector.graph.layer_embedding import layer_embedding
from projector.graph.mlp import dense_mlp, mlp_norm
from projector.graph.moe import moe_block
from projector.graph.operator import Operator, sort_place
from projector.graph.prediction import prediction
from projector.graph.recurrent import recurrent_block, recurrent_mixer
from projector.graph.scope import Scope


def forward(scope: Scope, *, training: bool) -> Iterator[Operator]:
    """Embedding, one layer of every sort the model has, head: in execution order."""
    yield from embedding(scope)
    if scope.sorts:
        for number, sort in enumerate(scope.sorts):
            for operator in layer_of_sort(sort):
                yield replace(operator, place=sort_place(number), part=operator.place)
    else:
        yield from _layer(scope)
    yield from head(scope, training=training)
    if scope.prediction is not None:
        yield from prediction(scope, layer_of_sort(scope.prediction), training=training)


def _layer(scope: Scope) -> Iterator[Operator]:
    """A model whose layers differ in windows and experts at most: each operator at the place of its own layers."""
    yield from attention_block(scope)
    yield from mlp_norm(scope)
    if scope.model.moe_layers < scope.model.layers:
        yield from dense_mlp(scope)
    if scope.model.is_moe:
        yield from moe_block(scope)


def layer_of_sort(scope: Scope) -> Iterator[Operator]:
    """One layer of a sort: mixer, MLP, or both."""
    sort = scope.model.sort
    assert sort is not None
    if sort.attention:
        yield from attention_block(scope, recurrent_mixer(scope, input_kept=scope.zero) if sort.recurrent else ())
    elif sort.recurrent:
        yield from recurrent_block(scope)
    if sort.mlp != "none":
        yield from mlp_norm(scope)
        yield from moe_block(scope) if sort.mlp == "experts" else dense_mlp(scope)
    yield from layer_embedding(scope)
