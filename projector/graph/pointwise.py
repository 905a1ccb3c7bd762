"""Memory-bound operators every block shares: norm, residual, activation."""

from projector.graph.columns import Column
from projector.graph.operator import Operator, Place
from projector.graph.scope import Scope


def norm(scope: Scope, name: str, place: Place) -> Operator:
    """Layer or RMS norm over the hidden state: one read, one write; its input is kept."""
    hidden = scope.edge_tokens * scope.model.hidden_size * scope.act_bytes
    return Operator(
        name=name,
        kind="norm",
        place=place,
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=2 * hidden * scope.software.pointwise_passes,
        parameters=scope.one * scope.model.hidden_size,
        saved_bytes=hidden,
        kept_bytes=hidden,
        rerun=scope.software.attention == "fused",
    )


def residual(scope: Scope, name: str, place: Place) -> Operator:
    """Add (and dropout) after a block: two reads and one write of the hidden state; keeps a one-byte mask."""
    elements = scope.edge_tokens * scope.model.hidden_size
    mask = elements if scope.software.dropout else scope.zero
    return Operator(
        name=name,
        kind="elementwise",
        place=place,
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=3 * elements * scope.act_bytes * scope.software.pointwise_passes + mask,
        saved_bytes=mask,
        kept_bytes=mask,
    )


def activation(scope: Scope, name: str, place: Place, elements: Column) -> Operator:
    """GELU, or SiLU times gate: reads one or two inputs an element, writes one; its inputs are kept."""
    inputs = 2 if scope.model.gated_mlp else 1
    kept = inputs * elements * scope.act_bytes
    return Operator(
        name=name,
        kind="elementwise",
        place=place,
        run="forward",
        count=scope.one,
        flop=scope.zero,
        moved_bytes=(inputs + 1) * elements * scope.act_bytes * scope.software.pointwise_passes,
        saved_bytes=kept,
        kept_bytes=kept,
        rerun=scope.software.attention == "fused",
    )
