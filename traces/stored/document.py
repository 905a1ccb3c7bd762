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
from traces.stored.redact import redact
from traces.summary_types import RankSummary, TimeShares, TraceSummary

VERSION: Final = 1
MOST_BYTES: Final = 64 << 20
_MARK: Final = b'"shardwise_summary"'
_MOST_NS: Final = 2**62
_AMOUNTS: Final = ("count", "_ns", "_ps", "_bytes", "_frac", "_per_s")
_SIGNED: Final = ("start_ns", "end_ns", "offset_ns")


class SummaryDocument(Record):
    """A stored summary."""

    shardwise_summary: Literal[1] = 1
    redacted: bool = Field(description="every foreign word was replaced by a pseudonym")
    summary: TraceSummary


def document_of(summary: TraceSummary, *, redacted: bool) -> SummaryDocument:
    """The document of a summary, redacted on request."""
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
    for title, wrong in _contradictions(document.summary):
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


def _contradictions(summary: TraceSummary) -> list[tuple[str, str]]:
    """(where, what) for every sum that does not hold."""
    if not summary.ranks:
        return [("summary", "it holds no rank")]
    wrong = [("summary", text) for text in (*_of_shares(summary), *_impossible(summary))]
    for rank in summary.ranks:
        title = f"rank {rank.rank}" if rank.rank is not None else "a rank"
        wrong += [(title, text) for text in (*_of_shares(rank), *_of_rank(rank))]
        wrong += [(f"{title}, one step", text) for step in rank.steps for text in _of_shares(step)]
    for name in TimeShares.model_fields:
        total = sum(getattr(rank, name) for rank in summary.ranks)
        if total != getattr(summary, name):
            wrong.append(("summary", f"{name} is {getattr(summary, name)}, its ranks sum to {total}"))
    return wrong


def _of_shares(shares: TimeShares) -> list[str]:
    parts = shares.compute_ns + shares.exposed_communication_ns + shares.exposed_copy_ns + shares.idle_ns
    wrong = []
    if parts != shares.window_ns:
        wrong.append(f"its parts sum to {parts} ns, its window is {shares.window_ns} ns")
    if shares.exposed_communication_ns > shares.communication_ns or shares.exposed_copy_ns > shares.copy_ns:
        wrong.append("more is exposed than there is")
    if shares.unclassified_ns > shares.compute_ns:
        wrong.append("more is unclassified than is compute")
    if shares.window_ns >= _MOST_NS:
        wrong.append(f"a window of {shares.window_ns} ns is beyond any trace")
    return wrong


def _of_rank(rank: RankSummary) -> list[str]:
    wrong = []
    length = rank.window.end_ns - rank.window.start_ns
    if length != rank.window_ns:
        wrong.append(
            f"its window is from {rank.window.start_ns} to {rank.window.end_ns} ns and {rank.window_ns} ns long"
        )
    if rank.idle is not None:
        parts = rank.idle.host_bound_ns + rank.idle.launch_gap_ns + rank.idle.dependency_ns + rank.idle.unknown_ns
        if parts != rank.idle_ns:
            wrong.append(f"its idle time splits into {parts} ns, it has {rank.idle_ns} ns")
    return wrong


def _impossible(record: Record) -> list[str]:
    """Counts, times, sizes and shares below zero in the record and in those it holds, and a share of idle above one."""
    wrong: list[str] = []
    for name, value in record:
        if isinstance(value, Record):
            wrong += _impossible(value)
        elif isinstance(value, tuple):
            wrong += [text for one in value if isinstance(one, Record) for text in _impossible(one)]
        elif isinstance(value, (int, float)) and name not in _SIGNED and name.endswith(_AMOUNTS):
            most = 1 if name == "launch_bound_frac" else value
            wrong += [] if 0 <= value <= most else [f"{name} is {value}"]
    return wrong
