"""The document `shardwise summarise` writes and the service takes in place of a trace.

    {"shardwise_summary": 1, "redacted": false, "summary": {... a TraceSummary ...}}

It comes from outside like a trace does, so nothing in it is believed before it was checked: the schema, and the sums
that hold for every summary this package makes.
"""

from typing import Final, Literal

import msgspec
from pydantic import Field, ValidationError

from projector.errors import CorruptTrace, TraceTooLarge, UnsupportedTrace
from projector.specs.record import Record
from traces.content import Content
from traces.stored.contradictions import contradictions
from traces.stored.redact import is_redacted, redact
from traces.summary_types import TraceSummary

VERSION: Final = 1
MOST_BYTES: Final = 64 << 20
_MARK: Final = b'"shardwise_summary"'


class SummaryDocument(Record):
    """A stored summary."""

    shardwise_summary: Literal[1] = 1
    redacted: bool = Field(description="every foreign word was replaced by a pseudonym")
    summary: TraceSummary


def document_of(summary: TraceSummary, *, redacted: bool) -> SummaryDocument:
    """The document of a summary, redacted on request; one whose names are pseudonyms already says so."""
    redacted = redacted or is_redacted(summary)
    return SummaryDocument(redacted=redacted, summary=redact(summary) if redacted else summary)


def is_summary(content: Content) -> bool:
    """Whether the content claims to be a stored summary."""
    return content.json_start == b"{" and _MARK in content.head[:256]


def read_summary_document(content: Content) -> SummaryDocument:
    """The stored summary.

    Raises `TraceTooLarge`, `UnsupportedTrace` (written by another version), `CorruptTrace` (broken JSON, unknown keys,
    or figures that contradict each other).
    """
    data = _all_of(content)
    _check_version(content.file, data)
    try:
        document = SummaryDocument.model_validate_json(data)
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CorruptTrace(
            f"{content.file} is no valid summary: {where}: {first['msg']}",
            hint="write it again with shardwise summarise, in the version the service has",
        ) from fault
    for title, wrong in contradictions(document.summary):
        raise CorruptTrace(f"{content.file} contradicts itself: {title}: {wrong}", hint="summarise the trace again")
    return document


def _all_of(content: Content) -> bytes:
    """The bytes of the file, read no further than a summary can be long."""
    data = bytearray()
    for block in content.blocks():
        data += block
        if len(data) > MOST_BYTES:
            raise TraceTooLarge(
                f"{content.file} has at least {len(data):,} bytes, {len(data) - MOST_BYTES:,} over what it may have",
                hint=f"a summary of more than {MOST_BYTES >> 20} MiB is none of ours; give the trace",
            )
    return bytes(data)


def _check_version(file: str, data: bytes) -> None:
    try:
        stated = msgspec.json.decode(data, type=_Version).shardwise_summary
    except (msgspec.DecodeError, RecursionError) as fault:
        raise CorruptTrace(f"{file} is a broken summary: {fault}", hint="copy the file again") from fault
    if stated != VERSION:
        raise UnsupportedTrace(
            f"{file} is a summary of version {stated!r}, this program reads version {VERSION}",
            hint="summarise the trace with the same version of shardwise",
        )


class _Version(msgspec.Struct):
    shardwise_summary: int | str | None = None
