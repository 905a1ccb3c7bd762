"""The recurrent mixer of a layer: state-space and linear-attention blocks in their chunked form."""

from collections.abc import Iterator

from projector.graph.columns import Column, switched
from projector.graph.gemm import gemm, quantise, tensor_parallel_entry, tensor_parallel_exit
from projector.graph.operator import Operator
from projector.graph.pointwise import norm, residual
from projector.graph.recurrent_scan import scan
from projector.graph.scope import Scope


def recurrent_block(scope: Scope) -> Iterator[Operator]:
    """Norm, mixer, residual of a layer that keeps a state and nothing else."""
    yield norm(scope, "recurrent_norm", "layer")
    yield from tensor_parallel_entry(scope, "recurrent_gather", "layer")
    yield from recurrent_mixer(scope, input_kept=scope.edge_tokens)
    yield from tensor_parallel_exit(scope, "recurrent_reduce", "layer")
    if scope.model.post_norms:
        yield norm(scope, "recurrent_post_norm", "layer")
    yield residual(scope, "recurrent_residual", "layer")


def recurrent_mixer(scope: Scope, *, input_kept: Column) -> Iterator[Operator]:
    """Projection in, short convolution, chunked recurrence, gated norm, projection out; heads are shared out over tp.

    input_kept: rows of the block's input it keeps for itself (0 where attention beside it keeps the same input).
    Left out: imbalance of tp where groups are copied.
    """
    model, mixer = scope.model, scope.recurrence
    hidden = scope.one * model.hidden_size
    inner = mixer.inner / scope.tp
    yield from quantise(scope, "recurrent_in_cast", "layer", scope.tokens * hidden)
    yield gemm(
        scope,
        "recurrent_in",
        "layer",
        inner=hidden,
        outer=scope.recurrent_input_width,
        input_tokens_kept=input_kept,
    )
    yield from _low_rank(scope)
    yield _convolution(scope)
    for number, work in enumerate(scope.attention):
        yield scan(scope, work, "recurrence" if number == 0 else f"recurrence_{number}")
    yield _gated_norm(scope)
    yield from quantise(scope, "recurrent_out_cast", "layer", scope.tokens * inner)
    yield gemm(
        scope,
        "recurrent_out",
        "layer",
        inner=inner,
        outer=hidden,
        input_tokens_kept=scope.tokens,
        recomputable_input=False,
    )


def _low_rank(scope: Scope) -> Iterator[Operator]:
    """Projections through a narrow middle: Kimi's gate and decay, Mamba's step size.

    Kimi's down projections are held whole by every TP rank. Mamba's steps, keys and queries of all channels come from
    all channels: each rank projects its own and the sums are exchanged; that exchange, step_rank + 2 state_size
    features a token, is left out.
    """
    mixer, tokens = scope.recurrence, scope.tokens
    if mixer.kind == "kimi_delta":
        rank = scope.one * mixer.head_dim
        yield gemm(
            scope, "gate_down", "layer", inner=scope.one * scope.model.hidden_size, outer=2 * rank,
            input_tokens_kept=scope.zero,
        )  # fmt: skip
        yield gemm(
            scope, "gate_up", "layer", inner=rank, outer=(mixer.key_features + mixer.inner) / scope.tp,
            input_tokens_kept=2 * tokens, recomputable_input=False,
        )  # fmt: skip
    elif mixer.kind == "mamba1":
        inner, rank = mixer.inner / scope.tp, scope.one * mixer.step_rank
        yield gemm(
            scope, "step_down", "layer", inner=inner, outer=rank + 2 * mixer.state_size, input_tokens_kept=tokens,
            recomputable_input=False,
        )  # fmt: skip
        yield gemm(scope, "step_up", "layer", inner=rank, outer=inner, input_tokens_kept=tokens)


def _convolution(scope: Scope) -> Operator:
    """Causal convolution channel by channel over a few tokens, and its activation: one read, one write.

    It stands for the mixer's vectors too (taps, decays, the norm): they are no one else's weights.
    """
    mixer = scope.recurrence
    features = scope.tokens * mixer.convolved_features / scope.tp
    return Operator(
        name="short_convolution",
        kind="elementwise",
        place="layer",
        run="forward",
        count=switched(features > 0),
        flop=scope.zero,
        moved_bytes=2 * features * scope.act_bytes,
        parameters=scope.one * mixer.vector_parameters / scope.tp,
    )


def _gated_norm(scope: Scope) -> Operator:
    """Norm of the mixer's result times the activated gate: two reads, one write; recompute "selective" repeats it.

    Mamba-1 gates inside its scan and has no norm.
    """
    mixer = scope.recurrence
    elements = scope.tokens * mixer.inner / scope.tp
    return Operator(
        name="gated_norm",
        kind="norm",
        place="layer",
        run="forward",
        count=scope.zero if mixer.kind == "mamba1" else scope.one,
        flop=scope.zero,
        moved_bytes=3 * elements * scope.act_bytes * scope.software.pointwise_passes,
        rerun=scope.software.attention == "fused",
    )
