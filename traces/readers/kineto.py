"""PyTorch Kineto traces: Chrome JSON, plain or gzip, schemas of 2021 to 2026, CUDA and ROCm."""

from collections import Counter

from projector.errors import EmptyTrace, UnsupportedTrace
from traces.chrome.closing import traces_of
from traces.chrome.metadata import disbelieved, metadata_of
from traces.chrome.stream import CHUNK_BYTES, Stream
from traces.chrome.tables import Tables
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


def read(
    content: Content, limits: Limits, *, careful: bool = False, chunk_bytes: int = CHUNK_BYTES
) -> tuple[Trace, ...]:
    """Read the events.

    Two arguments choose the way and change nothing of the result: `careful` forces the event-by-event way that broken
    JSON takes, chunk_bytes is how much of the file is dealt with at once.

    Raises `EmptyTrace` where no timed operator is in the file, `UnsupportedTrace` where the events are of another
    producer, `CorruptTrace`, `TraceTooLarge`.
    """
    stream = Stream(content, limits, chunk_bytes=chunk_bytes)
    tables = Tables()
    for batch in stream.batches(careful=careful):
        tables.add(batch)
    document = stream.document
    warnings = content.warnings + document.mended.warnings() + _odd(tables) + disbelieved(document.outer)
    if content.truncated:
        warnings = ("the gzip stream ends early; what was left of the file was read", *warnings)
    counts, kept = tables.counts, tables.kept
    traces = traces_of(tables, content.file, metadata_of(document.outer), warnings, limits)
    if not any(len(trace) for trace in traces):
        _refuse(content, counts, kept)
    return traces


def _odd(tables: Tables) -> tuple[str, ...]:
    if not tables.odd:
        return ()
    return (f"{tables.odd:,} events had a value of an unexpected type and were read leniently",)


def _refuse(content: Content, counts: Counter[str], kept: int) -> None:
    timed = counts.total() - sum(counts[kind] for kind in ("metadata", "instant", "flow", "counter"))
    if timed and not kept:
        raise UnsupportedTrace(
            f"{content.file} is Chrome trace JSON whose events are not PyTorch's "
            f"(categories: {', '.join(sorted(counts)[:6])})",
            hint="export the trace with torch.profiler",
        )
    raise EmptyTrace(
        f"{content.file} holds no timed operator ({counts.total():,} events of other kinds or unusable times)",
        hint="profile at least one whole step, with CPU and device activities",
    )


READER = Reader("kineto", "PyTorch Kineto (Chrome JSON)", claims, read)
