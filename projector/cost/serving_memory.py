"""Memory of a serving engine: weights, KV pool, and what a step needs besides.

An engine takes a share of the HBM when it starts (`hbm_frac`) and makes a pool for keys and values of what weights,
captured graphs and the largest step leave of it. Engines word the share differently:

    vLLM            gpu_memory_utilization: all of the engine over the chip's memory, its runtime included (1 to 2 GB)
    SGLang          mem_fraction_static: weights and pool; the step's working set and graphs lie outside
    TensorRT-LLM    free_gpu_memory_fraction: the pool alone, of what weights and working set have left free

Here it is weights, drafter, graphs, working set and pool; the runtime (context, communicators, kernels) has at least
its bytes beside them, however large the share. An engine whose share the context of its process leaves no room for is
refused by the chip when it starts. Trainium's engines have no such share: a flat reserve stands there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from projector.cost.exchange_memory import low_latency_bytes
from projector.cost.memory import MemoryColumns, device_bytes, reserve_bytes, runtime_bytes
from projector.cost.stages import Stage
from projector.graph.columns import Column, Switch
from projector.graph.drafting import drafters
from projector.graph.operator import DRAFT, Operator, sort_place
from projector.graph.scope import Scope, kv_bytes_per_token
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch

WIDE_WEIGHT_BYTES = 2.0
CUDA_GRAPH_BYTES = 1.0e9
# What the context of a process takes of a chip before the engine claims its share, which vLLM compares with what is
# then free. Contexts of CUDA and ROCm take 0.3 to 0.6 GB.
CONTEXT_BYTES = {"gpu": 0.5e9, "tpu": 0.0}
# A full pool fits, in whatever order its parts are added up.
ROUNDING_FRAC = 1e-9


@dataclass(frozen=True)
class ServingNeeds:
    """Bytes of one device before any request, and those of a request; columns of shape [n].

    step_bytes      working set of the largest step, graphs_bytes: memory of captured graphs
    reserve_bytes   outside the engine's share
    claimed_bytes   what share and context take together, whatever is used of it: above the capacity an engine cannot
                    start
    prefix_bytes    keys and values of the prefix that the requests of a rank share
    """

    weights_bytes: Column
    draft_bytes: Column
    step_bytes: Column
    graphs_bytes: Column
    reserve_bytes: Column
    claimed_bytes: Column
    kv_bytes_per_request: Column
    prefix_bytes: Column
    capacity_bytes: float

    @property
    def starts(self) -> Switch:
        """Whether the chip has what the engine claims."""
        starts: Switch = self.claimed_bytes <= self.capacity_bytes * (1 + ROUNDING_FRAC)
        return starts

    @property
    def pool_bytes(self) -> Column:
        """Room for keys and values; 0 where the engine does not start."""
        held = self.weights_bytes + self.draft_bytes + self.step_bytes + self.graphs_bytes + self.reserve_bytes
        return np.where(self.starts, np.maximum(self.capacity_bytes - held, 0.0), 0.0)

    @property
    def requests(self) -> Column:
        """Requests of mean length the device can hold; below 1 where not even one fits."""
        free = (1.0 - ROUNDING_FRAC) * self.pool_bytes - self.prefix_bytes
        return np.maximum(free, 0.0) / self.kv_bytes_per_request

    def fuller(self, other: "ServingNeeds") -> "ServingNeeds":
        """For each plan the needs of the device that holds fewer requests (of two that both hold none, the fuller)."""
        mine = (self.requests < other.requests) | (
            (self.requests == other.requests) & (self.weights_bytes >= other.weights_bytes)
        )
        columns = {
            item.name: np.where(mine, getattr(self, item.name), getattr(other, item.name))
            for item in fields(self)
            if item.name != "capacity_bytes"
        }
        return ServingNeeds(**columns, capacity_bytes=self.capacity_bytes)

    def with_requests(self, running: Column, limit: NDArray[np.str_] | None = None) -> MemoryColumns:
        """Memory with `running` requests a device at their mean length (at least one); limit: what keeps them so few.

        What is not in use of the pool is no item, save where the chip has not what the engine claims: there all that is
        claimed counts, and is too much.
        """
        zero = np.zeros_like(running)
        in_use = np.maximum(running, 1.0) * self.kv_bytes_per_request
        missing = np.where(self.starts, 0.0, np.maximum(self.claimed_bytes - self._without_requests() - in_use, 0.0))
        return MemoryColumns(
            weights_bytes=self.weights_bytes,
            draft_bytes=self.draft_bytes,
            gradients_bytes=zero,
            optimizer_bytes=zero,
            activations_bytes=zero,
            kv_cache_bytes=in_use + missing,
            prefix_cache_bytes=self.prefix_bytes,
            graphs_bytes=self.graphs_bytes,
            buffers_bytes=self.step_bytes,
            reserve_bytes=self.reserve_bytes,
            capacity_bytes=self.capacity_bytes,
            kv_pool_bytes=self.pool_bytes,
            concurrency_limit=limit,
        )

    def _without_requests(self) -> Column:
        held = self.weights_bytes + self.draft_bytes + self.prefix_bytes + self.graphs_bytes
        return held + self.step_bytes + self.reserve_bytes


def serving_weights_bytes(
    operators: Iterable[Operator], stage: Stage, weight_bytes: Column, expert_bytes: Column
) -> Column:
    """Weights of one device of a stage: GEMMs in weight_dtype, routed experts in expert_dtype; embedding, head, router
    and norms in 16 bit."""
    total = np.zeros_like(weight_bytes)
    for operator in operators:
        if operator.parameters is None:
            continue
        stored = expert_bytes if operator.expert else weight_bytes
        each = stored if operator.math == "linear" else WIDE_WEIGHT_BYTES
        total = total + stage.places[operator.place] * operator.parameters * each
    return total


def kv_bytes_per_request(
    model: ModelArchitecture,
    tp: Column,
    kv_cache_dtype: AnyColumn,
    stage: Stage,
    tokens: Column | float,
    block_tokens: Column | float = 1.0,
) -> Column:
    """KV bytes a request of `tokens` tokens holds on one device: all in full layers, a window in sliding ones.

    Layers hold whole blocks. A request that starts with a block and ends anywhere in one wastes (b - 1) / 2 tokens in
    the mean (vLLM, arXiv:2309.06180: below one block a request); a window lies anywhere and touches w + b - 1 of them.
    A recurrent layer holds a state instead, whatever the length of the request.
    """
    if model.sorts:
        held = (
            stage.places[sort_place(number)] * _bytes_of_sort(one, tp, kv_cache_dtype, tokens, block_tokens)
            for number, one in enumerate(model.by_sort())
        )
        return sum(held, start=np.zeros_like(tp))
    cached = stage.places["full_attention_layer"] * _held_tokens(None, tokens, block_tokens)
    cached = cached + stage.places["sliding_attention_layer"] * _held_tokens(model.sliding_window, tokens, block_tokens)
    return cached * kv_bytes_per_token(model, tp, kv_cache_dtype)


def _bytes_of_sort(
    model: ModelArchitecture,
    tp: Column,
    kv_cache_dtype: AnyColumn,
    tokens: Column | float,
    block_tokens: Column | float,
) -> Column:
    held = np.zeros_like(tp)
    if model.attention_layers:
        each = kv_bytes_per_token(model, tp, kv_cache_dtype)
        held = held + _held_tokens(model.sliding_window, tokens, block_tokens) * each
    if model.recurrence is not None:
        held = held + model.recurrence.state_bytes / tp
    return held


def _held_tokens(window: int | None, tokens: Column | float, block_tokens: Column | float) -> Column | float:
    """Tokens' worth of blocks a layer holds of a request."""
    whole = tokens + (block_tokens - 1.0) / 2
    return whole if window is None else np.minimum(whole, np.where(tokens > window, window + block_tokens - 1.0, whole))


