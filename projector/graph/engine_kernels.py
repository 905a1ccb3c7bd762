"""What a serving engine runs in place of the plain operators of a layer: fused kernels, its own all-reduces."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.graph.columns import Column, Switch, switched
from projector.graph.moe import routing
from projector.graph.operator import Algorithms, Operator, changed
from projector.graph.scope import Scope
from projector.specs.plan_batch import PlanBatch

# Rows from which on a product pays the whole start-up of a large one: those of a tile. With fewer its kernel streams
# weights, and what it starts with is the drain of the kernel before (`Rates.kernel_drain_s`).
TILE_ROWS = 128.0
# Largest all-reduce whose kernel runs the norm behind it as well, by ranks: the workspace of FlashInfer's on Hopper
# (vLLM, compilation/passes/fusion/allreduce_rms_fusion.py, 2026). None for other numbers of ranks.
FUSED_REDUCE_BYTES = {2: 64 * 2.0**20, 4: 2 * 2.0**20, 8: 2.0**20}
# Smallest all-reduce that AMD's Quick Reduce takes in 8 bit, by ranks, after its authors' kernel tests (vLLM,
# distributed/device_communicators/quick_all_reduce.py: INT8 with bf16 cast to fp16, its default).
QUICK_REDUCE_BYTES = {2: 2 * 2.0**20, 4: 16 * 2.0**20, 8: 4 * 2.0**20}
# Bytes of a 16-bit element on the wire over 2: one byte and a 16-bit scale for 32 of them (csrc/quickreduce of vLLM).
QUICK_REDUCE_FRAC = (1.0 + 2.0 / 32.0) / 2.0
# Passes over the hidden state of residual and norm in one kernel (two reads, two writes) over those of the norm alone.
ADD_NORM_PASSES = 2.0
# SiLU and the product with the gate as two kernels: five passes in place of three.
GATED_APART_PASSES = 5.0 / 3.0
# Rotation and the write of keys and values to the cache as two kernels.
ROTARY_APART_PASSES = 2.0


@dataclass(frozen=True)
class ChipKernels:
    """What the kernels of a chip make of a batch.

    prefill, decode   time of attention over that of the best kernels the chip has (columns)
    compiled          a compiler makes one program of a step: it fuses what it can and chooses the collectives
    """

    prefill: Column | float = 1.0
    decode: Column | float = 1.0
    compiled: bool = False


BEST_KERNELS = ChipKernels()


@dataclass(frozen=True)
class _Reduces:
    """How the tensor-parallel all-reduces of each plan run.

    algorithms   of all of them; narrow: plans that reduce in 8 bit
    norm_after_attention, norm_after_mlp   share of the layers whose next norm runs in the kernel of the all-reduce
    joined       plans that add routed and shared experts before one all-reduce
    """

    algorithms: Algorithms
    narrow: Switch
    norm_after_attention: Column
    norm_after_mlp: Column
    joined: Switch


def engine_kernels(
    operators: Iterable[Operator], batch: PlanBatch, scope: Scope, kernels: ChipKernels
) -> Iterator[Operator]:
    """The operators of a step as an engine runs them.

    fused_kernels        casts run in the kernel that makes their input, residuals in the norm behind them, SiLU with
                         its gate, rotation with the write to the cache. Without it each is a kernel of its own, which
                         pays a launch, the floor of a kernel and its passes over memory
    attention_backend    lengthens attention by what `kernels` says
    tp_all_reduce, quick_reduce, fuse_all_reduce_norm    the all-reduces, `_reduces`
    expert_all_to_all    the exchange with experts, where DeepEP does not bring its own
    Of compiled programs all are as the compiler has them: fused, and the fastest.
    """
    fused = batch.fused_kernels.astype(bool) | kernels.compiled
    apart = None if fused.all() else switched(~fused)
    reduces = _reduces(batch, scope, kernels.compiled)
    exchange = _exchange(batch)
    started = np.minimum(scope.tokens / TILE_ROWS, 1.0)
    for operator in operators:
        if operator.collective is not None:
            yield from _collective(operator, reduces, exchange)
        elif operator.kind in ("quantise", "elementwise", "norm"):
            yield from _pointwise(operator, scope, apart, reduces)
        elif operator.name.startswith(("attention", "window_attention")) and operator.kind == "attention":
            decoding = operator.name[-2:] == "_1"
            yield changed(
                operator,
                lengthened=kernels.decode if decoding else kernels.prefill,
                parts=0.0 if decoding else operator.parts,
            )
        elif operator.kind in ("gemm", "moe") and operator.math != "none":
            yield changed(operator, parts=operator.parts * _started(operator, started))
        else:
            yield operator


def _started(operator: Operator, of_all: Column) -> Column:
    """Share of the start-up of a large product that this one pays, from its rows; of experts those of one."""
    product = operator.product
    if product is None or not operator.expert:
        return of_all
    share: Column = np.minimum(product.rows / product.active / TILE_ROWS, 1.0)
    return share


def _pointwise(operator: Operator, scope: Scope, apart: Column | None, reduces: _Reduces) -> Iterator[Operator]:
    name = operator.name
    if operator.kind == "quantise":
        if apart is not None:
            yield changed(operator, count=operator.count * apart)
    elif name.endswith("_residual"):
        # in the norm behind it, or in the all-reduce before it
        if apart is not None:
            left = 1 - (reduces.norm_after_attention if name.startswith("attention") else reduces.norm_after_mlp)
            yield changed(operator, count=operator.count * apart * left)
    elif name in ("attention_norm", "mlp_norm"):
        left = 1 - (reduces.norm_after_mlp if name == "attention_norm" else reduces.norm_after_attention)
        passes = ADD_NORM_PASSES if apart is None else np.where(apart > 0, 1.0, ADD_NORM_PASSES)
        yield changed(operator, count=operator.count * left, moved_bytes=operator.moved_bytes * passes)
    elif apart is not None and (name == "rotary" or (name.endswith("_activation") and scope.model.gated_mlp)):
        passes = ROTARY_APART_PASSES if name == "rotary" else GATED_APART_PASSES
        yield changed(
            operator,
            moved_bytes=operator.moved_bytes * np.where(apart > 0, passes, 1.0),
            kernels=operator.kernels * (1 + apart),
        )
    else:
        yield operator


def _collective(operator: Operator, reduces: _Reduces, exchange: Algorithms) -> Iterator[Operator]:
    collective = operator.collective
    assert collective is not None
    if collective.kind == "all_to_all":
        yield changed(operator, collective=replace(collective, algorithms=exchange))
        return
    if collective.kind != "all_reduce":
        yield operator
        return
    if operator.name == "shared_reduce":
        operator = changed(operator, count=operator.count * switched(~reduces.joined))
    payload = collective.payload_bytes
    if reduces.narrow.any():
        payload = np.where(reduces.narrow, payload * QUICK_REDUCE_FRAC, payload)
        yield Operator(
            name=f"{operator.name}_cast",
            kind="quantise",
            place=operator.place,
            part=operator.part,
            run=operator.run,
            count=operator.count * switched(reduces.narrow),
            flop=operator.flop,
            moved_bytes=2 * (1 + QUICK_REDUCE_FRAC) * collective.payload_bytes,
            kernels=0.0,
        )
    yield changed(operator, collective=replace(collective, payload_bytes=payload, algorithms=reduces.algorithms))


def _reduces(batch: PlanBatch, scope: Scope, compiled: bool) -> _Reduces:
    """All-reduces of the hidden state over tp.

    quick_reduce: from QUICK_REDUCE_BYTES on in two shots, each way in 8 bit, beside a pass that casts and one that
    casts back. fuse_all_reduce_norm: up to FUSED_REDUCE_BYTES, unless a library's algorithm is asked for; the kernel
    is one-shot or two-shot, whichever is faster.
    """
    payload = scope.tokens * scope.model.hidden_size * scope.act_bytes
    quick, fuses = batch.quick_reduce.astype(bool) & (not compiled), batch.fuse_all_reduce_norm.astype(bool)
    narrow = _within(scope.tp, quick, QUICK_REDUCE_BYTES, payload, above=True) & (scope.act_bytes == 2.0)
    own = np.isin(batch.tp_all_reduce, ("auto", "one_shot", "two_shot"))
    with_norm = _within(scope.tp, fuses & (not compiled), FUSED_REDUCE_BYTES, payload, above=False)
    with_norm = with_norm & own & ~narrow
    replicated = np.zeros(len(batch), dtype=np.bool_)
    of_experts = scope.zero
    if scope.model.is_moe:
        replicated = routing(scope).replicated
        of_experts = scope.one * scope.model.moe_layers / scope.model.layers
    after = switched(with_norm)
    forced = (*_named(batch.tp_all_reduce), *((("two_shot", narrow),) if narrow.any() else ()))
    return _Reduces(
        algorithms=Algorithms(forced, one_kernel=with_norm if with_norm.any() else None),
        narrow=narrow,
        norm_after_attention=after,
        norm_after_mlp=after * (1 - of_experts * switched(~replicated)),
        joined=replicated,
    )


def _within(tp: Column, on: Switch, limits: dict[int, float], payload: Column, *, above: bool) -> Switch:
    """Plans that are `on` and whose payload keeps the limit of their number of ranks; none beyond those named."""
    kept = np.zeros(len(tp), dtype=np.bool_)
    if not on.any():
        return kept
    for ranks, limit in limits.items():
        kept |= (tp == ranks) & ((payload >= limit) if above else (payload <= limit))
    found: Switch = kept & on
    return found


def _exchange(batch: PlanBatch) -> Algorithms:
    """DeepEP's kernels send to all peers at once, whatever the plan names beside it."""
    own = batch.expert_dispatch == "deepep"
    named = _named(batch.expert_all_to_all)
    return Algorithms((*named, *((("at_once", own),) if own.any() else ())))


def _named(column: NDArray[Any]) -> tuple[tuple[str, Switch], ...]:
    return tuple((str(name), column == name) for name in np.unique(column) if name != "auto")
