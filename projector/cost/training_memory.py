"""Peak memory of a training step on the fullest device."""

import numpy as np

from projector.cost.memory import MemoryColumns, reserve_bytes, stage_parameters
from projector.cost.stages import Stage, Stages
from projector.graph.backward import WHOLE_LAYER_PLACES
from projector.graph.columns import Column
from projector.graph.operator import Operator
from projector.graph.training_graph import TrainingGraph
from projector.specs.hardware import HardwareProfile

# Bytes a parameter, mixed-precision Adam. Replicated weights: 16-bit working copy, fp32 gradient, fp32 master and two
# moments. Sharded weights (FSDP): the fp32 master is the shard, 16-bit copies exist only while gathered.
REPLICATED_BYTES = {"weight": 2.0, "gradient": 4.0, "optimizer": 12.0}
SHARDED_BYTES = {"weight": 4.0, "gradient": 4.0, "optimizer": 8.0}
GATHERED_LAYERS = 2.0


def training_memory(graph: TrainingGraph, stages: Stages, hardware: HardwareProfile) -> MemoryColumns:
    """Peak bytes on the fullest of the first, a middle and the last stage, columns of shape [n].

    weights, gradients, optimizer: parameters of the stage times bytes a parameter, over the group that shards each
    activations: bytes the layers keep, times micro-batches in flight; recompute "full" keeps layer inputs only; on top
        the larger of one layer's whole set while it is recomputed and the head's logits
    buffers: gathered shards of two layers and (on GPUs beside them) of the vocabulary, expert dispatch copies, one
        transient activation
    reserve: `projector.cost.memory.reserve_bytes`
    Sources: Korthikanti et al. 2022 (activations), Rajbhandari et al. 2020 (ZeRO). Left out: offload, framework
    copies of buckets, the allocator's behaviour beyond the reserve.
    """
    first, middle, last = (_on(graph, stage, hardware) for stage in (stages.first, stages.middle, stages.last))
    return first.fuller(middle).fuller(last)


def _on(graph: TrainingGraph, stage: Stage, hardware: HardwareProfile) -> MemoryColumns:
    zero, degrees = graph.scope.zero, graph.degrees
    dense, expert = stage_parameters(graph.forward, stage, zero)
    sharded = degrees.fsdp > 1
    full_width = graph.scope.linear_bytes >= 4.0
    split_gradients = (degrees.zero_stage >= 2) & ~sharded

    def held(item: str, dense_over: Column, expert_over: Column) -> Column:
        each = np.where(sharded | full_width, SHARDED_BYTES[item], REPLICATED_BYTES[item])
        return each * (dense / dense_over + expert / expert_over)

    return MemoryColumns(
        weights_bytes=held("weight", degrees.shard, degrees.expert_shard),
        gradients_bytes=held(
            "gradient",
            np.where(split_gradients, degrees.state, degrees.shard),
            np.where(split_gradients, degrees.expert_state, degrees.expert_shard),
        ),
        optimizer_bytes=held("optimizer", degrees.state, degrees.expert_state),
        activations_bytes=activation_bytes(graph, stage),
        kv_cache_bytes=zero,
        buffers_bytes=_buffer_bytes(graph, stage, compiled=hardware.kind != "gpu"),
        reserve_bytes=reserve_bytes(hardware, zero),
        capacity_bytes=hardware.hbm_bytes.value / hardware.devices_per_chip,
    )


def activation_bytes(graph: TrainingGraph, stage: Stage) -> Column:
    """Activations kept on a device of the stage at the peak.

    A layer keeps s b h (34 + 5 a s / h) / t bytes with sequence parallelism, unfused attention, dropout and an
    ungated 4 h MLP (Korthikanti et al. 2022, equations 1 to 4); here read off the operators of the actual model.
    """
    scope, mode = graph.scope, graph.recompute_mode
    layers = [operator for operator in graph.forward if operator.place in WHOLE_LAYER_PLACES]
    everything, selective = (
        _kept(layers, stage, "saved_bytes", scope.zero),
        _kept(layers, stage, "kept_bytes", scope.zero),
    )
    inputs = scope.edge_tokens * scope.model.hidden_size * scope.act_bytes * stage.layers()
    kept = np.where(mode == 0, everything, np.where(mode == 1, selective, inputs))
    one_layer = np.where(mode == 2, everything / stage.layers(), 0.0)
    ends = _kept([o for o in graph.forward if o.place == "embedding"], stage, "saved_bytes", scope.zero)
    logits = _kept([o for o in graph.forward if o.place == "head"], stage, "saved_bytes", scope.zero)
    # the loss is done when the first layer is recomputed: their peaks do not meet
    return stage.in_flight * (kept + ends) + np.maximum(one_layer, logits)


def _kept(operators: list[Operator], stage: Stage, item: str, zero: Column) -> Column:
    total = zero
    for operator in operators:
        column: Column | None = getattr(operator, item)
        if column is not None:
            total = total + operator.count * stage.places[operator.place] * column
    return total


def _buffer_bytes(graph: TrainingGraph, stage: Stage, *, compiled: bool) -> Column:
    """Gathered FSDP shards (16 bit, weights and the gradient being reduced), expert copies, transient activations.

    compiled: a compiler that plans buffers (XLA) gathers the vocabulary again for the backward pass, so it never
    stands beside the layers'; PyTorch keeps what its root module owns gathered from forward to backward.
    """
    scope, degrees, model = graph.scope, graph.degrees, graph.scope.model
    dense, expert = stage_parameters([o for o in graph.forward if o.place in WHOLE_LAYER_PLACES], stage, scope.zero)
    ends, _ = stage_parameters([o for o in graph.forward if o.place in ("embedding", "head")], stage, scope.zero)
    layer = (np.where(degrees.shard > 1, dense, 0.0) + np.where(degrees.expert_shard > 1, expert, 0.0)) / stage.layers()
    layers, tables = 2.0 * (GATHERED_LAYERS + 1) * layer, 2.0 * np.where(degrees.shard > 1, ends, 0.0)
    gathered = np.maximum(layers, tables) if compiled else layers + tables
    has_dense = model.moe_layers < model.layers
    inner = model.intermediate_size * (2 if model.gated_mlp else 1) if has_dense else 0
    widest = np.maximum(max(model.hidden_size, inner) / scope.tp, model.hidden_size)
    transient = scope.tokens * widest * scope.act_bytes
    copies = scope.tokens * model.experts_per_token / scope.tp * model.hidden_size * scope.act_bytes
    return gathered + transient + 2 * copies
