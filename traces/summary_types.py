"""TraceSummary: what one job's traces say, in integer nanoseconds; the record every later stage reads.

Sets of intervals are unions on the device's time line:
  compute    kernels that are neither communication nor copies (unclassified kernels are part of it)
  communication, copy (memcpy and memset)
  exposed_communication = communication minus compute
  exposed_copy          = copy minus (compute or communication)
  idle                  = window minus everything
Identity, exact: compute + exposed_communication + exposed_copy + idle == window.
"""

from typing import Generic, Literal, TypeVar

from pydantic import Field

from projector.breakdown import Axis, OperatorKind
from projector.specs.plan import Dtype, Phase
from projector.specs.record import Record
from traces.xplane.op_table import Kpis, OpRow

ClassifiedBy = Literal["collective_args", "enclosing_op", "name_rule", "category", "stream_hint", "unclassified"]
EventClass = Literal["compute", "communication", "copy"]

T = TypeVar("T")


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


class ClassificationTime(Record):
    """How events got their class: device time a rule decided (sum of durations)."""

    event_class: EventClass
    by: ClassifiedBy
    count: int
    total_ns: int


class Inferred(Record, Generic[T]):
    """A value the trace implies, how sure that is (0 to 1), and what it rests on."""

    value: T
    confidence: float = Field(ge=0, le=1)
    basis: str


class ProcessGroup(Record):
    """One communicator the trace declares."""

    name: str
    size: int
    ranks: tuple[int, ...] = ()
    description: str = ""


class ModelShapes(Record):
    """Sizes read off GEMM, embedding and attention shapes; None where the trace does not show them."""

    hidden_size: int | None = None
    layers: int | None = None
    vocab_shard: int | None = Field(None, description="vocabulary rows one rank holds")
    heads_per_rank: int | None = None
    kv_heads_per_rank: int | None = None
    head_dim: int | None = None
    intermediate_shard: int | None = None
    experts: int | None = None
    tokens: int | None = Field(None, description="tokens in one forward pass on this rank")


class Implied(Record):
    """What the trace says about hardware, job and model. None: the trace does not say."""

    chip_name: Inferred[str] | None = Field(None, description="device name as the profiler wrote it")
    devices_per_host: Inferred[int] | None = None
    hbm_bytes: Inferred[int] | None = None
    world_size: Inferred[int] | None = None
    groups: tuple[ProcessGroup, ...] = ()
    tp: Inferred[int] | None = None
    dp: Inferred[int] | None = None
    pp: Inferred[int] | None = None
    ep: Inferred[int] | None = None
    phase: Inferred[Phase] | None = None
    is_transformer_lm: Inferred[bool] | None = None
    shapes: ModelShapes = ModelShapes()
    dtype: Inferred[Dtype] | None = Field(None, description="format the matrix products run in")
    weight_dtype: Inferred[Dtype] | None = Field(None, description="format of most weights, where narrower")
    framework: Inferred[str] | None = None


class RankSummary(TimeShares):
    """One rank (one device of one file)."""

    rank: int | None
    device: int | None
    file: str
    window: Window
    kernel_count: int
    launch_bound_frac: float | None = Field(
        None, description="share of idle time before kernels whose launch came after the device had drained"
    )
    memory_high_water_bytes: int | None = None
    steps: tuple[StepShares, ...] = ()


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
    launch_bound_frac: float | None = None
    implied: Implied = Implied()
    event_counts: dict[str, int] = Field(default_factory=dict, description="events by category, host and device")
    warnings: tuple[str, ...] = ()
