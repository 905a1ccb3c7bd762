"""TraceSummary: what one job's traces say, in integer nanoseconds; the record every later stage reads.

Sets of intervals are unions on the device's time line:
  compute    kernels that are neither communication nor copies (unclassified kernels are part of it)
  communication, copy (memcpy and memset)
  exposed_communication = communication minus compute
  exposed_copy          = copy minus (compute or communication)
  idle                  = window minus everything
Identity, exact: compute + exposed_communication + exposed_copy + idle == window.
"""

from typing import Literal

from pydantic import Field

from projector.breakdown import Axis, OperatorKind
from projector.specs.record import Record
from traces.implied_types import Implied, Inferred, ModelShapes, ProcessGroup
from traces.job_types import ClockOffset, GroupSkew, JobRanks, LinkRate, RankLateness
from traces.measure_types import ClassWork, CopyTime, IdleSplit, PipelineBubble, ServingPhase, StepRole, StepStatistics
from traces.pattern_types import PatternKind, PatternUnknown, SequencePattern
from traces.xplane.megascale_types import MegascaleTransfer
from traces.xplane.op_table import Kpis, OpRow

__all__ = [
    "ClassificationTime",
    "ClassifiedBy",
    "CollectiveTime",
    "EventClass",
    "Implied",
    "Inferred",
    "KernelClassTime",
    "KernelTime",
    "ModelShapes",
    "PatternKind",
    "PatternUnknown",
    "ProcessGroup",
    "RankSummary",
    "SequencePattern",
    "StepShares",
    "TimeShares",
    "TraceSummary",
    "Window",
]

ClassifiedBy = Literal["collective_args", "enclosing_op", "name_rule", "category", "stream_hint", "unclassified"]
EventClass = Literal["compute", "communication", "copy"]


class TimeShares(Record):
    """The window identity, shared by ranks, steps and the aggregate."""

    window_ns: int = Field(ge=0)
    compute_ns: int = Field(ge=0)
    communication_ns: int = Field(ge=0)
    exposed_communication_ns: int = Field(ge=0)
    copy_ns: int = Field(ge=0)
    exposed_copy_ns: int = Field(ge=0)
    idle_ns: int = Field(ge=0)
    unclassified_ns: int = Field(ge=0, description="union of kernels no rule named; a part of compute")


class StepShares(TimeShares):
    """One profiler step or iteration marker."""

    name: str
    start_ns: int
    end_ns: int
    role: StepRole = "measured"


class Window(Record):
    """What was measured: a name a reader understands, and whether device events define it."""

    name: str = Field(description="e.g. 'whole file', 'ProfilerStep#4 to #6'")
    start_ns: int
    end_ns: int
    device: bool = Field(description="False: no device event in the file, host operators define the window")


class KernelClassTime(Record):
    """Kernels of one class: count and summed time (sum, not union: overlapping kernels count twice)."""

    kind: OperatorKind
    count: int
    total_ns: int


class KernelTime(Record):
    """One kernel name, the costliest first."""

    name: str = Field(description="as the profiler wrote it; untrusted text")
    kind: OperatorKind | Literal["communication", "copy"]
    count: int
    total_ns: int
    rule: str = Field(
        "",
        description="what decided the class of most of it: 'collective_args', 'enclosing_op aten::mm', "
        "'name rule moe/expert' (traces/rules), 'own rule ...' of whoever runs the service; untrusted text",
    )


class CollectiveTime(Record):
    """One (collective, process group) pair. bytes and bus bandwidth only where the trace states sizes."""

    collective: str
    group: str = Field(description="process group name, or '' where the trace does not say")
    group_size: int | None
    axis: Axis = Field(description="parallelism axis the group serves, 'unknown' where not inferable")
    count: int
    total_ns: int = Field(description="sum of durations")
    exposed_ns: int = Field(description="part of this pair's union that no compute covers")
    message_bytes: int | None = None
    on_compute_stream_ns: int = Field(0, description="part of total_ns on a stream that also computes: cannot overlap")
    bus_bytes_per_s: float | None = Field(None, description="median over its messages; see LinkRate")


class ClassificationTime(Record):
    """How events got their class: device time a rule decided (sum of durations)."""

    event_class: EventClass
    by: ClassifiedBy
    count: int
    total_ns: int


class RankSummary(TimeShares):
    """One rank (one device of one file)."""

    rank: int | None
    device: int | None
    file: str
    window: Window
    kernel_count: int
    launch_bound_frac: float | None = Field(
        None, description="share of idle time of known cause in which a launch came after the device had drained"
    )
    memory_high_water_bytes: int | None = None
    steps: tuple[StepShares, ...] = ()
    step_statistics: StepStatistics | None = None
    idle: IdleSplit | None = Field(None, description="None without device events")
    step_idle: IdleSplit | None = Field(None, description="of the measured steps alone; None where none is marked")
    copies: tuple[CopyTime, ...] = ()
    bubble: PipelineBubble | None = Field(None, description="None without pipeline stages in the trace")
    kernel_classes: tuple[KernelClassTime, ...] = ()
    collectives: tuple[CollectiveTime, ...] = ()


class TraceSummary(TimeShares):
    """A job: the aggregate over its ranks (sums of the ranks' figures) and each rank's own.

    With one rank the aggregate equals it. `warnings` lists everything dropped, repaired or assumed while reading.
    """

    format: str
    files: tuple[str, ...]
    window: Window
    ranks: tuple[RankSummary, ...]
    kernel_classes: tuple[KernelClassTime, ...] = ()
    top_kernels: tuple[KernelTime, ...] = ()
    collectives: tuple[CollectiveTime, ...] = ()
    classification: tuple[ClassificationTime, ...] = ()
    op_table: tuple[OpRow, ...] = Field(
        (), description="operators with their cost, the costliest first, unidentified ones last; XLA profiles only"
    )
    kpis: Kpis | None = Field(None, description="headline figures of an XLA profile; None for other traces")
    megascale: tuple[MegascaleTransfer, ...] = Field(
        (), description="transfers between TPU slices, the one that stalls the devices most first; XLA profiles only"
    )
    launch_bound_frac: float | None = None
    idle: IdleSplit | None = None
    copies: tuple[CopyTime, ...] = ()
    serving_phases: tuple[ServingPhase, ...] = ()
    work: tuple[ClassWork, ...] = Field((), description="work and roofline position by kind, the costliest first")
    patterns: tuple[SequencePattern, ...] = Field(
        (), description="sequences of events that cost time, the one that could gain most first"
    )
    patterns_unknown: tuple[PatternUnknown, ...] = Field(
        (), description="patterns the trace could not be searched for, and what it lacks"
    )
    job: JobRanks = JobRanks()
    clocks: tuple[ClockOffset, ...] = ()
    skew: tuple[GroupSkew, ...] = ()
    lateness: tuple[RankLateness, ...] = ()
    links: tuple[LinkRate, ...] = ()
    implied: Implied = Implied()
    event_counts: dict[str, int] = Field(default_factory=dict, description="events by category, host and device")
    warnings: tuple[str, ...] = ()
