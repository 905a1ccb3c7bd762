"""PyTorch execution traces (ExecutionTraceObserver): recognised, not read; they hold no durations."""

from traces.content import Content, Limits
from traces.reader import Reader, unsupported
from traces.trace import Trace


def claims(content: Content) -> bool:
    """A JSON object with a schema and nodes."""
    return (
        content.json_start == b"{"
        and content.matches(rb'"schema"\s*:\s*"')
        and content.matches(rb'"nodes"\s*:')
        and not content.mentions(b'"traceEvents"')
    )


def read(content: Content, _limits: Limits) -> tuple[Trace, ...]:
    """Always `UnsupportedTrace`."""
    unsupported(content, "a PyTorch execution trace", "give the Kineto trace of the same run: it has the durations")


READER = Reader("pytorch_et", "PyTorch execution trace (JSON)", claims, read)
