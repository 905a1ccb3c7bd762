"""PyTorch Kineto traces: Chrome JSON, plain or gzip, schemas of 2021 to 2026, CUDA and ROCm."""

from projector.errors import EmptyTrace, UnsupportedTrace
from traces.chrome.columns import Columns
from traces.chrome.document import read_document
from traces.chrome.metadata import disbelieved, metadata_of
from traces.content import Content, Limits
from traces.reader import Reader
from traces.readers.jax_chrome import is_jax
from traces.trace import Trace


def claims(content: Content) -> bool:
    """An object with `traceEvents`, or a bare array of events, that the JAX profiler did not write."""
    if is_jax(content):
        return False
    if content.json_start == b"{":
        return content.mentions(b'"traceEvents"')
    return content.json_start == b"[" and content.matches(rb'^\S*\s*\[\s*(\]|\{[^{}]{0,2000}"ph"\s*:)')


def read(content: Content, limits: Limits, *, careful: bool = False) -> tuple[Trace, ...]:
    """Read the events; `careful` forces the event-by-event way that broken JSON takes.

    Raises `EmptyTrace` where no timed operator is in the file, `UnsupportedTrace` where the events are of another
    producer, `CorruptTrace`, `TraceTooLarge`.
    """
    document = read_document(content, limits, careful=careful)
    columns = Columns()
    for event in document.events:
        columns.add(event)
    warnings = content.warnings + document.warnings() + disbelieved(document.outer)
    if content.truncated:
        warnings = ("the gzip stream ends early; what was left of the file was read", *warnings)
    traces = columns.traces(content.file, metadata_of(document.outer), warnings)
    if not any(len(trace) for trace in traces):
        _refuse(content, columns)
    return traces


def _refuse(content: Content, columns: Columns) -> None:
    timed = columns.counts.total() - sum(columns.counts[kind] for kind in ("metadata", "instant", "flow", "counter"))
    if timed and not columns.kept:
        raise UnsupportedTrace(
            f"{content.file} is Chrome trace JSON whose events are not PyTorch's "
            f"(categories: {', '.join(sorted(columns.counts)[:6])})",
            hint="export the trace with torch.profiler",
        )
    raise EmptyTrace(
        f"{content.file} holds no timed operator ({columns.counts.total():,} events of other kinds or unusable times)",
        hint="profile at least one whole step, with CPU and device activities",
    )


READER = Reader("kineto", "PyTorch Kineto (Chrome JSON)", claims, read)
