"""Peak memory of a training step on the fullest device."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from projector.cost.memory import MemoryColumns, device_bytes, reserve_bytes, stage_parameters
from projector.cost.stages import Stage
from projector.graph.adapters import widest_product_bytes
from projector.graph.columns import Column, Switch
from projector.graph.context import context_buffer_bytes
from projector.graph.operator import Operator, in_layers, sort_number
from projector.graph.optimizer import MASTER_BYTES
from projector.graph.recompute_modules import freed_bytes
from projector.graph.recomputed import keeps_every_other_product
from projector.graph.sync import stages_stay_gathered
from projector.graph.training_graph import TrainingGraph
from projector.specs.hardware import HardwareProfile

# Bytes a parameter, mixed-precision Adam. Replicated weights: 16-bit working copy, fp32 master and two moments, the
# gradient as the software keeps it. Sharded weights (FSDP): the fp32 master is the shard, 16-bit copies exist only
# while gathered.
REPLICATED_BYTES = {"weight": 2.0}
SHARDED_BYTES = {"weight": 4.0, "gradient": 4.0}
# What is gathered at once: the unit in use, the next, and the gradient of the last on its way out.
GATHERED_UNITS = 3.0
# Layers whose inputs stand on the device while the others wait in host memory: one in use, one on its way.
OFFLOAD_LAYERS = 2.0


def training_memory(
    graph: TrainingGraph, stages: Sequence[Stage], hardware: HardwareProfile, micro_batches: Column
) -> MemoryColumns:
    """Peak bytes on the fullest of the stages that differ, columns of shape [n].

    weights, optimizer: parameters of the stage times bytes a parameter, over the group that shards each; frozen
        weights as they are stored, without optimizer or gradients
    gradients: likewise where they exist at the peak (`_gradient_bytes`)
    activations: bytes the layers keep, times micro-batches in flight, and all of a layer for those whose weight
        gradients are put off; recompute "full" keeps layer inputs only, of
        recompute_layers layers where some are named; on top the larger of one layer's (or module's) whole set while it
        is recomputed and the head's logits
    buffers: gathered shards (`_gathered_bytes`), expert dispatch copies, keys and values of other context ranks, one
        transient activation
    reserve: `projector.cost.memory.reserve_bytes`
    capacity: what the runtime counts (`device_bytes`)
    Sources: Korthikanti et al. 2022 (activations), Rajbhandari et al. 2020 (ZeRO). Left out: reduction
    buckets, the allocator's behaviour beyond the reserve.
    """
    fullest, *others = (_on(graph, stage, hardware, micro_batches) for stage in stages)
    for other in others:
        fullest = fullest.fuller(other)
    return fullest


def _on(graph: TrainingGraph, stage: Stage, hardware: HardwareProfile, micro_batches: Column) -> MemoryColumns:
    zero, degrees, compiled = graph.scope.zero, graph.degrees, hardware.kind != "gpu"
    dense, expert = stage_parameters(_trained(graph.forward), stage, zero)
    frozen, frozen_expert = stage_parameters(_stored(graph.forward), stage, zero)
    each = np.where(_sharded(graph) | (graph.scope.linear_bytes >= 4.0), 1.0, 0.0)

    replicated = REPLICATED_BYTES | {"gradient": float(graph.scope.software.gradient_bytes)}
    offloads = graph.update.offloads

    def held(item: str, dense_over: Column, expert_over: Column) -> Column:
        bytes_each = np.where(each > 0, SHARDED_BYTES[item], replicated[item])
        return bytes_each * (dense / dense_over + expert / expert_over)

    split = (degrees.zero_stage >= 2) & ~_sharded(graph)
    gradients = held(
        "gradient",
        np.where(split, degrees.state, degrees.shard),
        np.where(split, degrees.expert_state, degrees.expert_shard),
    )
    return MemoryColumns(
        weights_bytes=np.where(
            offloads & _sharded(graph) & (graph.scope.linear_bytes < 4.0),
            REPLICATED_BYTES["weight"] * (dense / degrees.shard + expert / degrees.expert_shard),
            held("weight", degrees.shard, degrees.expert_shard),
        )
        + frozen / degrees.shard
        + frozen_expert / degrees.expert_shard,
        gradients_bytes=_gradient_bytes(graph, stage, gradients, dense + expert, micro_batches, compiled=compiled),
        optimizer_bytes=_optimizer_bytes(graph, stage, master=each == 0),
        activations_bytes=activation_bytes(graph, stage),
        kv_cache_bytes=zero,
        buffers_bytes=_buffer_bytes(graph, stage, compiled=compiled),
        reserve_bytes=reserve_bytes(hardware, zero),
        capacity_bytes=device_bytes(hardware),
    )


def _optimizer_bytes(graph: TrainingGraph, stage: Stage, *, master: Switch) -> Column:
    """Moments, and the fp32 master weight where it is not the sharded weight itself; offloaded, that of two layers."""
    zero, degrees, update = graph.scope.zero, graph.degrees, graph.update
    trained = _trained(graph.forward)
    moments = [
        replace(o, parameters=o.parameters * (update.moments_of(o) + np.where(master, MASTER_BYTES, 0.0)))
        for o in trained
        if o.parameters is not None
    ]
    dense, expert = stage_parameters(moments, stage, zero)
    held = dense / degrees.state + expert / degrees.expert_state
    waiting = np.minimum(OFFLOAD_LAYERS / np.maximum(stage.layers(), OFFLOAD_LAYERS), 1.0)
    return np.where(update.offloads, waiting * held, held)


def _trained(operators: Iterable[Operator]) -> list[Operator]:
    return [operator for operator in operators if operator.frozen_bytes is None]


def _stored(operators: Iterable[Operator]) -> list[Operator]:
    """Operators with frozen weights, `parameters` being the bytes these are stored in."""
    return [
        replace(operator, parameters=operator.parameters * operator.frozen_bytes)
        for operator in operators
        if operator.frozen_bytes is not None and operator.parameters is not None
    ]


def _sharded(graph: TrainingGraph) -> Switch:
    return graph.degrees.shard > 1


def _whole_stages(graph: TrainingGraph) -> Switch:
    """Plans whose stages stay gathered, and their gradients whole, through the step."""
    return _sharded(graph) & stages_stay_gathered(graph.scope)


def _gradient_bytes(
    graph: TrainingGraph, stage: Stage, all_bytes: Column, parameters: Column, micro_batches: Column, *, compiled: bool
) -> Column:
    """Gradients that exist at the peak.

    Whole copies live in a buffer for the whole step. Sharded ones of a step of one micro-batch come into being in its
    backward pass, where PyTorch has freed the activations of the layers done: only what passes that room counts. XLA
    frees the stacked activations of a scan at its end: only the room of the loss is free by then.
    """
    kept, loss, one_layer = _activation_parts(graph, stage)
    peak = np.maximum(loss, one_layer)
    room = peak - one_layer if compiled else kept + peak - _one_layer(graph, stage)
    late = _sharded(graph) & (micro_batches <= 1) & (graph.degrees.pp == 1)
    counted = np.where(late, np.maximum(all_bytes - np.maximum(room, 0.0), 0.0), all_bytes)
    return np.where(_whole_stages(graph), SHARDED_BYTES["gradient"] * parameters, counted)


def activation_bytes(graph: TrainingGraph, stage: Stage) -> Column:
    """Activations kept on a device of the stage at the peak.

    A layer keeps s b h (34 + 5 a s / h) / t bytes with sequence parallelism, unfused attention, dropout and an
    ungated 4 h MLP (Korthikanti et al. 2022, equations 1 to 4); here read off the operators of the actual model.
    """
    kept, logits, one_layer = _activation_parts(graph, stage)
    # the loss is done when the first layer is recomputed: their peaks do not meet
    return kept + np.maximum(one_layer, logits)


def _activation_parts(graph: TrainingGraph, stage: Stage) -> tuple[Column, Column, Column]:
    """(kept by all micro-batches in flight, logits and loss, the set of one layer or module being recomputed)."""
    scope, mode = graph.scope, graph.recompute_mode
    layers = [operator for operator in graph.forward if in_layers(operator.place)]
    everything = _kept(layers, stage, "saved_bytes", scope.zero)
    products = keeps_every_other_product(scope)
    selective = (
        _every_other_product(graph) * stage.layers() if products else _kept(layers, stage, "kept_bytes", scope.zero)
    )
    waiting = np.minimum(stage.layers(), OFFLOAD_LAYERS) if scope.software.offloads_inputs else stage.layers()
    inputs = scope.edge_tokens * scope.model.hidden_size * scope.act_bytes * waiting
    if graph.modules and products:
        selective = np.where(graph.by_module, _kept(layers, stage, "kept_bytes", scope.zero), selective)
    kept = np.where(mode == 0, everything, np.where(mode == 1, np.minimum(selective, everything), inputs))
    if (graph.recompute_layers > 0).any():
        share = stage.share_of(graph.recompute_layers)
        kept = np.where(share < 1, share * kept + (1 - share) * everything, kept)
    ends = _kept([o for o in graph.forward if o.place == "embedding"], stage, "saved_bytes", scope.zero)
    logits = _kept([o for o in graph.forward if o.place in ("head", "mtp_head")], stage, "saved_bytes", scope.zero)
    again = np.where(mode == 2, _one_layer(graph, stage), _one_module(graph))
    held = _in_flight(graph, stage) * (kept + ends)
    if graph.offloads_activations.any():
        near = np.minimum(OFFLOAD_LAYERS / np.maximum(stage.layers(), OFFLOAD_LAYERS), 1.0)
        held = np.where(graph.offloads_activations, near * kept + _in_flight(graph, stage) * ends, held)
    if not isinstance(stage.put_off, float):
        # what weight gradients are made from: inputs of all products, whether kept or made again for the backward pass,
        # and behind the head, which has no other product, the gradient of its logits
        gradient = stage.places["head"] * scope.head_tokens * scope.model.vocab_size / scope.tp * scope.act_bytes
        held = held + stage.put_off * (everything + ends + gradient)
    return held, logits, again


def _in_flight(graph: TrainingGraph, stage: Stage) -> Column:
    """Micro-batches in flight; a chunk of one more where two are worked on at once (overlap_ep)."""
    held = stage.in_flight
    if graph.overlaps_micro_batches.any():
        more = np.minimum(held + 1 / graph.virtual_stages, graph.micro_batches)
        held = np.where(graph.overlaps_micro_batches, more, held)
    return held


def _one_module(graph: TrainingGraph) -> Column:
    """Bytes that exist while the largest of a plan's recompute modules is made again in one layer (of any sort)."""
    largest = graph.scope.zero
    for module, plans in graph.modules.items():
        inside: dict[int | None, Column] = {}
        for operator in graph.forward:
            sort = sort_number(operator.place)
            scope = graph.scope if sort is None else graph.scope.sorts[sort]
            freed = operator.count * freed_bytes(operator, module, scope)
            inside[sort] = inside.get(sort, graph.scope.zero) + freed
        for held in inside.values():
            largest = np.maximum(largest, np.where(plans, held, 0.0))
    return largest


