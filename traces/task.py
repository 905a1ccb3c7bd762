"""One piece of a job's reading: a file with what belongs to it, read to Traces, or on to what its ranks say."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from projector.errors import ShardwiseError, TraceError, TraceTooLarge
from traces.content import Limits, open_content
from traces.execution_trace.join import join, match
from traces.execution_trace.read import read_execution_trace
from traces.execution_trace.record import ExecutionTrace
from traces.naming import Evidence
from traces.rank import RankParts, rank_parts
from traces.reader import find_reader
from traces.rules.kernel_rules import BUILT_IN, KernelRules
from traces.sources import Source
from traces.trace import Trace
from traces.xplane.prefer import without_viewer_copies

_MATCHES_FROM = 0.5


@dataclass(frozen=True, slots=True)
class RankTask:
    """Files to be read in one process; picklable.

    files        one file, or one run that was written in two formats
    companions   execution traces, one of which may be of the same run
    rules        what names say
    """

    files: tuple[Source, ...]
    companions: tuple[Source, ...]
    limits: Limits
    evidence: Evidence = "provenance"
    rules: KernelRules = BUILT_IN

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return self.files[0].name

    @property
    def size_bytes(self) -> int:
        """Size on disk."""
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be read, and why."""

    source: Source
    error: ShardwiseError


@dataclass(frozen=True, slots=True)
class TaskTraces:
    """What was read. `joined`: names of the companions that said more of it."""

    traces: tuple[tuple[int, Trace], ...]
    unread: tuple[Unread, ...]
    joined: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskParts:
    """The same without the events; small and picklable."""

    parts: tuple[RankParts, ...]
    unread: tuple[Unread, ...]
    joined: tuple[str, ...]


def read_task(task: RankTask) -> TaskTraces:
    """Traces with the numbers of their files. Raises nothing that a file can be the reason of: that is in `unread`."""
    numbers: dict[str, int] = {file.name: file.number for file in task.files}
    traces: list[Trace] = []
    unread: list[Unread] = []
    for file in task.files:
        try:
            traces += _read(file, task.limits)
        except (ShardwiseError, MemoryError) as fault:
            unread.append(_unread(file, fault))
    kept = without_viewer_copies(traces)
    ruled = kept if task.rules is BUILT_IN else tuple(replace(trace, rules=task.rules) for trace in kept)
    joined, used, refused = _with_companions(ruled, task)
    return TaskTraces(tuple((numbers[trace.file], trace) for trace in joined), (*unread, *refused), used)


def run_task(task: RankTask) -> TaskParts:
    """Read and summarise each rank of the task, alike in this process and in another one."""
    found = read_task(task)
    parts: list[RankParts] = []
    unread = list(found.unread)
    by_number = {file.number: file for file in task.files}
    for number, trace in found.traces:
        try:
            parts.append(rank_parts(trace, task.evidence, number))
        except (ShardwiseError, MemoryError) as fault:
            unread.append(_unread(by_number[number], fault))
    return TaskParts(tuple(parts), tuple(unread), found.joined)


def _unread(file: Source, fault: ShardwiseError | MemoryError) -> Unread:
    if isinstance(fault, ShardwiseError):
        return Unread(file, fault)
    return Unread(file, TraceTooLarge(f"{file.name} does not fit in memory", hint="profile fewer steps"))


def _read(file: Source, limits: Limits) -> tuple[Trace, ...]:
    try:
        content = open_content(file.path, limits, file.name)
        return find_reader(content).read(content, limits)
    except OSError as fault:
        raise TraceError(
            f"{file.name} cannot be read: {fault.strerror or fault}",
            hint="processes on other machines need the files under the same path",
        ) from fault


def _with_companions(
    traces: Sequence[Trace], task: RankTask
) -> tuple[tuple[Trace, ...], tuple[str, ...], tuple[Unread, ...]]:
    """The traces, each joined with the companion that matches it best, which ones were used, and which are broken."""
    companions: list[ExecutionTrace] = []
    unread: list[Unread] = []
    for file in task.companions:
        try:
            companions.append(read_execution_trace(open_content(file.path, task.limits, file.name), task.limits))
        except (ShardwiseError, MemoryError) as fault:
            unread.append(_unread(file, fault))
    joined: list[Trace] = []
    used: dict[str, None] = {}
    for trace in traces:
        likeness = {one.file: match(trace, one) for one in companions}
        best = max(companions, key=lambda one: likeness[one.file], default=None)
        if best is not None and likeness[best.file] >= _MATCHES_FROM:
            trace = join(trace, best)
            used[best.file] = None
        joined.append(trace)
    return tuple(joined), tuple(used), tuple(unread)
