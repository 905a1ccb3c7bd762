"""The training model: one optimizer step of every plan of a batch."""

from dataclasses import dataclass

import numpy as np

from projector.batch_projection import (
    Assumption,
    BreakdownColumns,
    IntervalRule,
    Metrics,
    ProjectionBatch,
    price_usd_per_chip_hour,
)
from projector.breakdown import Axis
from projector.cost.device import Device
from projector.cost.energy import ChipPower
from projector.cost.ledger import Ledger, StageTimes
from projector.cost.overlap import (
    CONTENTION_FRAC,
    TP_CONTENTION_FRAC,
    AxisTimes,
    MicroBatchCommunication,
    Switches,
    exposed_copies,
    gathered_stages,
    micro_batch_communication,
    step_communication,
    sync_neighbours,
)
from projector.cost.pipeline import pipeline_time
from projector.cost.roofline import Rates
from projector.cost.routes import routes
from projector.cost.stages import Stages, stages
from projector.cost.training_memory import training_memory
from projector.graph.columns import Column, lookup
from projector.graph.documents import useful_frac
from projector.graph.groups import groups
from projector.graph.operator import Pass
from projector.graph.training_graph import TrainingGraph, overlaps_micro_batches, training_graph
from projector.model_flop import model_flop_per_token
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.fine_tuning import Adapter
from projector.specs.hardware import ChipKind, HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.sequence_lengths import SequenceLengths
from projector.specs.software import CURRENT, XLA, Software
from projector.specs.software_of_model import software_of_model

# Chips whose programs a compiler writes whole, whichever framework describes them.
COMPILED: tuple[ChipKind, ...] = ("tpu", "trainium")
FORWARD: tuple[Pass, ...] = ("forward",)
BACK: tuple[Pass, ...] = ("recompute", "backward")
MICRO_BATCH_PASSES: tuple[Pass, ...] = (*FORWARD, *BACK)
# 10th and 90th percentile of measured over projected step time (`shardwise eval accuracy`), rounded outwards; by
# whether the model is a mixture of experts.
INTERVALS = {
    False: IntervalRule(0.91, 1.18, "80 % of 459 published dense runs measured within these factors of the projection"),
    True: IntervalRule(
        0.83, 1.42, "80 % of 125 published runs with experts measured within these factors of the projection"
    ),
}


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
) -> ProjectionBatch:
    """Step time, memory and rates of every plan; columns of shape [len(batch)].

        step = m t_slowest + bubble + exposed data-parallel communication + optimizer

    t of a stage and micro-batch is compute + exposed communication of forward, recompute and backward, or the time the
    host needs to launch it all where that is longer (the difference is idle), and copies to and from the host that
    outlast the pass. The breakdown is that of a device of the slowest stage: compute + exposed communication + exposed
    copies + idle == step, the bubble being a part of idle.
    """
    software = XLA if software == CURRENT and hardware.kind in COMPILED else software
    software = software_of_model(software, model)
    graph = training_graph(batch, model, seq_len, math_dtype, software, adapter, lengths)
    device = Device.of(hardware)
    rates = Rates.of(device, math_dtype, software)
    ledger = Ledger.of(graph.operators, rates, routes(groups(graph.degrees), cluster, hardware), graph.recompute_layers)
    micro_batches = batch.grad_accum.astype(np.float64)
    positions = stages(model, graph.degrees.pp, graph.virtual_stages, micro_batches, graph.scope.zero)
    switches = _switches(batch, model, software, hardware, adapter)
    breakdown = _breakdown(ledger, positions, graph, switches, micro_batches, rates)
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
        memory=training_memory(graph, positions, hardware, micro_batches),
        metrics=Metrics(
            tokens_per_s_per_chip=tokens / breakdown.total_s / chips,
            mfu_frac=flop / breakdown.total_s / (graph.degrees.devices * peak),
        ),
        interval=INTERVALS[model.is_moe],
        power=ChipPower.of(hardware),
        assumptions=assumptions,
    )


def _switches(
    batch: PlanBatch, model: ModelArchitecture, software: Software, hardware: HardwareProfile, adapter: Adapter | None
) -> Switches:
    # all micro-batches but the first have another beside them
    beside = np.where(overlaps_micro_batches(batch, model), 1 - 1 / batch.grad_accum, 0.0)
    return Switches(
        grad_reduce=batch.overlap_grad_reduce.astype(bool),
        param_gather=batch.overlap_param_gather.astype(bool),
        tp=batch.overlap_tp.astype(bool),
        interleaved=(batch.schedule == "interleaved") & (batch.vp > 1),
        # frozen products have no weight gradients to hide a collective behind
        tp_gradients=software.async_tp_gradients and adapter is None,
        expert=np.maximum(software.expert_overlap * 1.0, beside),
        contention_frac=CONTENTION_FRAC[hardware.kind],
        tp_contention_frac=TP_CONTENTION_FRAC[hardware.kind],
    )


