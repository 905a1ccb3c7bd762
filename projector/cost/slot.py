"""Slot: one micro-batch on one stage of a training step, forward and backward."""

from dataclasses import dataclass

import numpy as np

from projector.cost.ledger import Ledger, StageTimes
from projector.cost.overlap import MicroBatchCommunication, Switches, exposed_copies, micro_batch_communication
from projector.cost.pipeline import StageSeconds
from projector.cost.pipeline_stages import Pipeline
from projector.cost.roofline import Rates
from projector.cost.stages import Stage
from projector.graph.columns import Column
from projector.graph.operator import Pass, Place

FORWARD: tuple[Pass, ...] = ("forward",)
BACK: tuple[Pass, ...] = ("recompute", "backward")
MICRO_BATCH_PASSES: tuple[Pass, ...] = (*FORWARD, *BACK)


@dataclass(frozen=True)
class Slot:
    """One micro-batch on one stage: seconds it works, waits for launches and for copies, its communication.

    ahead_s: the forward pass of `length_s`, with what of communication and waiting stands in it
    weight_s: gradients of weights, the part of the backward pass that no other stage waits for
    """

    busy_s: Column
    launch_idle_s: Column
    exposed_copy_s: Column
    ahead_s: Column
    weight_s: Column
    communication: MicroBatchCommunication

    @property
    def length_s(self) -> Column:
        """Seconds the stage is taken."""
        return self.busy_s + self.exposed_copy_s + self.launch_idle_s


def slot(times: StageTimes, switches: Switches, rates: Rates, pp: Column, pause_s: float) -> Slot:
    """Seconds of a micro-batch. The host runs ahead of the device over a whole micro-batch, except in a pipeline: there
    a pass begins when its input arrives, so a forward pass short of launches is not made up for by a long backward one.
    """
    communication = micro_batch_communication(times, switches)
    exposed_s = sum((axis.exposed_s for axis in communication.by_axis.values()), start=times.zero)
    exposed_ahead_s = times.zero
    for axis in communication.by_axis.values():
        exposed_ahead_s = exposed_ahead_s + axis.exposed_ahead_s
    busy_s = times.compute(*MICRO_BATCH_PASSES) + exposed_s
    idle_s = {
        runs: _launch_idle_s(times, runs, exposed_s=exposed, launch_s=rates.kernel_launch_s)
        for runs, exposed in (
            (MICRO_BATCH_PASSES, exposed_s),
            (FORWARD, exposed_ahead_s),
            (BACK, exposed_s - exposed_ahead_s),
        )
    }
    by_pass_s = np.maximum(idle_s[FORWARD] + idle_s[BACK], idle_s[MICRO_BATCH_PASSES])
    copy_ahead_s, copy_back_s = exposed_copies(times, switches.hiding_frac)
    return Slot(
        busy_s=busy_s,
        launch_idle_s=np.where(pp > 1, by_pass_s + pause_s, idle_s[MICRO_BATCH_PASSES]),
        exposed_copy_s=copy_ahead_s + copy_back_s,
        # an engine's pause is taken to stand in both passes alike
        ahead_s=times.compute(*FORWARD) + exposed_ahead_s + copy_ahead_s + idle_s[FORWARD] + pause_s / 2,
        weight_s=times.weight_gradients(),
        communication=communication,
    )


def _launch_idle_s(times: StageTimes, runs: tuple[Pass, ...], *, exposed_s: Column, launch_s: float) -> Column:
    """Seconds the device waits for launches in these passes: in the layers, and apart from them at the model's ends.

    A long vocabulary product does not make up for layers short of launches: the loss is read in between.
    """
    ends_s, ends_launches = times.ends(*runs)
    layers_s = times.compute(*runs) - ends_s + exposed_s
    layer_launches = times.launched(*runs) - ends_launches
    idle_s: Column = np.maximum(layer_launches * launch_s - layers_s, 0.0)
    return idle_s + np.maximum(ends_launches * launch_s - ends_s, 0.0)


def stage_seconds(
    ledger: Ledger, line: Pipeline, switches: Switches, rates: Rates, pause_s: float
) -> tuple[StageSeconds, ...]:
    """What a schedule needs to know of each kind of stage.

    Chunks share the passes of their device by the time of what they hold. A hop takes what of a send does not stand in
    the passes themselves: nothing hides the first send of a step, whatever hides the others.
    """
    zero, passages = np.zeros_like(line.pp), (ledger.pass_s(*FORWARD), ledger.pass_s(*BACK))
    apart = np.where(line.splits_weights, 1.0, 0.0)
    found = []
    for kind, first, last in zip(line.kinds, line.first_chunks, line.last_chunks, strict=True):
        times = ledger.on(kind, zero)
        whole = slot(times, switches, rates, line.pp, pause_s)
        ahead_s, weight_s = whole.ahead_s, apart * whole.weight_s
        back_s = whole.length_s - whole.ahead_s - weight_s
        (first_ahead, first_back), (last_ahead, last_back) = (
            [_share(chunk, kind, passage_s, zero) for passage_s in passages] for chunk in (first, last)
        )
        sends = whole.communication.by_axis["pp"]
        hidden_ahead_s = times.wire("forward", axis="pp") - sends.exposed_ahead_s
        hidden_back_s = np.maximum(sends.total_s - sends.exposed_s - hidden_ahead_s, 0.0)
        found.append(
            StageSeconds(
                ahead_s=ahead_s,
                back_s=back_s,
                weight_s=weight_s,
                first_ahead_s=first_ahead * ahead_s,
                first_back_s=first_back * back_s,
                last_ahead_s=last_ahead * ahead_s,
                last_back_s=last_back * back_s,
                hop_ahead_s=hidden_ahead_s / line.virtual_stages,
                hop_back_s=hidden_back_s / line.virtual_stages,
            )
        )
    return tuple(found)


def _share(chunk: Stage, kind: Stage, passage_s: dict[Place, Column], zero: Column) -> Column:
    """Part of a device's pass that one of its chunks takes; sends, alike for all chunks, are left out."""
    if chunk is kind:
        return zero + 1.0
    places = [place for place in chunk.places if place in passage_s and place != "stage"]
    whole_s = sum((kind.places[place] * passage_s[place] for place in places), start=zero)
    part_s = sum((chunk.places[place] * passage_s[place] for place in places), start=zero)
    return part_s / np.where(whole_s > 0, whole_s, 1.0)
