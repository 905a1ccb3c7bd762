"""Context parallelism: what ranks that share a sequence send each other around attention, in each of its kinds.

    ring         keys and values travel once around the ring while a rank attends to what it has; in the backward pass
                 they travel again with their gradients (Liu et al. 2023, arXiv:2310.01889). A ring of (cp - 1) steps
                 over local keys moves as much as an all-gather of all of them.
    all_gather   the same bytes at once, before attention begins; in the backward pass gathered again, gradients
                 scattered after it (Llama 3, arXiv:2407.21783, section 3.3.2)
    all_to_all   queries, keys and values trade tokens for heads, results trade them back; so do their gradients
                 (DeepSpeed-Ulysses, arXiv:2309.14509)

Where attention runs again in the backward pass, so does what it waits for.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from projector.graph.columns import Column, Switch, switched
from projector.graph.gemm import communication
from projector.graph.operator import Collective, CollectiveKind, Operator, Pass, Place, sort_place
from projector.graph.scope import Scope

# Key-value blocks of a ring on a device: the one in use and the one arriving, and the gradients of both.
RING_BLOCKS = 4.0


@dataclass(frozen=True)
class Context:
    """Context parallelism of a batch; columns of shape [n].

    cp             ranks that share a sequence
    ring, gathers, trades   plans of each kind, none of them where cp is 1
    again          share of attention that runs again in the backward pass
    """

    cp: Column
    ring: Switch
    gathers: Switch
    trades: Switch
    again: Column

    def rounds(self) -> Column:
        """Kernels attention is cut into: one a block of keys of a ring, else one."""
        return np.where(self.ring, self.cp, 1.0)


def context_parallel(scope: Scope, context: Context) -> Iterator[Operator]:
    """Exchanges around the attention of each sort of layers.

    Recurrent mixers need the sequence in order: their ranks trade tokens for heads before the convolution and back
    behind the recurrence, an all-to-all each way (as Megatron-Core does for Mamba).
    """
    if not scope.sorts:
        yield from _attention(scope, context, "layer")
    for number, sort in enumerate(scope.sorts):
        assert sort.model.sort is not None
        if sort.model.sort.attention:
            yield from _attention(sort, context, sort_place(number))
        if sort.model.sort.recurrent:
            yield from _head_exchange(sort, context.cp, sort_place(number))


def context_buffer_bytes(scope: Scope, context: Context) -> Column:
    """What stands beside the activations while a layer's attention exchanges: the widest of the sorts of layers."""
    widest = scope.zero
    for one in scope.sorts or (scope,):
        local = one.tokens * (one.k_width + one.v_width) * one.act_bytes
        traded = one.tokens * (one.q_width + one.k_width + one.v_width + one.out_width) * one.act_bytes
        gathered = np.where(context.gathers, 2 * context.cp * local, 0.0)
        held = np.where(context.ring, RING_BLOCKS * local, gathered) + np.where(context.trades, 2 * traded, 0.0)
        widest = np.maximum(widest, held)
    return widest


def _attention(scope: Scope, context: Context, place: Place) -> Iterator[Operator]:
    keys = context.cp * scope.tokens * (scope.k_width + scope.v_width) * scope.act_bytes
    gathers = switched(context.ring | context.gathers)
    exchanges: tuple[tuple[str, Pass, CollectiveKind, Column], ...] = (
        ("kv_ring", "forward", "all_gather", gathers),
        ("kv_ring_again", "backward", "all_gather", gathers),
        ("kv_gradient_ring", "backward", "reduce_scatter", gathers),
        ("kv_ring_repeated", "recompute", "all_gather", gathers * context.again),
    )
    for name, run, kind, count in exchanges:
        if run != "recompute" or count.any():
            yield communication(scope, name, place, Collective(kind, "cp", "cp", keys), count, run=run)
    if context.trades.any():
        yield from _trades(scope, context, place)


def _trades(scope: Scope, context: Context, place: Place) -> Iterator[Operator]:
    inputs = scope.tokens * (scope.q_width + scope.k_width + scope.v_width) * scope.act_bytes
    results = scope.tokens * scope.out_width * scope.act_bytes
    counts: dict[Pass, Column] = {
        "forward": switched(context.trades),
        "backward": switched(context.trades),
        "recompute": context.trades * context.again,
    }
    for run, count in counts.items():
        for name, payload in (("to_heads", inputs), ("to_tokens", results)):
            collective = Collective("all_to_all", "cp", "cp", payload)
            yield communication(scope, f"attention_{name}_{run}", place, collective, count, run=run)


def _head_exchange(scope: Scope, cp: Column, place: Place) -> Iterator[Operator]:
    widths = {"to_heads": scope.recurrent_input_width, "to_tokens": scope.recurrence.inner / scope.tp}
    runs: tuple[Pass, ...] = ("forward", "backward")
    for run in runs:
        for name, width in widths.items():
            collective = Collective("all_to_all", "cp", "cp", scope.tokens * width * scope.act_bytes)
            yield communication(scope, f"recurrent_{name}", place, collective, switched(cp > 1), run=run)
