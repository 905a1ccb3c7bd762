"""The training model: one optimizer step of every plan of a batch."""

import numpy as np

from projector.batch_projection import Assumption, Metrics, ProjectionBatch, price_usd_per_chip_hour
from projector.breakdown import Axis
from projector.breakdown_columns import SAME_FRAC, BreakdownColumns
from projector.cost.device import Device
from projector.cost.energy import ChipPower
from projector.cost.ledger import Ledger
from projector.cost.links import Links
from projector.cost.overlap import (
    AxisTimes,
    Switches,
    gathered_stages,
    step_communication,
    sync_neighbours,
)
from projector.cost.pipeline_stages import Index, Pipeline, pipeline, places_of
from projector.cost.roofline import Rates
from projector.cost.routes import routes
from projector.cost.scheduled import schedule_time
from projector.cost.slot import MICRO_BATCH_PASSES, slot, stage_seconds
from projector.cost.stages import Stage
from projector.cost.training_memory import training_memory
from projector.graph.columns import Column, lookup
from projector.graph.documents import useful_frac
from projector.graph.groups import groups
from projector.graph.training_graph import TrainingGraph, overlaps_micro_batches, training_graph
from projector.intervals import training_interval
from projector.model_flop import model_flop_per_token
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.fine_tuning import Adapter
from projector.specs.hardware import ChipKind, HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.sequence_lengths import SequenceLengths
from projector.specs.software import CURRENT, XLA, Software
from projector.specs.software_of_model import model_of_software, software_of_model

# Chips whose programs a compiler writes whole, whichever framework describes them.
COMPILED: tuple[ChipKind, ...] = ("tpu", "trainium")


def project_training(
    batch: PlanBatch,
    model: ModelArchitecture,
    seq_len: int,
    math_dtype: AnyColumn,
    cluster: ClusterSpec,
    hardware: HardwareProfile,
    software: Software,
    assumptions: tuple[Assumption, ...],
    *,
    adapter: Adapter | None = None,
    lengths: SequenceLengths | None = None,
    forward_only: bool = False,
) -> ProjectionBatch:
    """Step time, memory and rates of every plan; columns of shape [len(batch)].

        step = m t_slowest + bubble + exposed data-parallel communication + optimizer

    t of a stage and micro-batch is compute + exposed communication of forward, recompute and backward, or the time the
    host needs to launch it all where that is longer (the difference is idle), and copies to and from the host that
    outlast the pass. The breakdown is that of a device of the slowest stage: compute + exposed communication + exposed
    copies + idle == step, the bubble being a part of idle.
    forward_only: the passes that train nothing, log-probabilities and rewards; their memory is that of training.
    """
    software = XLA if software == CURRENT and hardware.kind in COMPILED else software
    software = software_of_model(software, model)
    model = model if adapter else model_of_software(model, software)
    graph = training_graph(batch, model, seq_len, math_dtype, software, adapter, lengths)
    graph = graph.forward_alone() if forward_only else graph
    device = Device.of(hardware)
    rates = Rates.of(device, math_dtype, software)
    ways = routes(groups(graph.degrees), cluster, hardware)
    ledger = Ledger.of(graph.operators, rates, ways, graph.recompute_layers)
    micro_batches = batch.grad_accum.astype(np.float64)
    line = pipeline(batch, model, places_of(graph.forward), graph.virtual_stages, graph.degrees.pp)
    switches = _switches(batch, model, software, hardware, adapter)
    breakdown = _breakdown(ledger, line, graph, switches, micro_batches, rates)
    tokens = batch.dp * batch.micro_batch * batch.grad_accum * float(seq_len) * useful_frac(seq_len, lengths)
    chips = graph.degrees.devices / hardware.devices_per_chip
    peak = lookup(math_dtype, device.linear_peaks())
    flop = tokens * model_flop_per_token(model, seq_len, lengths, trained_frac=0.0 if adapter else 1.0)
    return ProjectionBatch(
        batch=batch,
        chip=hardware.id,
        chips=cluster.chips,
        devices_per_chip=hardware.devices_per_chip,
        price_usd_per_chip_hour=price_usd_per_chip_hour(hardware),
        step_time_s=breakdown.total_s,
        breakdown=breakdown,
        memory=training_memory(graph, line.devices, hardware, micro_batches),
        metrics=Metrics(
            tokens_per_s_per_chip=tokens / breakdown.total_s / chips,
            mfu_frac=flop / breakdown.total_s / (graph.degrees.devices * peak),
        ),
        interval=training_interval(breakdown, model, hardware),
        hardware=hardware,
        power=ChipPower.of(hardware),
        links=Links(ways, hardware),
        assumptions=assumptions,
    )