def _one_layer(graph: TrainingGraph, stage: Stage) -> Column:
    layers = [operator for operator in graph.forward if in_layers(operator.place)]
    return _kept(layers, stage, "saved_bytes", graph.scope.zero) / np.maximum(stage.layers(), 1.0)


def _every_other_product(graph: TrainingGraph) -> Column:
    """Bytes a dense layer keeps under a policy that keeps every other product: its input, half of the results of its
    products, and the attention output with its log-sums."""
    scope, model = graph.scope, graph.scope.model
    inner = model.intermediate_size * (2 if model.gated_mlp else 1) / scope.tp
    results = scope.tokens * (scope.q_width + scope.k_width + scope.v_width + inner)
    hidden = scope.edge_tokens * model.hidden_size
    attention = scope.tokens * (scope.out_width * scope.act_bytes + 4.0 * scope.heads)
    return scope.act_bytes * (hidden + (results + 2 * hidden) / 2) + attention


def _kept(operators: list[Operator], stage: Stage, item: str, zero: Column) -> Column:
    total = zero
    for operator in operators:
        column: Column | None = getattr(operator, item)
        if column is not None:
            total = total + operator.count * stage.places[operator.place] * column
    return total


def _buffer_bytes(graph: TrainingGraph, stage: Stage, *, compiled: bool) -> Column:
    """Gathered FSDP shards, copies of tokens on their way to experts and back (of two micro-batches with overlap_ep),
     transient activations, the buffer gradients are reduced through.

    A compiler that plans buffers lends the room of the loss to the transient activation of a layer.
    """
    scope, model = graph.scope, graph.scope.model
    inner = model.intermediate_size * (2 if model.gated_mlp else 1) if model.has_dense_mlp else 0
    widest = np.maximum(max(model.hidden_size, inner) / scope.tp, model.hidden_size)
    transient = scope.tokens * widest * scope.act_bytes
    if compiled:
        _, loss, one_layer = _activation_parts(graph, stage)
        transient = np.maximum(one_layer + transient - np.maximum(loss, one_layer), 0.0)
    sent = scope.software.expert_load * model.experts_per_token * scope.one
    if scope.gathers_tokens is not None:
        sent = np.where(scope.gathers_tokens & model.is_moe, scope.ep, sent)
    sent = np.where(graph.overlaps_micro_batches, 2 * sent, sent)
    copies = scope.tokens * sent / scope.tp * model.expert_features * scope.act_bytes
    bucket = np.where(_sharded(graph), 0.0, scope.software.bucket_bytes)
    gathered = _gathered_bytes(graph, stage, compiled=compiled) + widest_product_bytes(graph.forward, scope)
    return gathered + transient + 2 * copies + bucket + context_buffer_bytes(scope, graph.context)


