"""Anchor: one measured step beside its own projection, the ratios that correct projections of other plans."""

from typing import Literal

from pydantic import Field

from projector.anchor.measured_step import IdleShares, LinkRatio, MeasuredStep
from projector.scaling.term import RESOLUTION_S
from projector.scaling.traffic import Flow
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record

ComputePart = Literal["gemm", "moe", "attention", "other", "compute"]


class ComputeRatio(Record):
    """One part of compute. part "other": every kind without a ratio of its own, "compute": all of it."""

    part: ComputePart
    measured_s: float = Field(ge=0)
    modelled_s: float = Field(gt=0)
    carried: bool

    @property
    def ratio(self) -> float:
        """Measured over modelled."""
        return self.measured_s / self.modelled_s


class FlowRatio(Record):
    """One flow of communication: exposed seconds and all seconds, measured and modelled."""

    flow: Flow
    measured_exposed_s: float = Field(ge=0)
    measured_total_s: float = Field(ge=0)
    modelled_exposed_s: float = Field(ge=0)
    modelled_total_s: float = Field(ge=0)
    carried: bool

    @property
    def ratio(self) -> float | None:
        """Measured over modelled of all of it; None where nothing is modelled."""
        return self.measured_total_s / self.modelled_total_s if self.modelled_total_s > RESOLUTION_S else None


class IdleRatio(Record):
    """Idle seconds, measured and modelled, and the part of each that is pipeline bubble.

    bubble_shown: the trace shows the bubble; otherwise it is taken to be as much longer as the work. bubble_carried:
    False where its ratio is implausible. host_s: modelled seconds to launch a step, None where not modelled.
    host_paced: the host set the pace. pace, modelled_pace: seconds the micro-batches took over host_s, so times slower
    than launches are modelled where the host sets the pace.
    """

    measured_s: float = Field(ge=0)
    modelled_s: float = Field(ge=0)
    bubble_s: float = Field(ge=0)
    modelled_bubble_s: float = Field(ge=0)
    bubble_shown: bool
    bubble_carried: bool = True
    host_s: float | None = None
    host_paced: bool = False
    pace: float = 0.0
    modelled_pace: float = 0.0
    causes: IdleShares | None = None

    @property
    def launch_s(self) -> float:
        """Measured idle seconds outside the bubble."""
        return max(self.measured_s - self.bubble_s, 0.0)

    @property
    def modelled_launch_s(self) -> float:
        """Modelled idle seconds outside the bubble."""
        return max(self.modelled_s - self.modelled_bubble_s, 0.0)


class Parts(Record):
    """The terms of a step that was measured in parts. copy_s: copies that nothing hid."""

    compute: tuple[ComputeRatio, ...]
    flows: tuple[FlowRatio, ...]
    idle: IdleRatio
    busy_s: float = Field(ge=0, description="measured compute and exposed communication")
    copy_s: float = Field(0.0, ge=0)
    modelled_copy_s: float = Field(0.0, ge=0)


class Anchor(Record):
    """What corrects projections: the current plan's measured and modelled step. parts None: only its length is known.

    told: ratios that were refused and what was assumed, a sentence each.
    """

    current: ParallelismPlan
    measured: MeasuredStep
    modelled_s: float = Field(gt=0)
    parts: Parts | None
    told: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """Measured over modelled of the step."""
        return self.measured.total_s / self.modelled_s

    @property
    def links(self) -> tuple[LinkRatio, ...]:
        """Bandwidth that was measured, by tier."""
        return self.measured.links