def _switches(
    batch: PlanBatch, model: ModelArchitecture, software: Software, hardware: HardwareProfile, adapter: Adapter | None
) -> Switches:
    # all micro-batches but the first have another beside them
    beside = np.where(overlaps_micro_batches(batch, model), 1 - 1 / batch.grad_accum, 0.0)
    two_way = batch.schedule == "dualpipe"
    # DualPipe runs as many forward passes alone as it has devices, and one more
    paired = np.where(two_way, np.maximum(1 - (batch.pp + 1) / batch.grad_accum, 0.0), 0.0)
    return Switches(
        grad_reduce=batch.overlap_grad_reduce.astype(bool),
        param_gather=batch.overlap_param_gather.astype(bool),
        tp=batch.overlap_tp.astype(bool),
        ring=batch.cp_kind == "ring",
        interleaved=((batch.schedule == "interleaved") & (batch.vp > 1)) | two_way,
        # frozen products have no weight gradients to hide a collective behind,
        # and a backward pass without them has none beside it
        tp_gradients=(batch.schedule != "zero_bubble") & (software.async_tp_gradients and adapter is None),
        expert=np.maximum(software.expert_overlap * 1.0, np.maximum(beside, paired)),
        contention_frac=hardware.calibration.contention_frac,
        tp_contention_frac=hardware.calibration.tp_contention_frac,
        hiding_frac=software.hiding_frac,
    )


def _breakdown(
    ledger: Ledger, line: Pipeline, graph: TrainingGraph, switches: Switches, micro_batches: Column, rates: Rates
) -> BreakdownColumns:
    seconds = stage_seconds(ledger, line, switches, rates, graph.scope.software.pipeline_pause_s)
    pipe = schedule_time(ledger, line, seconds, micro_batches)

    def on(number: Index) -> BreakdownColumns:
        return _on_device(line.device(number), pipe.total_s, ledger, line, graph, switches, micro_batches, rates)

    found = on(pipe.busiest)
    return found.or_longer(on(np.zeros_like(pipe.busiest))) if pipe.busiest.any() else found


def _on_device(
    device: Stage,
    pipelined_s: Column,
    ledger: Ledger,
    line: Pipeline,
    graph: TrainingGraph,
    switches: Switches,
    micro_batches: Column,
    rates: Rates,
) -> BreakdownColumns:
    """The step as one device spends it: its micro-batches, its wait in the pipeline, what it does once.

    The busiest one is not always the last to be done: the first stage is done last with its micro-batches, and where it
    owns most of the weights (tables of embeddings) its update and exchange outlast what the busiest one does once.
    """
    zero, pause_s = graph.scope.zero, graph.scope.software.pipeline_pause_s
    once_times = ledger.on(device, zero)
    # of two stages on a device a micro-batch passes one
    times = ledger.on(device.passed_by(1 / line.copies), zero) if (line.copies > 1).any() else once_times
    busiest = slot(times, switches, rates, line.pp, pause_s)
    by_kind = {
        kind: micro_batches * times.compute(*MICRO_BATCH_PASSES, kind=kind) + once_times.compute("update", kind=kind)
        for kind in times.kinds()
    }
    by_axis: dict[Axis, AxisTimes] = {
        axis: AxisTimes(micro_batches * one.total_s, micro_batches * one.exposed_s)
        for axis, one in busiest.communication.by_axis.items()
    }
    waits_s = pipelined_s - micro_batches * busiest.length_s
    bubble_s = np.where(waits_s > SAME_FRAC * pipelined_s, waits_s, 0.0)
    neighbours = sync_neighbours(line.pp, line.virtual_stages, micro_batches)
    once = gathered_stages(once_times, switches, busiest.communication.cover, neighbours)
    by_axis["fsdp"] = by_axis["fsdp"].plus(once)
    by_axis["dp"] = step_communication(once_times, switches, busiest.communication.cover, neighbours)
    return BreakdownColumns.of(
        by_kind=by_kind,
        by_axis=by_axis,
        idle_s=micro_batches * busiest.launch_idle_s + bubble_s,
        bubble_s=bubble_s,
        # optimizer state crosses the host link beside the update it is for, both ways at once
        exposed_copy_s=micro_batches * busiest.exposed_copy_s
        + np.maximum(once_times.copied("update") - once_times.compute("update"), 0.0),
        host_s=micro_batches * times.launched(*MICRO_BATCH_PASSES) * rates.kernel_launch_s,
    )
