"""Engine: what one passage of a step through a pipeline stage of a serving engine costs."""

from dataclasses import dataclass

import numpy as np

from projector.breakdown import Axis, OperatorKind
from projector.cost.attention_kernels import chip_kernels
from projector.cost.device import Device, product_dtypes
from projector.cost.ledger import Ledger, StageTimes
from projector.cost.overlap import AxisTimes, Switches, micro_batch_communication
from projector.cost.roofline import Rates
from projector.cost.routes import Route, routes
from projector.cost.stages import Stages, stages
from projector.graph.columns import Column, Switch
from projector.graph.engine_kernels import ChipKernels
from projector.graph.groups import Degrees, groups
from projector.graph.operator import GroupName
from projector.graph.serving_graph import Experts, StepWork, expert_dtypes, serving_graph
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import SERVING

# Host time of a launch through the Python of an engine's layers over that of a bare one. Assumed: a third of what
# Megatron-LM's eager modules show (Software.host_factor).
HOST_FACTOR = 4.0
# What a kernel pays beside its work, in floors of a kernel: the one before it drains, it fills. Of 0.75 to 2 the
# measured serving points (TPOT of 162 dense and 460 MoE ones) have the least error with 2; with more than this one
# eight B200 would decode a 70B model less than four times as fast as one. GPUs alone: compiled programs have no such
# gaps.
KERNEL_DRAIN_FRAC = 1.4
# What a collective pays beside its transfers, in floors: it is a kernel like others.
COLLECTIVE_FLOORS = 1.0
# Launches a layer costs the host where graphs are replayed between attentions: the kernel, and the graph before it.
PIECES = 2.0
# Halves of a batch that alternate between compute and exchange with experts (DeepSeek-V3, arXiv:2412.19437, 3.4).
OVERLAPPED_PARTS = 2.0


@dataclass(frozen=True)
class Slot:
    """One passage through the slowest stage, seconds (columns): compute by kind, communication, idle for launches."""

    compute_s: dict[OperatorKind, Column]
    communication: dict[Axis, AxisTimes]
    launch_idle_s: Column

    @property
    def exposed_communication_s(self) -> Column:
        """Seconds of communication that nothing hides."""
        return sum((axis.exposed_s for axis in self.communication.values()), start=np.zeros_like(self.launch_idle_s))

    @property
    def length_s(self) -> Column:
        """Seconds the stage is taken."""
        exposed_s = sum((axis.exposed_s for axis in self.communication.values()), start=self.launch_idle_s)
        return sum(self.compute_s.values(), start=exposed_s)


