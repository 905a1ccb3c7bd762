"""GEMMs and the collectives tensor parallelism puts around them."""

from collections.abc import Iterator

import numpy as np

from projector.graph.columns import Column, switched
from projector.graph.operator import Collective, CollectiveKind, Operator, Pass, Place, Product
from projector.graph.scope import Scope


def gemm(
    scope: Scope,
    name: str,
    place: Place,
    *,
    inner: Column,
    outer: Column,
    input_tokens_kept: Column,
    recomputable_input: bool = True,
) -> Operator:
    """[tokens, inner] x [inner, outer] on one device.

    FLOP = 2 tokens inner outer; bytes = (tokens inner + inner outer) operands + tokens outer results, each at its
    width. `inner` and `outer` are already divided by tp. The input is kept for the weight gradient;
    `recomputable_input` says that recompute "selective" makes it again (norm and activation outputs).
    """
    tokens = scope.tokens
    kept_input = input_tokens_kept * inner * scope.linear_bytes
    again = recomputable_input and scope.software.attention == "fused"
    return Operator(
        name=name,
        kind="gemm",
        place=place,
        run="forward",
        count=scope.one,
        flop=2 * tokens * inner * outer,
        moved_bytes=tokens * inner * scope.linear_bytes
        + inner * outer * scope.weight_bytes
        + tokens * outer * scope.act_bytes,
        math="linear",
        parameters=inner * outer,
        saved_bytes=kept_input,
        kept_bytes=scope.zero if again else kept_input,
        product=Product(tokens, inner, outer),
    )


def quantise(scope: Scope, name: str, place: Place, elements: Column) -> Iterator[Operator]:
    """Cast of a GEMM input to a narrow dtype: one read at act_bytes, one write at linear_bytes; off for wide dtypes.

    With scales of blocks two writes, along rows for this product and along columns for the weight gradient.
    """
    if not scope.quantised.any():
        return
    written = scope.linear_bytes
    if scope.block_scaled is not None:
        written = np.where(scope.block_scaled, 2 * written, written)
    yield Operator(
        name=name,
        kind="quantise",
        place=place,
        run="forward",
        count=switched(scope.quantised),
        flop=scope.zero,
        moved_bytes=elements * (scope.act_bytes + written),
    )


def tensor_parallel_entry(scope: Scope, name: str, place: Place) -> Iterator[Operator]:
    """With sequence parallelism the TP group gathers the hidden state before a block; without it holds copies."""
    yield hidden_state_collective(scope, name, place, "all_gather", switched(scope.sp & (scope.tp > 1)))


def tensor_parallel_exit(scope: Scope, name: str, place: Place) -> Iterator[Operator]:
    """Partial sums after a block: reduce-scatter with sequence parallelism, all-reduce without (Megatron-LM)."""
    sharded = scope.tp > 1
    yield hidden_state_collective(scope, f"{name}_scatter", place, "reduce_scatter", switched(scope.sp & sharded))
    yield hidden_state_collective(scope, name, place, "all_reduce", switched(~scope.sp & sharded))


def hidden_state_collective(scope: Scope, name: str, place: Place, kind: CollectiveKind, count: Column) -> Operator:
    """A collective of the TP group over the whole hidden state, tokens x hidden elements."""
    payload = scope.tokens * scope.model.hidden_size * scope.act_bytes
    return communication(scope, name, place, Collective(kind, "tp", "tp", payload), count)


def communication(
    scope: Scope, name: str, place: Place, collective: Collective, count: Column, *, run: Pass = "forward"
) -> Operator:
    """An operator that only communicates."""
    return Operator(
        name=name,
        kind="other",
        place=place,
        run=run,
        count=count,
        flop=scope.zero,
        moved_bytes=scope.zero,
        collective=collective,
    )
