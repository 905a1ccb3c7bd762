"""Overlap: which communication of a micro-batch and of a step nothing hides. Explicit, axis by axis, in this order:

    tp     backward: hidden behind weight gradients, half of the backward GEMMs (Megatron-LM's default; not in every
           stack: Software.async_tp_gradients); all else is exposed, save with overlap_tp, which hides it behind GEMMs
           except a first chunk of one in TP_CHUNKS. ZB-H1 puts weight gradients off, and with them what they hide
    cp     a ring hidden behind the attention of the same pass; gathered keys and tokens traded for heads stand before
           and behind it, exposed
    fsdp   gathers hidden behind forward and backward compute with overlap_param_gather, gradient scatters behind
           backward compute with overlap_grad_reduce
    ep     exposed: dispatch and combine stand between dependent operators; with overlap_ep or Software.expert_overlap
           two micro-batches alternate and compute hides it (DeepSeek-V3, arXiv:2412.19437, section 3.2), as it does
           wherever DualPipe runs a forward and a backward pass together
    pp     sends exposed under 1F1B and ZB-H1, hidden in an interleaved schedule and by DualPipe
    dp     once a step: reductions behind the backward pass of the last micro-batch (of the last group of micro-batches
           in an interleaved schedule), gathers of updated weights behind the forward pass of the first, by the same
           switches; likewise fsdp where stages stay gathered (`gathered_stages`)

Compute hides one communication only, and only Software.hiding_frac of it hides any: the first and last layer have no
neighbour. What is hidden is not free: communication kernels take cores and memory bandwidth from the compute beside
them, which gets longer by Calibration.contention_frac of the time hidden (GPU collectives run on the cores that
compute; TPU and Trainium links have engines of their own, which still share the memory). That is charged to the axis,
as what a step gets longer by:

    exposed = total - (1 - c) hidden

On GPUs tensor parallelism is spared: it hides in the shadow of single GEMMs of its own layer, and published runs show
no more.
Left out: two axes on the same links at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from projector.breakdown import Axis
from projector.cost.ledger import StageTimes
from projector.graph.columns import Column, Switch
from projector.graph.operator import CollectiveKind, Pass

AHEAD: tuple[Pass, ...] = ("forward",)
BACK: tuple[Pass, ...] = ("recompute", "backward")
RING_KINDS: tuple[CollectiveKind, ...] = ("all_gather", "reduce_scatter")
TP_CHUNKS = 8.0


@dataclass(frozen=True)
class Switches:
    """The overlap switches of a batch, whether its schedule interleaves chunks or ways, what hiding costs on its chip.

    ring: plans whose context ranks pass keys on while they attend
    expert: share of the exchange with experts that has the compute of another micro-batch beside it
    """

    grad_reduce: Switch
    param_gather: Switch
    tp: Switch
    ring: Switch
    interleaved: Switch
    tp_gradients: Switch
    expert: Column
    contention_frac: float
    tp_contention_frac: float
    hiding_frac: float


@dataclass(frozen=True)
class AxisTimes:
    """Seconds of communication along one axis: all of it, and what a step gets longer by.

    exposed_ahead_s: the part of the latter that stands in forward passes; 0 where passes are not told apart.
    """

    total_s: Column
    exposed_s: Column
    exposed_ahead_s: Column | float = 0.0

    @classmethod
    def of(cls, total_s: Column, hidden_s: Column, contention_frac: float) -> "AxisTimes":
        """What is left of the total beside what the hidden part costs; never below zero by rounding."""
        return cls(total_s, np.maximum(total_s - (1 - contention_frac) * hidden_s, 0.0))

    def plus(self, other: "AxisTimes") -> "AxisTimes":
        """Both together."""
        return AxisTimes(self.total_s + other.total_s, self.exposed_s + other.exposed_s)

    def times(self, parts: Column) -> "AxisTimes":
        """So many of them one after the other."""
        return AxisTimes(self.total_s * parts, self.exposed_s * parts, self.exposed_ahead_s * parts)


@dataclass(frozen=True)
class Cover:
    """Seconds of compute that can still hide communication: of the forward pass, and of recompute and backward."""

    ahead_s: Column
    back_s: Column

    def without(self, ahead_s: Column, back_s: Column) -> "Cover":
        """What is left after hiding so much."""
        return Cover(np.maximum(self.ahead_s - ahead_s, 0.0), np.maximum(self.back_s - back_s, 0.0))


@dataclass(frozen=True)
class MicroBatchCommunication:
    """Communication of one micro-batch on a stage by axis, and the compute that hid none of it."""

    by_axis: dict[Axis, AxisTimes]
    cover: Cover


def micro_batch_communication(times: StageTimes, switches: Switches) -> MicroBatchCommunication:
    """Communication of one micro-batch on a stage."""
    cover = Cover(
        ahead_s=switches.hiding_frac * times.compute("forward"),
        back_s=switches.hiding_frac * times.compute("recompute", "backward"),
    )
    found: dict[Axis, AxisTimes] = {}
    for axis, expose in AXES:
        times_of_axis, left = expose(times, switches, cover)
        # what an axis took from the cover of the forward pass is what it hid there
        contention_frac = switches.tp_contention_frac if axis == "tp" else switches.contention_frac
        ahead = AxisTimes.of(times.wire("forward", axis=axis), cover.ahead_s - left.ahead_s, contention_frac)
        found[axis] = replace(times_of_axis, exposed_ahead_s=ahead.exposed_s)
        cover = left
    return MicroBatchCommunication({axis: found[axis] for axis in REPORTED}, cover)


def exposed_copies(times: StageTimes, hiding_frac: float) -> tuple[Column, Column]:
    """Seconds of a micro-batch that the host link is busy longer than the pass computes: (forward, back).

    Copies have engines and links of their own: they take nothing from compute and hide beside communication.
    """
    ahead_s = times.copied("forward") - hiding_frac * times.compute("forward")
    back_s = times.copied("backward") - hiding_frac * times.compute("recompute", "backward")
    return np.maximum(ahead_s, 0.0), np.maximum(back_s, 0.0)


def step_communication(times: StageTimes, switches: Switches, cover: Cover, neighbours: Column) -> AxisTimes:
    """Data-parallel communication of one step on a stage; `cover` is what a micro-batch left.

    neighbours: micro-batches whose compute stands beside it, `sync_neighbours`.
    """
    cover = Cover(cover.ahead_s * neighbours, cover.back_s * neighbours)
    reduce_s = times.wire("sync", axis="dp", kinds=("all_reduce", "reduce_scatter"))
    gather_s = times.wire("sync", axis="dp", kinds=("all_gather",))
    hidden_s = _hidden(reduce_s, cover.back_s, switches.grad_reduce) + _hidden(
        gather_s, cover.ahead_s, switches.param_gather
    )
    return AxisTimes.of(reduce_s + gather_s, hidden_s, switches.contention_frac)


def gathered_stages(times: StageTimes, switches: Switches, cover: Cover, neighbours: Column) -> AxisTimes:
    """FSDP traffic of a step whose stages stay gathered through it; `cover` and `neighbours` as for the step's own.

    Gathers hide behind the first forward pass. Gradients are scattered when a chunk's last backward pass is done:
    behind the other chunks of an interleaved schedule, behind nothing in a plain one (PyTorch's pipeline stages).
    """
    gather_s = times.wire("sync", axis="fsdp", kinds=("all_gather",))
    scatter_s = times.wire("sync", axis="fsdp", kinds=("reduce_scatter",))
    hidden_s = _hidden(gather_s, cover.ahead_s * neighbours, switches.param_gather) + _hidden(
        scatter_s, cover.back_s * neighbours, switches.grad_reduce & switches.interleaved
    )
    # pieces of moments that an update of whole matrices waits for, and of the updates
    traded_s = times.wire("sync", axis="fsdp", kinds=("all_to_all",))
    return AxisTimes.of(gather_s + scatter_s + traded_s, hidden_s, switches.contention_frac)


def sync_neighbours(pp: Column, virtual_stages: Column, micro_batches: Column) -> Column:
    """Micro-batches whose compute can hide the exchange of gradients or of updated weights.

    Plain schedules: the last (first) one alone, layer by layer. Interleaved ones pass groups of p micro-batches through
    a device's v chunks, so the last group is done with the first chunk before p (v - 1) / v micro-batches' worth of
    backward passes of the others, and the first group's forward passes mirror that.
    """
    found: Column = np.clip(pp * (virtual_stages - 1) / virtual_stages, 1.0, micro_batches)
    return found


def _hidden(communication_s: Column, cover_s: Column, on: Switch | bool = True) -> Column:
    hidden: Column = np.where(on, np.minimum(communication_s, cover_s), 0.0)
    return hidden


def _tensor(times: StageTimes, switches: Switches, cover: Cover) -> tuple[AxisTimes, Cover]:
    ahead_s = times.wire("forward", axis="tp")
    again_s, back_s = times.wire("recompute", axis="tp"), times.wire("backward", axis="tp")
    gemm_back_s = switches.hiding_frac * times.compute("recompute", "backward", kind="gemm")
    gradients_s = switches.hiding_frac * times.compute("backward", kind="gemm") / 2
    by_gradients_s = _hidden(back_s, np.minimum(gradients_s, cover.back_s), switches.tp_gradients)
    chunked = 1 - 1 / TP_CHUNKS
    hidden_ahead_s = _hidden(
        ahead_s * chunked,
        np.minimum(switches.hiding_frac * times.compute("forward", kind="gemm"), cover.ahead_s),
        switches.tp,
    )
    hidden_back_s = by_gradients_s + _hidden(
        (again_s + back_s - by_gradients_s) * chunked,
        np.minimum(gemm_back_s, cover.back_s) - by_gradients_s,
        switches.tp,
    )
    total_s = ahead_s + again_s + back_s
    return AxisTimes.of(total_s, hidden_ahead_s + hidden_back_s, switches.tp_contention_frac), cover.without(
        hidden_ahead_s, hidden_back_s
    )


def _context(times: StageTimes, switches: Switches, cover: Cover) -> tuple[AxisTimes, Cover]:
    ahead_s, back_s = (times.wire(*runs, axis="cp", kinds=RING_KINDS) for runs in (AHEAD, BACK))
    traded_s = times.wire(*AHEAD, *BACK, axis="cp", kinds=("all_to_all",))
    attention_ahead_s, attention_back_s = (
        switches.hiding_frac * times.compute(*runs, kind="attention") for runs in (AHEAD, BACK)
    )
    hidden_ahead_s = _hidden(ahead_s, np.minimum(attention_ahead_s, cover.ahead_s), switches.ring)
    hidden_back_s = _hidden(back_s, np.minimum(attention_back_s, cover.back_s), switches.ring)
    total_s = ahead_s + back_s + traded_s
    return AxisTimes.of(total_s, hidden_ahead_s + hidden_back_s, switches.contention_frac), cover.without(
        hidden_ahead_s, hidden_back_s
    )


def _sharded(times: StageTimes, switches: Switches, cover: Cover) -> tuple[AxisTimes, Cover]:
    ahead_s = times.wire("forward", axis="fsdp")
    back_s = times.wire("backward", axis="fsdp", kinds=("all_gather",))
    scatter_s = times.wire("backward", axis="fsdp", kinds=("reduce_scatter",))
    hidden_ahead_s = _hidden(ahead_s, cover.ahead_s, switches.param_gather)
    hidden_gather_s = _hidden(back_s, cover.back_s, switches.param_gather)
    hidden_scatter_s = _hidden(scatter_s, cover.back_s - hidden_gather_s, switches.grad_reduce)
    total_s, hidden_back_s = ahead_s + back_s + scatter_s, hidden_gather_s + hidden_scatter_s
    return AxisTimes.of(total_s, hidden_ahead_s + hidden_back_s, switches.contention_frac), cover.without(
        hidden_ahead_s, hidden_back_s
    )


def _experts(times: StageTimes, switches: Switches, cover: Cover) -> tuple[AxisTimes, Cover]:
    ahead_s, back_s = times.wire("forward", axis="ep"), times.wire("recompute", "backward", axis="ep")
    hidden_ahead_s = switches.expert * _hidden(ahead_s, cover.ahead_s)
    hidden_back_s = switches.expert * _hidden(back_s, cover.back_s)
    total_s = ahead_s + back_s
    exposed = AxisTimes.of(total_s, hidden_ahead_s + hidden_back_s, switches.contention_frac)
    return exposed, cover.without(hidden_ahead_s, hidden_back_s)


def _sends(times: StageTimes, switches: Switches, cover: Cover) -> tuple[AxisTimes, Cover]:
    ahead_s, back_s = times.wire("forward", axis="pp"), times.wire("backward", axis="pp")
    hidden_ahead_s = _hidden(ahead_s, cover.ahead_s, switches.interleaved)
    hidden_back_s = _hidden(back_s, cover.back_s, switches.interleaved)
    total_s = ahead_s + back_s
    return AxisTimes.of(total_s, hidden_ahead_s + hidden_back_s, switches.contention_frac), cover.without(
        hidden_ahead_s, hidden_back_s
    )


# What may hide first, and the order axes are reported in.
AXES: tuple[tuple[Axis, Callable[[StageTimes, Switches, Cover], tuple[AxisTimes, Cover]]], ...] = (
    ("tp", _tensor),
    ("cp", _context),
    ("fsdp", _sharded),
    ("ep", _experts),
    ("pp", _sends),
)
REPORTED: tuple[Axis, ...] = ("tp", "ep", "cp", "fsdp", "pp")
