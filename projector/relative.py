"""Projection without a model: the measured step, scaled by how each part of it depends on the mesh.

Nothing absolute is known but the measurement, so a projection here is a time with a range, never a throughput, an MFU
or a memory figure. Memory is None with a direction. Formulas stand in `scaling`: compute in `work`, bytes an axis in
`traffic`, exposed and hidden time in `communication`, bubble and launches in `idle`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import Axis, AxisTime, Interval, KindTime, Projection, TimeBreakdown
from projector.errors import InvalidDescription
from projector.scaling.communication import Communication, axis_of, scale_communication
from projector.scaling.idle import Idle, scale_idle
from projector.scaling.memory import memory_direction
from projector.scaling.term import RESOLUTION_S, Column, Move, Term
from projector.scaling.work import compute_factor
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Rejection, Slo, find_objective
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.units import s_to_ms

BASIS = (
    "measured step scaled by the mesh: 6 % of compute and 20 % of traffic for each doubling the layout moves, "
    "and the whole assumed range of whatever the measured plan lacks"
)
"""What the range of a scaled step rests on."""


@dataclass(frozen=True)
class RelativeBatch:
    """Scaled projections as columns of shape [n]; `batch[i]` is the i-th as a record.

    memory_bytes is NaN and `fits` True throughout: no plan is refused for a memory that is unknown. The records say
    fit "unknown" and a direction.
    """

    batch: PlanBatch
    move: Move
    measured: TimeBreakdown
    chip: str
    devices_per_chip: int
    compute: Term
    communication: Communication
    copy_s: Column
    idle: Idle
    memory_direction: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.batch)

    @cached_property
    def step(self) -> Term:
        """Seconds a step with their range; exactly the measured ones for the measured plan."""
        scaled = self.compute + self.communication.exposed + self.idle.total + Term.exact(self.copy_s)
        same = np.full(len(self), self.measured.total_s)
        return Term.exact(same).where(self.move.unchanged, scaled)

    @property
    def step_time_s(self) -> Column:
        """Estimated seconds of a step, shape [n]."""
        return self.step.estimate

    @property
    def memory_bytes(self) -> Column:
        """Unknown: NaN, shape [n]."""
        return np.full(len(self), np.nan)

    @property
    def fits(self) -> NDArray[np.bool_]:
        """True throughout: unknown is no refusal."""
        return np.ones(len(self), dtype=bool)

    def objective(self, name: str) -> Column:
        """step_time_s (training) or itl_ms (serving), shape [n]; InvalidDescription for what needs the model."""
        name = find_objective(name, self.move.current.phase).name
        if name == "step_time_s":
            return self.step_time_s
        if name == "itl_ms":
            return s_to_ms(1.0) * self.step_time_s
        raise InvalidDescription(
            f"objective {name} needs the model, and the model is unknown",
            hint="state workload.model, or use " + ("itl_ms" if self.move.serving else "step_time_s"),
        )

    def slo_misses(self, slo: Slo) -> list[tuple[Rejection, ...]]:
        """No plan misses a budget that is not set. InvalidDescription where one is: it cannot be checked."""
        budgets = {name: limit for name, limit in slo.model_dump().items() if limit is not None}
        if budgets:
            raise InvalidDescription(
                f"{', '.join(budgets)}: a latency budget cannot be checked while the model is unknown",
                hint="state workload.model, or leave the budget out",
            )
        return [() for _ in range(len(self))]

    def __getitem__(self, index: int) -> Projection:
        step = self.step
        plan = self.batch[index]
        return Projection(
            plan=plan,
            chip=self.chip,
            chips=max(1, plan.devices // self.devices_per_chip),
            source="relative",
            step_time_s=float(step.estimate[index]),
            step_time_interval_s=Interval(low=float(step.low[index]), high=float(step.high[index]), basis=BASIS),
            breakdown=self._breakdown(index),
            memory=None,
            memory_direction=str(self.memory_direction[index]),
            assumptions=self._assumptions(index),
        )

    def _breakdown(self, index: int) -> TimeBreakdown:
        if self.move.unchanged[index]:
            return self.measured.model_copy(update={"source": "relative"})
        compute = float(self.compute.estimate[index])
        exposed = float(self.communication.exposed.estimate[index])
        copy, idle = float(self.copy_s[index]), float(self.idle.total.estimate[index])
        kinds = compute / self.measured.compute_s if self.measured.compute_s > RESOLUTION_S else 1.0
        return TimeBreakdown(
            source="relative",
            total_s=compute + exposed + copy + idle,
            compute_s=compute,
            exposed_communication_s=exposed,
            overlapped_communication_s=float(self.communication.hidden_s[index]),
            exposed_copy_s=copy,
            idle_s=idle,
            bubble_s=min(float(self.idle.bubble_s[index]), idle),
            by_kind=tuple(KindTime(kind=kind.kind, time_s=kind.time_s * kinds) for kind in self.measured.by_kind),
            by_axis=self._axes(index),
        )

    def _axes(self, index: int) -> tuple[AxisTime, ...]:
        times = []
        for flow, time in self.communication.flows.items():
            axis: Axis = str(axis_of(flow, self.move.after)[index])  # type: ignore[assignment]
            exposed = float(time.exposed.estimate[index])
            total = exposed + float(time.hidden_s[index])
            if total > 0:
                times.append(AxisTime(axis=axis, total_s=total, exposed_s=exposed))
        return tuple(times)

    def _assumptions(self, index: int) -> tuple[str, ...]:
        if self.move.unchanged[index]:
            return ()
        notes = (*self.communication.notes, *self.idle.notes)
        return (
            "the model is unknown: the measured step is scaled, memory is not projected",
            *(text for text, holds in notes if holds[index]),
        )


def project_relative(
    plan: ParallelismPlan,
    current: ParallelismPlan,
    measured: TimeBreakdown,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
) -> Projection:
    """One plan scaled from the measurement of the current one: a batch of one. Errors as in the batch form."""
    return project_relative_many(PlanBatch.from_plans([plan]), current, measured, cluster, hardware)[0]


def project_relative_many(
    batch: PlanBatch,
    current: ParallelismPlan,
    measured: TimeBreakdown,
    cluster: ClusterSpec,
    hardware: HardwareProfile | None,
) -> RelativeBatch:
    """Plans scaled from the measured breakdown (seconds of one step on one device) of the current plan.

    InvalidDescription for a plan of another phase, and for a training plan of another global batch: step times of
    unequal batches do not compare.
    """
    _require_comparable(batch, current)
    move = Move.of(current, batch)
    factor = compute_factor(move, measured, hardware)
    compute = factor.times(measured.compute_s)
    communication = scale_communication(move, measured, compute, hardware)
    share = move.before.devices / move.after.devices
    return RelativeBatch(
        batch=batch,
        move=move,
        measured=measured,
        chip=cluster.chip if hardware is None else hardware.id,
        devices_per_chip=1 if hardware is None else hardware.devices_per_chip,
        compute=compute,
        communication=communication,
        copy_s=measured.exposed_copy_s * share,
        idle=scale_idle(move, measured, compute + communication.exposed),
        memory_direction=memory_direction(move),
    )


def _require_comparable(batch: PlanBatch, current: ParallelismPlan) -> None:
    foreign = set(np.unique(batch.phase).tolist()) - {current.phase}
    if foreign:
        raise InvalidDescription(f"a {foreign.pop()} plan against a {current.phase} measurement")
    if current.phase == "serving":
        return
    sequences = current.dp * current.micro_batch * current.grad_accum
    batches = batch.dp * batch.micro_batch * batch.grad_accum
    if (batches != sequences).any():
        other = int(batches[batches != sequences][0])
        raise InvalidDescription(
            f"a global batch of {other} sequences against a measured one of {sequences}",
            hint="step times compare only at the same global batch",
        )
