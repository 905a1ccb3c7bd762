"""Trace: one device's events as NumPy columns in integer nanoseconds, and what their rows refer to."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from traces.rules.kernel_rules import BUILT_IN, KernelRules

if TYPE_CHECKING:
    from traces.xplane.profile import DeviceProfile

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
T = TypeVar("T")

ABSENT = -1
"""Marks a stream, device, correlation or external id the trace does not state."""

NOT_STATED = -1
"""In `Trace.stated_kind`: the profile does not say what a device event computes."""
UNKNOWN_WORK = -2
"""In `Trace.stated_kind`: the profile files operators by category and has none for this one; names decide nothing."""


class Category(IntEnum):
    """What an event is. Only these are kept as rows; everything else is counted and left out."""

    KERNEL = 0
    MEMCPY = 1
    MEMSET = 2
    CPU_OP = 3
    ANNOTATION = 4
    DEVICE_ANNOTATION = 5
    RUNTIME = 6


DEVICE_CATEGORIES = (Category.KERNEL, Category.MEMCPY, Category.MEMSET)


def moved(by_row: Mapping[int, T], place: Ints) -> dict[int, T]:
    """Entries by their new rows, `place[row]`; those of rows that have none (ABSENT) are left out."""
    rows = place[np.fromiter(by_row, dtype=np.int64, count=len(by_row))].tolist()
    return {row: entry for row, entry in zip(rows, by_row.values(), strict=True) if row != ABSENT}


@dataclass(frozen=True, slots=True)
class CollectiveArgs:
    """What a profiler writes beside one collective. None: not stated.

    ranks           global ranks of the group, in its order; () where the profiler shortened the list
    rank_start, rank_stride   the first of them and how far they are apart, where evenly
    sequence        number of the collective in its group, the same on all of its ranks; sends and receives count apart
    source_rank, target_rank   global ranks of a send or receive
    uneven          whether the splits differ in size: an all-to-all of which ranks send different amounts
    """

    name: str
    group: str = ""
    group_description: str = ""
    group_size: int | None = None
    ranks: tuple[int, ...] = ()
    dtype: str = ""
    in_elements: int | None = None
    out_elements: int | None = None
    rank_start: int | None = None
    rank_stride: int | None = None
    sequence: int | None = None
    source_rank: int | None = None
    target_rank: int | None = None
    uneven: bool | None = None


@dataclass(frozen=True, slots=True)
class OpInputs:
    """Shapes, element types and literal values of an operator's inputs, in order; () and '' where an input has none.

    strides   elements between neighbours of a dimension, as dims; () where the profiler wrote none
    lists     shapes of the tensors of an input that is a list of tensors, () for any other; the profiler leaves the
              shapes of long lists out (PyTorch: of more than 30 tensors)
    """

    dims: tuple[tuple[int, ...], ...] = ()
    types: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    strides: tuple[tuple[int, ...], ...] = ()
    lists: tuple[tuple[tuple[int, ...], ...], ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """One device as the driver describes it; name may be empty or generic."""

    index: int
    name: str
    memory_bytes: int | None = None
    compute_units: int | None = None
    compute_major: int | None = None
    compute_minor: int | None = None


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """One declared communicator."""

    name: str
    description: str
    size: int
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What the file says outside its events. None: not stated.

    process_id   of the operating system, where all host rows are of one process
    """

    devices: tuple[DeviceProperties, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    backend: str = ""
    groups: tuple[GroupConfig, ...] = ()
    trace_name: str = ""
    base_time_ns: int | None = None
    flags: tuple[str, ...] = ()
    world_size_basis: str = "distributedInfo.world_size"
    devices_basis: str = "deviceProperties"
    framework: str = ""
    process_id: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Events of one device and of the host that drives it, one row an event, sorted by start.

    All columns have one entry a row. start_ns counts from the profiler's own origin.

    start_ns, duration_ns   int64, exact nanoseconds; durations are >= 0
    category                int8, a `Category`
    name_id                 int32, index into `names` (untrusted text)
    stream, device          int64, `ABSENT` where not stated; always ABSENT on host rows
    thread                  int32, host thread (an index with no meaning beyond identity)
    correlation             int64, joins a device event with the runtime call that launched it
    external_id             int64, joins an event with a host operator
    size_bytes              int64, bytes copied; ABSENT elsewhere
    collectives, inputs     row -> arguments, for the rows that have them
    stated_kind             int8, what the profile itself says a device event computes: an index into `naming.KINDS`,
                            NOT_STATED or UNKNOWN_WORK; None where the format has no such thing
    framework_ops           framework operator -> device events made from it, where the profile says (untrusted text)
    record_ids              int64, Kineto's "Record function id" of host operators, ABSENT elsewhere; None where no
                            event states one
    copy_kinds              row -> direction of a copy ("HtoD", "DtoD": untrusted text), for copies whose arguments
                            state it apart from the name
    stated_flop             row -> floating-point operations of a host operator, where the profiler wrote them
    profile                 sums of the device's operators, where the profile has their cost and category
    rules                   what names say: the built-in rules, before them those of whoever runs the service
    """

    format: str
    file: str
    start_ns: Ints
    duration_ns: Ints
    category: NDArray[np.int8]
    name_id: NDArray[np.int32]
    stream: Ints
    device: Ints
    thread: NDArray[np.int32]
    correlation: Ints
    external_id: Ints
    size_bytes: Ints
    names: tuple[str, ...]
    collectives: Mapping[int, CollectiveArgs] = field(default_factory=dict)
    inputs: Mapping[int, OpInputs] = field(default_factory=dict)
    metadata: Metadata = Metadata()
    memory_high_water_bytes: Mapping[int, int] = field(default_factory=dict)
    event_counts: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stated_kind: NDArray[np.int8] | None = None
    framework_ops: Mapping[str, int] = field(default_factory=dict)
    profile: "DeviceProfile | None" = None
    record_ids: Ints | None = None
    copy_kinds: Mapping[int, str] = field(default_factory=dict)
    stated_flop: Mapping[int, int] = field(default_factory=dict)
    rules: KernelRules = BUILT_IN

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def end_ns(self) -> Ints:
        """End of every event."""
        return self.start_ns + self.duration_ns

    def rows(self, *categories: Category) -> Ints:
        """Row numbers of the given categories, in order of start."""
        wanted = np.zeros(len(Category), dtype=np.bool_)
        wanted[[int(category) for category in categories]] = True
        return np.flatnonzero(wanted[self.category])

    @property
    def device_rows(self) -> Ints:
        """Rows of kernels, copies and memsets: what keeps a device busy."""
        return self.rows(*DEVICE_CATEGORIES)

    @property
    def device_index(self) -> int | None:
        """The device this trace is of; None without a device event or where the trace does not say."""
        rows = self.device_rows
        if not len(rows) or self.device[rows[0]] == ABSENT:
            return None
        return int(self.device[rows[0]])

    def name(self, row: int) -> str:
        """Name of one event."""
        return self.names[int(self.name_id[row])]

    def named(self, rows: Ints, mask_of_names: Mask) -> Ints:
        """Those of `rows` whose name is selected by `mask_of_names` (one flag a name)."""
        return rows[mask_of_names[self.name_id[rows]]]

    def take(self, rows: Ints) -> "Trace":
        """The trace reduced to `rows` (ascending): same names and metadata."""
        place = np.full(len(self), ABSENT, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        return replace(
            self,
            start_ns=self.start_ns[rows],
            duration_ns=self.duration_ns[rows],
            category=self.category[rows],
            name_id=self.name_id[rows],
            stream=self.stream[rows],
            device=self.device[rows],
            thread=self.thread[rows],
            correlation=self.correlation[rows],
            external_id=self.external_id[rows],
            size_bytes=self.size_bytes[rows],
            collectives=moved(self.collectives, place),
            inputs=moved(self.inputs, place),
            stated_kind=None if self.stated_kind is None else self.stated_kind[rows],
            record_ids=None if self.record_ids is None else self.record_ids[rows],
            copy_kinds=moved(self.copy_kinds, place),
            stated_flop=moved(self.stated_flop, place),
        )
