"""PyTorch execution traces (ExecutionTraceObserver): companions of a Kineto trace, without times of their own."""

from projector.errors import TraceWithoutTimes
from traces.chakra.linked import is_linked
from traces.content import Content, Limits
from traces.execution_trace.read import read_execution_trace
from traces.reader import Reader
from traces.trace import Trace


def claims(content: Content) -> bool:
    """A JSON object with a schema and nodes, to which no trace linker added times."""
    return (
        content.json_start == b"{"
        and content.matches(rb'"schema"\s*:\s*"')
        and content.matches(rb'"nodes"\s*:')
        and not content.mentions(b'"traceEvents"')
        and not is_linked(content)
    )


def read(content: Content, limits: Limits) -> tuple[Trace, ...]:
    """Always an error: `TraceWithoutTimes`, or what `read_execution_trace` raises."""
    found = read_execution_trace(content, limits)
    raise TraceWithoutTimes(
        f"{content.file} is a PyTorch execution trace (schema {found.schema[:40] or 'not stated'}): it says what ran, "
        f"{len(found):,} operator calls, and not when",
        hint="give the Kineto trace of the same run with it: it has the times, this one completes its shapes",
    )


READER = Reader("pytorch_et", "PyTorch execution trace (JSON)", claims, read, role="companion")
