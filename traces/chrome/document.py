"""Chrome trace JSON (an object with `traceEvents`, or a bare array of events) to events and outer metadata.

Two ways to the same events. The fast one splits the list with a JSON parser and decodes each event into a typed record.
Where the text is no valid JSON, the careful one (`traces.chrome.mending`) goes event by event, repairs what it can and
counts what it cannot. An event of valid JSON with an odd type in a field is read leniently on either way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Raw

from projector.errors import CorruptTrace, TraceTooLarge
from traces.chrome.events import Event, lenient_event, lenient_json, strict_event
from traces.chrome.mending import Mended, decode_text, events_start, mended_event, mended_events
from traces.chrome.nesting import check_nesting
from traces.content import Content, Limits

_BOM: Final = b"\xef\xbb\xbf"


class _Outer(msgspec.Struct):
    """The outer object; keys that nobody asks for are skipped by the parser."""

    events: list[Raw] = msgspec.field(name="traceEvents", default_factory=list)
    schemaVersion: Raw = Raw()  # noqa: N815 (the profiler's spelling is the key)
    deviceProperties: Raw = Raw()  # noqa: N815
    distributedInfo: Raw = Raw()  # noqa: N815
    traceName: Raw = Raw()  # noqa: N815
    baseTimeNanoseconds: Raw = Raw()  # noqa: N815
    record_shapes: Raw = Raw()
    with_stack: Raw = Raw()
    with_flops: Raw = Raw()
    with_modules: Raw = Raw()
    profile_memory: Raw = Raw()


_OUTER_KEYS: Final = tuple(info.name for info in msgspec.structs.fields(_Outer) if info.name != "events")


@dataclass(slots=True)
class Document:
    """Events of one file, to be consumed once, and the outer keys. `warnings` is complete only after the events are."""

    events: Iterator[Event]
    outer: dict[str, Any] = field(default_factory=dict)
    mended: Mended = field(default_factory=Mended)
    odd_types: int = 0

    def warnings(self) -> tuple[str, ...]:
        """What was repaired, dropped or read leniently so far."""
        told = self.mended.warnings()
        if self.odd_types:
            told += (f"{self.odd_types:,} events had a value of an unexpected type and were read leniently",)
        return told


def read_document(content: Content, limits: Limits, *, careful: bool = False) -> Document:
    """Split the content into events; `careful` goes event by event even where the JSON is valid.

    Raises `CorruptTrace` where no list of events is found, `TraceTooLarge` for max_events and max_depth.
    """
    if not careful and not content.truncated:
        try:
            return _fast(content, limits)
        except msgspec.DecodeError:
            pass
        except RecursionError as fault:
            raise TraceTooLarge(f"{content.file} is nested too deeply to be parsed", hint="limit max_depth") from fault
    return _careful(content, limits)


def _fast(content: Content, limits: Limits) -> Document:
    view = memoryview(content.data)
    if content.head.startswith(_BOM):
        view = view[len(_BOM) :]
    if content.json_start == b"[":
        raws, outer = msgspec.json.decode(view, type=list[Raw]), {}
    else:
        whole = msgspec.json.decode(view, type=_Outer)
        raws = whole.events
        outer = {key: _value(bytes(getattr(whole, key)), limits) for key in _OUTER_KEYS if bytes(getattr(whole, key))}
    limits.check("max_events", len(raws), f"number of events in {content.file}")
    document = Document(iter(()), outer)
    document.events = _decoded(raws, limits, document)
    return document


def _decoded(raws: list[Raw], limits: Limits, document: Document) -> Iterator[Event]:
    for raw in raws:
        text = bytes(raw)
        check_nesting(text, limits)
        try:
            yield strict_event(text)
        except msgspec.DecodeError as fault:
            document.odd_types += isinstance(fault, msgspec.ValidationError)
            fields = mended_event(decode_text(text, document.mended), document.mended)
            if fields is not None:
                yield lenient_event(fields)


def _careful(content: Content, limits: Limits) -> Document:
    document = Document(iter(()))
    text = decode_text(content.data, document.mended)
    start = events_start(text)
    if start is None:
        raise CorruptTrace(
            f"{content.file} is broken JSON without a list of events", hint="the profiler may have been killed early"
        )
    document.outer = _outer_of(text[:start] + "]}")
    document.events = _careful_events(text, start, content, limits, document)
    return document


def _careful_events(text: str, start: int, content: Content, limits: Limits, document: Document) -> Iterator[Event]:
    """Pass the events on, hold max_events, and read the outer keys that stand behind the list."""
    mended, count = document.mended, 0
    for fields in mended_events(text, start, mended, limits):
        count += 1
        if count > limits.max_events:
            limits.check("max_events", count, f"number of events in {content.file}")
        yield lenient_event(fields)
    if not count and (mended.truncated or mended.dropped):
        raise CorruptTrace(f"{content.file} breaks off before its first whole event", hint="copy the file again")
    behind = mended.rest.lstrip().removeprefix(",")
    if behind.strip(" \r\n\t}"):
        document.outer |= _outer_of("{" + behind)


def _outer_of(text: str) -> dict[str, Any]:
    """Known outer keys of an object; none of them where it cannot be parsed."""
    try:
        parsed, _ = lenient_json.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return {}
    if not isinstance(parsed, dict):
        return {}
    return {key: parsed[key] for key in _OUTER_KEYS if key in parsed}


def _value(text: bytes, limits: Limits) -> Any:
    check_nesting(text, limits)
    try:
        return lenient_json.decode(text.decode("utf-8", "replace"))
    except ValueError:
        return None