def draft_kv_bytes_per_request(
    batch: PlanBatch, scope: Scope, stage: Stage, tokens: Column | float, block_tokens: Column | float
) -> Column:
    """KV bytes of the drafter's own layers for a request of `tokens` tokens; 0 where none drafts with layers."""
    held = scope.zero
    for drafter in drafters(batch, scope.model):
        each = kv_bytes_per_token(drafter.model, scope.tp, batch.kv_cache_dtype)
        layers = np.where(drafter.plans, drafter.layers, 0.0) * stage.places[DRAFT]
        held = held + layers * each * _held_tokens(None, tokens, block_tokens)
    return held


@dataclass(frozen=True)
class Held:
    """Tokens whose keys and values an engine holds: of a request alone, and of a prefix its requests share."""

    own_tokens: Column | float
    shared_tokens: float = 0.0


def serving_needs(
    batch: PlanBatch,
    scope: Scope,
    operators: Sequence[Operator],
    stage: Stage,
    hardware: HardwareProfile,
    held: Held,
) -> ServingNeeds:
    """What the plans need on a device of `stage` (the one with most layers), columns of shape [len(batch)].

    The working set is that of the largest step: hidden states and the widest intermediate, expert copies, 16-bit and
    fp32 logits over the whole vocabulary, buffers of the exchange; on GPUs a fixed pool where CUDA graphs are on.
    Left out: encoder state, tables of blocks.
    """
    model, capacity_bytes = scope.model, device_bytes(hardware)
    widest = max(model.intermediate_size, model.moe_intermediate_size * model.experts_per_token)
    hidden = scope.tokens * model.hidden_size * scope.act_bytes
    inner = scope.tokens * 2 * widest / scope.tp * scope.act_bytes
    copies = scope.tokens * model.experts_per_token / scope.tp * model.expert_features * scope.act_bytes
    logits = scope.head_tokens * model.vocab_size * (scope.act_bytes + 4.0)
    kv_dtype = batch.kv_cache_dtype
    # slots for drafted tokens are there before anybody knows whether they are accepted
    own, block = held.own_tokens + batch.speculative_tokens, batch.kv_block_tokens
    shared = scope.zero
    if held.shared_tokens:
        shared = kv_bytes_per_request(model, scope.tp, kv_dtype, stage, held.shared_tokens)
        shared = shared + draft_kv_bytes_per_request(batch, scope, stage, held.shared_tokens, 1.0)
    expert_bytes = scope.of_experts().weight_bytes
    main = tuple(operator for operator in operators if operator.place != DRAFT)
    drafting = tuple(operator for operator in operators if operator.place == DRAFT)
    reserve, claimed = _outside_and_claimed(batch, hardware, capacity_bytes)
    return ServingNeeds(
        weights_bytes=serving_weights_bytes(main, stage, scope.weight_bytes, expert_bytes),
        draft_bytes=serving_weights_bytes(drafting, stage, scope.weight_bytes, expert_bytes),
        step_bytes=4 * hidden + inner + 2 * copies + logits + low_latency_bytes(batch, scope),
        graphs_bytes=np.where(batch.cuda_graphs & (hardware.kind == "gpu"), CUDA_GRAPH_BYTES, 0.0),
        reserve_bytes=reserve,
        claimed_bytes=claimed,
        kv_bytes_per_request=kv_bytes_per_request(model, scope.tp, kv_dtype, stage, own, block)
        + draft_kv_bytes_per_request(batch, scope, stage, own, block),
        prefix_bytes=shared,
        capacity_bytes=capacity_bytes,
    )


def _outside_and_claimed(batch: PlanBatch, hardware: HardwareProfile, capacity_bytes: float) -> tuple[Column, Column]:
    """(bytes outside the engine's share, bytes that the share and the context of the process claim)."""
    zero = np.zeros(len(batch))
    if hardware.kind == "trainium":
        return reserve_bytes(hardware, zero), zero + capacity_bytes
    outside = np.maximum((1.0 - batch.hbm_frac) * capacity_bytes, runtime_bytes(hardware))
    return outside, batch.hbm_frac * capacity_bytes + CONTEXT_BYTES[hardware.kind] / hardware.devices_per_chip
