"""Bytes that travel between a device and the memory of its host."""

from collections.abc import Iterator

from projector.graph.columns import Column, switched
from projector.graph.operator import Operator, Pass, Place
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
