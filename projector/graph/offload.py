"""Bytes that travel between a device and the memory of its host."""

from collections.abc import Iterable, Iterator

import numpy as np

from projector.graph.columns import Column, Switch, switched
from projector.graph.operator import Operator, Pass, Place, in_layers
from projector.graph.scope import Scope

BOTH_WAYS: tuple[Pass, ...] = ("forward", "backward")


def offloaded_inputs(scope: Scope, mode: Column) -> Iterator[Operator]:
    """Inputs of fully recomputed layers, out in the forward pass and in again in the backward pass.

    `Software.offloads_inputs`: 2 bytes an element of the hidden state a layer, each way.
    """
    if not scope.software.offloads_inputs:
        return
    hidden = scope.edge_tokens * scope.model.hidden_size * scope.act_bytes
    for run in BOTH_WAYS:
        yield host_copy(scope, f"layer_input_copy_{run}", "layer", hidden, switched(mode == 2), run)


def offloaded_activations(
    forward: Iterable[Operator], scope: Scope, mode: Column, offloads: Switch
) -> Iterator[Operator]:
    """What layers keep, out in the forward pass and in again in the backward pass, of plans with offload_activations.

    mode: 0 nothing is recomputed, 1 some of a layer, 2 all of it, so that its input alone is kept. Stacks that offload
    the inputs of recomputed layers by themselves do not do it twice.
    """
    if not offloads.any():
        return
    hidden = scope.edge_tokens * scope.model.hidden_size * scope.act_bytes
    whole = offloads & (mode == 2) & (not scope.software.offloads_inputs)
    for run in BOTH_WAYS:
        yield host_copy(scope, f"kept_input_copy_{run}", "layer", hidden, switched(whole), run)
    for operator in forward:
        if operator.saved_bytes is None or operator.kept_bytes is None or not in_layers(operator.place):
            continue
        kept = np.where(mode == 0, operator.saved_bytes, operator.kept_bytes)
        for run in BOTH_WAYS:
            count = operator.count * switched(offloads & (mode < 2))
            yield host_copy(scope, f"{operator.name}_copy_{run}", operator.place, kept, count, run)


def host_copy(scope: Scope, name: str, place: Place, host_bytes: Column, count: Column, run: Pass) -> Operator:
    """An operator that only moves bytes over the host link, in one direction."""
    return Operator(
        name=name,
        kind="other",
        place=place,
        run=run,
        count=count,
        flop=scope.zero,
        moved_bytes=scope.zero,
        kernels=0.0,
        host_bytes=host_bytes,
    )