def _gathered_bytes(graph: TrainingGraph, stage: Stage, *, compiled: bool) -> Column:
    """16-bit copies of sharded weights, and of the gradient being reduced.

    PyTorch gathers layers, and keeps what its root module owns (the vocabulary) gathered from forward to backward. A
    compiler that plans buffers (XLA) gathers each weight array for itself, and the vocabulary again for the backward
    pass, so that it never stands beside the layers' arrays. Frozen weights are gathered as they are stored, and no
    gradient of them stands beside.
    """
    trained = [replace(o, parameters=2.0 * o.parameters) for o in _trained(graph.forward) if o.parameters is not None]
    with_gradient = _gathered_as_stored(graph, stage, trained, GATHERED_UNITS, compiled=compiled)
    return with_gradient + _gathered_as_stored(
        graph, stage, _stored(graph.forward), GATHERED_UNITS - 1, compiled=compiled
    )


def _gathered_as_stored(
    graph: TrainingGraph, stage: Stage, operators: list[Operator], units: float, *, compiled: bool
) -> Column:
    """Bytes of these operators' weights that stand gathered at once; `parameters` counts bytes here."""
    scope, degrees, software = graph.scope, graph.degrees, graph.scope.software
    inside = [operator for operator in operators if in_layers(operator.place)]
    dense, expert = stage_parameters(inside, stage, scope.zero)
    ends, _ = stage_parameters([o for o in operators if o.place in ("embedding", "head")], stage, scope.zero)
    held = np.where(degrees.shard > 1, dense, 0.0) + np.where(degrees.expert_shard > 1, expert, 0.0)
    tables = np.where(degrees.shard > 1, ends, 0.0)
    if compiled:
        return np.maximum(units * _widest_array(graph, inside), tables)
    at_once = units * held / np.maximum(stage.layers(), 1.0) + tables
    if software.live_parameters is not None:
        at_once = np.minimum(at_once, 2.0 * units * software.live_parameters)
    return np.where(_whole_stages(graph), held + tables, at_once)


def _widest_array(graph: TrainingGraph, operators: list[Operator]) -> Column:
    """Bytes of the largest sharded weight array of a layer; gate and up are two."""
    degrees, widest = graph.degrees, graph.scope.zero
    for operator in operators:
        if operator.parameters is not None:
            arrays = 2.0 if graph.scope.model.gated_mlp and operator.name.endswith("_up") else 1.0
            over = degrees.expert_shard if operator.expert else degrees.shard
            widest = np.maximum(widest, np.where(over > 1, operator.parameters / arrays, 0.0))
    return widest
