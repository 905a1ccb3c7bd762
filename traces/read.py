"""Trace files to Traces: open under limits, recognise the format by content, hand over to its reader."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from projector.errors import InvalidDescription, UnknownTraceFormat
from traces.content import Content, Limits, open_content
from traces.reader import Reader, all_readers
from traces.trace import Trace
from traces.xplane.prefer import without_viewer_copies

DEFAULT_LIMITS = Limits()

__all__ = ["DEFAULT_LIMITS", "Limits", "find_reader", "read_trace", "read_traces"]


def read_traces(
    paths: Sequence[Path], *, limits: Limits = DEFAULT_LIMITS, names: Sequence[str] | None = None
) -> tuple[Trace, ...]:
    """Read the files of one job, one Trace for each file and device, in the order given.

    names: what to call each file in errors and answers; the names in their paths where None.
    A file with the very bytes of an earlier one counts once, with a warning.

    Of a JAX profile given as protobuf and as Chrome JSON only the protobuf counts, with a warning.
    Raises `InvalidDescription` (no path, no such file) and the `TraceError`s: `UnknownTraceFormat`, `UnsupportedTrace`
    (recognised, not read yet), `EmptyTrace`, `CorruptTrace`, `TraceTooLarge`.
    """
    if not paths:
        raise InvalidDescription("no trace file was given", hint="name at least one profiler trace")
    titles = [path.name for path in paths] if names is None else list(names)
    assert len(titles) == len(paths), "one name a path"
    traces: list[Trace] = []
    seen: dict[bytes, str] = {}
    for path, title in zip(paths, titles, strict=True):
        content = open_content(path, limits, title)
        digest = hashlib.sha256(content.data).digest() if len(paths) > 1 else b""
        if digest in seen:
            told = f"{title} has the same content as {seen[digest]}: counted once"
            traces[-1] = replace(traces[-1], warnings=(*traces[-1].warnings, told))
            continue
        seen[digest] = title
        traces += find_reader(content).read(content, limits)
    return without_viewer_copies(traces)


def read_trace(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> tuple[Trace, ...]:
    """Read one file; same errors as `read_traces`."""
    content = open_content(path, limits)
    return find_reader(content).read(content, limits)


def find_reader(content: Content) -> Reader:
    """The reader that claims the content, or `UnknownTraceFormat`."""
    claimants = [reader for reader in all_readers() if reader.claims(content)]
    if not claimants:
        known = ", ".join(reader.title for reader in all_readers())
        raise UnknownTraceFormat(
            f"{content.file} is no trace format that is known here (it starts with {content.head[:16]!r})",
            hint=f"recognised: {known}",
        )
    assert len(claimants) == 1, f"{content.file} is claimed by {[reader.name for reader in claimants]}"
    return claimants[0]