@dataclass(frozen=True)
class Slot:
    """One micro-batch on one stage: seconds it works, waits for launches and for copies, its communication."""

    busy_s: Column
    launch_idle_s: Column
    exposed_copy_s: Column
    communication: MicroBatchCommunication

    @property
    def length_s(self) -> Column:
        """Seconds the stage is taken."""
        return self.busy_s + self.exposed_copy_s + self.launch_idle_s


def _slot(times: StageTimes, switches: Switches, rates: Rates, pp: Column, pause_s: float) -> Slot:
    """Seconds of a micro-batch. The host runs ahead of the device over a whole micro-batch, except in a pipeline: there
    a pass begins when its input arrives, so a forward pass short of launches is not made up for by a long backward one.
    """
    communication = micro_batch_communication(times, switches)
    exposed_s = sum((axis.exposed_s for axis in communication.by_axis.values()), start=times.zero)
    busy_s = times.compute(*MICRO_BATCH_PASSES) + exposed_s
    ahead_s = sum(
        (
            one.exposed_s * times.wire("forward", axis=axis) / np.maximum(one.total_s, 1e-30)
            for axis, one in communication.by_axis.items()
        ),
        start=times.zero,
    )
    idle_s = {
        runs: _launch_idle_s(times, runs, exposed_s=exposed, launch_s=rates.kernel_launch_s)
        for runs, exposed in (
            (MICRO_BATCH_PASSES, exposed_s),
            (FORWARD, ahead_s),
            (BACK, exposed_s - ahead_s),
        )
    }
    by_pass_s = np.maximum(idle_s[FORWARD] + idle_s[BACK], idle_s[MICRO_BATCH_PASSES])
    waits_s = np.where(pp > 1, by_pass_s + pause_s, idle_s[MICRO_BATCH_PASSES])
    return Slot(busy_s, waits_s, exposed_copies(times), communication)


def _launch_idle_s(times: StageTimes, runs: tuple[Pass, ...], *, exposed_s: Column, launch_s: float) -> Column:
    """Seconds the device waits for launches in these passes: in the layers, and apart from them at the model's ends.

    A long vocabulary product does not make up for layers short of launches: the loss is read in between.
    """
    ends_s, ends_launches = times.ends(*runs)
    layers_s = times.compute(*runs) - ends_s + exposed_s
    layer_launches = times.launched(*runs) - ends_launches
    idle_s: Column = np.maximum(layer_launches * launch_s - layers_s, 0.0)
    return idle_s + np.maximum(ends_launches * launch_s - ends_s, 0.0)


def _breakdown(
    ledger: Ledger, positions: Stages, graph: TrainingGraph, switches: Switches, micro_batches: Column, rates: Rates
) -> BreakdownColumns:
    zero, pause_s = graph.scope.zero, graph.scope.software.pipeline_pause_s
    middle_s, last_s, whole_s = (
        _slot(ledger.on(stage, zero), switches, rates, graph.degrees.pp, pause_s).length_s
        for stage in (positions.middle, positions.last, positions.whole)
    )
    # the whole model as one stage pauses once, its stages each
    whole_s = whole_s + (graph.degrees.pp - 1) * pause_s
    pipe = pipeline_time(middle_s, last_s, whole_s, micro_batches, graph.virtual_stages)
    times = ledger.on(positions.middle.where(pipe.last_is_slowest, positions.last), zero)
    slot = _slot(times, switches, rates, graph.degrees.pp, pause_s)
    by_kind = {
        kind: micro_batches * times.compute(*MICRO_BATCH_PASSES, kind=kind) + times.compute("update", kind=kind)
        for kind in times.kinds()
    }
    by_axis: dict[Axis, AxisTimes] = {
        axis: AxisTimes(micro_batches * one.total_s, micro_batches * one.exposed_s)
        for axis, one in slot.communication.by_axis.items()
    }
    neighbours = sync_neighbours(graph.degrees.pp, graph.virtual_stages, micro_batches)
    once = gathered_stages(times, switches, slot.communication.cover, neighbours)
    by_axis["fsdp"] = by_axis["fsdp"].plus(once)
    by_axis["dp"] = step_communication(times, switches, slot.communication.cover, neighbours)
    return BreakdownColumns.of(
        by_kind=by_kind,
        by_axis=by_axis,
        idle_s=micro_batches * slot.launch_idle_s + pipe.bubble_s,
        bubble_s=pipe.bubble_s,
        exposed_copy_s=micro_batches * slot.exposed_copy_s,
        host_s=micro_batches * times.launched(*MICRO_BATCH_PASSES) * rates.kernel_launch_s,
    )
