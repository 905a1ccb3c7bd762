"""Backward operators, derived from the forward ones."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from projector.graph.groups import Degrees
from projector.graph.operator import Collective, CollectiveKind, Operator, Pass, changed
from projector.graph.scope import Scope

# Bytes (and for attention FLOP) of a backward execution over the forward one.
# Fused attention recomputes the scores: 5 products against 2 (FlashAttention, arXiv:2205.14135). Norms and element-wise
# operators read input and gradient and write a gradient: 3 passes against 2.
ATTENTION_BACKWARD = {"fused": 2.5, "unfused": 2.0}
POINTWISE_BACKWARD = 1.5
# A gradient of sharded weights is written once, in 16 bit, and reduced at once.
SHARDED_GRADIENT_BYTES = 2.0
TURNED: dict[CollectiveKind, CollectiveKind] = {"all_gather": "reduce_scatter", "reduce_scatter": "all_gather"}


def backward(operators: Iterable[Operator], scope: Scope, degrees: Degrees) -> Iterator[Operator]:
    """The backward pass of each forward operator. A GEMM becomes two (input and weight gradient) of the same size."""
    for operator in operators:
        if operator.back is not None:
            yield from (in_pass(one, "backward") for one in operator.back)
        elif operator.collective is not None:
            yield from _backward_collective(operator, operator.collective)
        elif operator.math == "linear" or operator.kind == "gemm":
            yield _named(in_pass(operator, "backward"), "input_gradient")
            yield _weight_gradient(operator, scope, degrees)
        elif operator.kind == "attention":
            factor = ATTENTION_BACKWARD[scope.software.attention]
            yield changed(
                in_pass(operator, "backward"),
                flop=factor * operator.flop,
                moved_bytes=factor * operator.moved_bytes,
                kernels=2 * operator.kernels,
            )
        else:
            yield changed(in_pass(operator, "backward"), moved_bytes=POINTWISE_BACKWARD * operator.moved_bytes)


def in_pass(operator: Operator, run: Pass) -> Operator:
    """The operator in another pass; weights and kept activations stay with the forward one."""
    return changed(
        operator,
        run=run,
        parameters=None,
        saved_bytes=None,
        kept_bytes=None,
        back=None,
        pause_s=operator.pause_s if run == "recompute" else 0.0,
    )


def _named(operator: Operator, name: str) -> Operator:
    return changed(operator, name=f"{operator.name}_{name}")


def _weight_gradient(operator: Operator, scope: Scope, degrees: Degrees) -> Operator:
    """The product that adds to the gradient of the weights: in place of reading weights it reads and writes their sum.

    Sums stand in the dtype the software keeps gradients in, and every micro-batch adds to them, which one wide product
    hides behind its arithmetic and many narrow experts do not. Sharded weights are summed where they are reduced.
    """
    twin = changed(_named(in_pass(operator, "backward"), "weight_gradient"), weight_gradient=True)
    if operator.parameters is None:
        return twin
    shards = degrees.expert_shard if operator.expert else degrees.shard
    bytes_each = np.where(shards > 1, SHARDED_GRADIENT_BYTES, 2.0 * scope.software.gradient_bytes)
    return changed(twin, moved_bytes=operator.moved_bytes + operator.parameters * (bytes_each - scope.weight_bytes))


def _backward_collective(operator: Operator, collective: Collective) -> Iterator[Operator]:
    """Gather and scatter trade places; an all-reduce and an all-to-all repeat.

    With sequence parallelism the gathered block input is not kept, so it is gathered again for the weight gradient
    (Korthikanti et al. 2022, section 4.2.2): a gather costs scatter + gather.
    """
    kind = TURNED.get(collective.kind, collective.kind)
    twin = changed(in_pass(operator, "backward"), collective=replace(collective, kind=kind))
    yield twin
    if collective.kind == "all_gather" and collective.group == "tp" and operator.regathered:
        yield changed(twin, name=f"{operator.name}_again", collective=collective)
