"""Job: what is planned, after the request and the trace were put together; every value has a recorded origin."""

from typing import Literal

from pydantic import Field

from agents.findings import Assumption, Evidence
from agents.frameworks import framework_called, stack_of
from agents.planning.goal import Goal
from agents.planning.measured_links import MeasuredLink, with_measured_links
from projector import catalog
from projector.anchor.anchor import Anchor
from projector.breakdown import TimeBreakdown
from projector.memory_limit import with_memory_limit
from projector.ranking.task import Stack
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Objective, Slo, named_objective
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.record import Record
from projector.specs.software import CURRENT, Software
from projector.specs.workload import WorkloadSpec

Mode = Literal["absolute", "relative", "none"]


class Job(Record):
    """A resolved request.

    architecture None: the model is unknown. chip_known False: the catalogue lacks the chip, `cluster.chip` is then its
    name as the profiler wrote it. current None: no layout is known. baseline: the layout of a trace from another number
    of devices, scaled to these. measured None: no trace, or one of another machine.
    confidences: how sure each inferred value is, 0 to 1. not_plannable: why nothing can be proposed.
    """

    phase: Phase
    workload: WorkloadSpec
    architecture: ModelArchitecture | None
    cluster: ClusterSpec
    chip_known: bool
    current: ParallelismPlan | None
    current_source: Literal["stated", "inferred", "assumed", "none"]
    baseline: ParallelismPlan | None = None
    measured: TimeBreakdown | None
    traced: bool = Field(description="whether a trace was given")
    objective: str
    goal: Goal = "best"
    framework: str | None = Field(None, description="the training stack, by its name in `agents.frameworks`")
    slo: Slo
    constraints: Constraints
    compare: tuple[str, ...] = Field(description="ids of the chips to compare on")
    notes_per_search: int | None = Field(None, description="notes a question brings; None: as many as planning takes")
    measured_links: tuple[MeasuredLink, ...] = Field((), description="degraded links the own chip is projected with")
    anchor: Anchor | None = Field(None, description="the measured step that corrects projections; None: nothing does")
    assumptions: tuple[Assumption, ...]
    evidence: tuple[Evidence, ...]
    warnings: tuple[str, ...]
    confidences: dict[str, float]
    not_plannable: str | None = None

    @property
    def hardware(self) -> HardwareProfile | None:
        """The own chip, with the links the trace shows degraded and the memory that plans may take; None when the
        catalogue lacks it.
        """
        if not self.chip_known:
            return None
        return with_memory_limit(
            with_measured_links(catalog.chip(self.cluster.chip), self.measured_links), self.constraints
        )

    @property
    def devices(self) -> int:
        """Devices every plan must occupy."""
        hardware = self.hardware
        return self.cluster.chips * (hardware.devices_per_chip if hardware else 1)

    @property
    def mode(self) -> Mode:
        """absolute: model and chip are known. relative: the measured step is scaled. none: neither."""
        if self.architecture is not None and self.chip_known:
            return "absolute"
        return "relative" if self.measured is not None and self.current is not None else "none"

    @property
    def stack(self) -> Stack | None:
        """What the named training stack bounds; None: any current one."""
        return stack_of(framework_called(self.framework)) if self.framework is not None else None

    @property
    def software(self) -> Software:
        """Kernels and habits that training is projected with."""
        return framework_called(self.framework).software if self.framework is not None else CURRENT

    @property
    def target(self) -> Objective:
        """The objective as a record."""
        return named_objective(self.objective)
