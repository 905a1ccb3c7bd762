"""Memory of a serving engine: weights, KV pool, and what a step needs besides."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from projector.cost.memory import MemoryColumns, reserve_bytes
from projector.cost.stages import Stage
from projector.graph.columns import Column
from projector.graph.operator import Operator, sort_place
from projector.graph.scope import Scope, kv_bytes_per_token
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch

WIDE_WEIGHT_BYTES = 2.0
CUDA_GRAPH_BYTES = 1.0e9


@dataclass(frozen=True)
class ServingNeeds:
    """Bytes of one device before any request: weights, the working set of a step, the reserve; and those a request."""

    weights_bytes: Column
    step_bytes: Column
    reserve_bytes: Column
    kv_bytes_per_request: Column
    capacity_bytes: float

    @property
    def requests(self) -> Column:
        """Requests of mean length the device can hold; below 1 where not even one fits."""
        free = self.capacity_bytes - self.weights_bytes - self.step_bytes - self.reserve_bytes
        return np.maximum(free, 0.0) / self.kv_bytes_per_request

    def fuller(self, other: "ServingNeeds") -> "ServingNeeds":
        """For each plan the needs of the device that holds fewer requests (of two that both hold none, the fuller)."""
        mine = (self.requests < other.requests) | (
            (self.requests == other.requests) & (self.weights_bytes >= other.weights_bytes)
        )
        return ServingNeeds(
            weights_bytes=np.where(mine, self.weights_bytes, other.weights_bytes),
            step_bytes=np.where(mine, self.step_bytes, other.step_bytes),
            reserve_bytes=self.reserve_bytes,
            kv_bytes_per_request=np.where(mine, self.kv_bytes_per_request, other.kv_bytes_per_request),
            capacity_bytes=self.capacity_bytes,
        )

    def with_requests(self, running: Column) -> MemoryColumns:
        """Memory with `running` requests a device at their mean length (at least one)."""
        zero = np.zeros_like(running)
        return MemoryColumns(
            weights_bytes=self.weights_bytes,
            gradients_bytes=zero,
            optimizer_bytes=zero,
            activations_bytes=zero,
            kv_cache_bytes=np.maximum(running, 1.0) * self.kv_bytes_per_request,
            buffers_bytes=self.step_bytes,
            reserve_bytes=self.reserve_bytes,
            capacity_bytes=self.capacity_bytes,
        )


def serving_weights_bytes(operators: Iterable[Operator], stage: Stage, weight_bytes: Column) -> Column:
    """Weights of one device of a stage: GEMMs in weight_dtype; embedding, head, router and norms in 16 bit."""
    total = np.zeros_like(weight_bytes)
    for operator in operators:
        if operator.parameters is None:
            continue
        each = weight_bytes if operator.math == "linear" else WIDE_WEIGHT_BYTES
        total = total + stage.places[operator.place] * operator.parameters * each
    return total


def kv_bytes_per_request(
    model: ModelArchitecture, tp: Column, kv_cache_dtype: AnyColumn, stage: Stage, tokens: float
) -> Column:
    """KV bytes a request of `tokens` tokens holds on one device: all in full layers, a window in sliding ones.

    A recurrent layer holds a state instead, whatever the length of the request.
    """
    if model.sorts:
        held = (
            stage.places[sort_place(number)] * _bytes_of_sort(one, tp, kv_cache_dtype, tokens)
            for number, one in enumerate(model.by_sort())
        )
        return sum(held, start=np.zeros_like(tp))
    window = min(model.sliding_window or tokens, tokens)
    cached = stage.places["full_attention_layer"] * tokens + stage.places["sliding_attention_layer"] * window
    return cached * kv_bytes_per_token(model, tp, kv_cache_dtype)


def _bytes_of_sort(model: ModelArchitecture, tp: Column, kv_cache_dtype: AnyColumn, tokens: float) -> Column:
    held = np.zeros_like(tp)
    if model.attention_layers:
        held = held + min(model.sliding_window or tokens, tokens) * kv_bytes_per_token(model, tp, kv_cache_dtype)
    if model.recurrence is not None:
        held = held + model.recurrence.state_bytes / tp
    return held


def serving_needs(
    batch: PlanBatch,
    scope: Scope,
    operators: Iterable[Operator],
    stage: Stage,
    hardware: HardwareProfile,
    request_tokens: float,
) -> ServingNeeds:
    """What the plans need on a device of `stage` (the one with most layers), columns of shape [len(batch)].

    The working set is that of the largest step: hidden states and the widest intermediate, expert copies, 16-bit and
    fp32 logits over the whole vocabulary; on GPUs a fixed pool where CUDA graphs are on.
    Left out: block rounding (issue of allocators: below one block a request), prefix cache, encoder state.
    """
    model = scope.model
    widest = max(model.intermediate_size, model.moe_intermediate_size * model.experts_per_token)
    hidden = scope.tokens * model.hidden_size * scope.act_bytes
    inner = scope.tokens * 2 * widest / scope.tp * scope.act_bytes
    copies = scope.tokens * model.experts_per_token / scope.tp * model.expert_features * scope.act_bytes
    logits = scope.head_tokens * model.vocab_size * (scope.act_bytes + 4.0)
    graphs = np.where(batch.cuda_graphs & (hardware.kind == "gpu"), CUDA_GRAPH_BYTES, 0.0)
    return ServingNeeds(
        weights_bytes=serving_weights_bytes(operators, stage, scope.weight_bytes),
        step_bytes=4 * hidden + inner + 2 * copies + logits + graphs,
        reserve_bytes=reserve_bytes(hardware, scope.zero),
        kv_bytes_per_request=kv_bytes_per_request(model, scope.tp, batch.kv_cache_dtype, stage, request_tokens),
        capacity_bytes=hardware.hbm_bytes.value / hardware.devices_per_chip,
    )
