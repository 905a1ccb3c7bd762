"""Engine: what one passage of a step through a pipeline stage of a serving engine costs."""

from dataclasses import dataclass

import numpy as np

from projector.breakdown import Axis, OperatorKind
from projector.cost.device import Device
from projector.cost.ledger import Ledger, StageTimes
from projector.cost.overlap import AxisTimes, Switches, micro_batch_communication
from projector.cost.roofline import Rates
from projector.cost.routes import Route, routes
from projector.cost.stages import Stages, stages
from projector.graph.columns import Column, Switch
from projector.graph.groups import Degrees, groups
from projector.graph.operator import GroupName
from projector.graph.serving_graph import StepWork, serving_graph
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.plan_batch import PlanBatch
from projector.specs.software import SERVING


@dataclass(frozen=True)
class Slot:
    """One passage through the slowest stage, seconds (columns): compute by kind, communication, idle for launches."""

    compute_s: dict[OperatorKind, Column]
    communication: dict[Axis, AxisTimes]
    launch_idle_s: Column

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
    ) -> "Engine":
        """Engines of every plan; GEMMs run in `math_dtype`."""
        degrees = Degrees.of(batch)
        one = np.ones(len(batch))
        return cls(
            batch=batch,
            model=model,
            math_dtype=math_dtype,
            degrees=degrees,
            routes=routes(groups(degrees), cluster, hardware),
            rates=Rates.of(Device.of(hardware), math_dtype),
            stages=stages(model, degrees.pp, one, one, 0 * one),
            contention_frac=hardware.calibration.contention_frac,
            tp_contention_frac=hardware.calibration.tp_contention_frac,
        )

    def slot(self, work: StepWork, launches: Switch) -> Slot:
        """One passage of `work` through the slowest stage; `launches`: the host launches every kernel."""
        operators = serving_graph(self.batch, self.model, self.math_dtype, work)
        ledger = Ledger.of(operators, self.rates, self.routes)
        zero = np.zeros(len(self.batch))
        on_middle, on_last = (
            self._slot(ledger.on(stage, zero), launches) for stage in (self.stages.middle, self.stages.last)
        )
        last_is_slowest = on_last.length_s > on_middle.length_s
        return self._slot(ledger.on(self.stages.middle.where(last_is_slowest, self.stages.last), zero), launches)

    def _slot(self, times: StageTimes, launches: Switch) -> Slot:
        zero = np.zeros(len(self.batch))
        off = np.zeros(len(self.batch), dtype=np.bool_)
        switches = Switches(
            grad_reduce=off,
            param_gather=off,
            tp=self.batch.overlap_tp.astype(bool),
            ring=off,
            interleaved=off,
            tp_gradients=off,
            expert=SERVING.expert_overlap + zero,
            contention_frac=self.contention_frac,
            hiding_frac=SERVING.hiding_frac,
            tp_contention_frac=self.tp_contention_frac,
        )
        slot = Slot(
            compute_s={kind: times.compute("forward", kind=kind) for kind in times.kinds()},
            communication=micro_batch_communication(times, switches).by_axis,
            launch_idle_s=zero,
        )
        host_s = launches * times.launched("forward") * self.rates.kernel_launch_s
        return Slot(slot.compute_s, slot.communication, np.maximum(host_s - slot.length_s, 0.0))