@dataclass(frozen=True)
class Engine:
    """What does not depend on the content of a step."""

    batch: PlanBatch
    model: ModelArchitecture
    math_dtype: AnyColumn
    experts: Experts
    kernels: ChipKernels
    degrees: Degrees
    routes: dict[GroupName, Route]
    rates: Rates
    stages: Stages
    contention_frac: float
    tp_contention_frac: float

    @classmethod
    def of(
        cls,
        batch: PlanBatch,
        model: ModelArchitecture,
        math_dtype: AnyColumn,
        cluster: ClusterSpec,
        hardware: HardwareProfile,
        expert_imbalance: float | None = None,
    ) -> "Engine":
        """Engines of every plan; GEMMs run in `math_dtype`. expert_imbalance: of the traffic; None: the stack's."""
        degrees, device = Degrees.of(batch), Device.of(hardware)
        stored = expert_dtypes(batch)
        collective_s = COLLECTIVE_FLOORS * hardware.calibration.kernel_floor_s if hardware.kind == "gpu" else 0.0
        drain_s = KERNEL_DRAIN_FRAC * hardware.calibration.kernel_floor_s if hardware.kind == "gpu" else 0.0
        experts = Experts(stored, product_dtypes(stored, batch.compute_dtype, device), expert_imbalance)
        one = np.ones(len(batch))
        return cls(
            batch=batch,
            model=model,
            math_dtype=math_dtype,
            experts=experts,
            kernels=chip_kernels(batch, hardware),
            degrees=degrees,
            routes=routes(groups(degrees), cluster, hardware),
            rates=Rates.of(device, math_dtype, expert_dtype=experts.math, drain_s=drain_s, collective_s=collective_s),
            stages=stages(model, degrees.pp, one, one, 0 * one),
            contention_frac=hardware.calibration.contention_frac,
            tp_contention_frac=hardware.calibration.tp_contention_frac,
        )

    def slot(self, work: StepWork, launches: Switch) -> Slot:
        """One passage of `work` through the slowest stage.

        launches: the host launches every kernel, unless the plan replays pieces of each step (cuda_graph_mode).
        Under overlap_ep a step that exchanges tokens with experts passes in two halves: each reads the weights and
        pays the floors of its kernels, the exchange of one hides behind the compute of the other, and what is hidden
        slows that compute (`projector.cost.overlap`).
        """
        parts = self._parts(work)
        operators = serving_graph(
            self.batch, self.model, self.math_dtype, work.split(parts), self.experts, self.kernels
        )
        ledger = Ledger.of(operators, self.rates, self.routes)
        zero = np.zeros(len(self.batch))
        on_middle, on_last = (
            self._slot(ledger.on(stage, zero), launches, parts) for stage in (self.stages.middle, self.stages.last)
        )
        last_is_slowest = on_last.length_s > on_middle.length_s
        return self._slot(ledger.on(self.stages.middle.where(last_is_slowest, self.stages.last), zero), launches, parts)

    def _parts(self, work: StepWork) -> Column:
        """Parts a step passes in: two where overlap_ep has an exchange to hide and something to split, else one."""
        batch = self.batch
        whole = work.decoding + work.prompts * work.chunk
        exchanges = (batch.ep > 1) & (batch.ep * batch.etp > batch.tp)
        halved = batch.overlap_ep.astype(bool) & exchanges & (whole >= OVERLAPPED_PARTS) & self.model.is_moe
        return np.where(halved, OVERLAPPED_PARTS, 1.0)

    def _launch_s(self, times: StageTimes, launches: Switch) -> tuple[Column, Column]:
        """(seconds the host takes to launch a passage, seconds the device waits for what is queued to start).

        The host launches every kernel, or in pieces attention and a graph a layer; each of these starts a gap later
        than it would inside one graph.
        """
        in_pieces = (self.batch.cuda_graph_mode == "piecewise") & self.batch.cuda_graphs.astype(bool)
        pieces = in_pieces * PIECES * times.attention_launched("forward")
        kernels = (launches & ~in_pieces) * times.launched("forward") + pieces
        return kernels * HOST_FACTOR * self.rates.kernel_launch_s, pieces * self.rates.kernel_drain_s

    def _slot(self, times: StageTimes, launches: Switch, parts: Column) -> Slot:
        zero = np.zeros(len(self.batch))
        off = np.zeros(len(self.batch), dtype=np.bool_)
        switches = Switches(
            grad_reduce=off,
            param_gather=off,
            tp=self.batch.overlap_tp.astype(bool),
            ring=off,
            interleaved=off,
            tp_gradients=off,
            expert=np.maximum(parts - 1.0, SERVING.expert_overlap),
            contention_frac=self.contention_frac,
            hiding_frac=SERVING.hiding_frac,
            tp_contention_frac=self.tp_contention_frac,
        )
        exposed = micro_batch_communication(times, switches).by_axis
        slot = Slot(
            compute_s={kind: parts * times.compute("forward", kind=kind) for kind in times.kinds()},
            communication={axis: found.times(parts) for axis, found in exposed.items()},
            launch_idle_s=zero,
        )
        host_s, gaps_s = (parts * each_s for each_s in self._launch_s(times, launches))
        return Slot(slot.compute_s, slot.communication, np.maximum(host_s - slot.length_s, 0.0) + gaps_s)
