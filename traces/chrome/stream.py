"""Chrome trace JSON (an object with `traceEvents`, or a bare array of events) to batches of events and outer metadata.

The file comes in chunks. The list of events is cut into stretches between two events, wherever the text looks like it,
and each stretch is decoded by `traces.chrome.lanes`, which proves the cut right or refuses it: as JSON, whole objects
with commas between them can be read in one way only. A stretch that is refused (its JSON is broken, the list ends in
it, or the cut was wrong) goes event by event through `traces.chrome.mending`; then the stream goes on as before. Memory
does not grow with the file.
"""

import re
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Raw

from projector.errors import CorruptTrace
from traces.chrome.fields import lenient_json
from traces.chrome.lanes import Batch, Lanes, third_lane
from traces.chrome.mending import Mended, Source, at_end, check_piece, decode_text, mended_events
from traces.chrome.nesting import check_nesting
from traces.content import Content
from traces.limits import Limits

CHUNK_BYTES: Final = 1 << 18

_BOM: Final = b"\xef\xbb\xbf"
_EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*+:\s*+\[')
_ARRAY: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*+\[")
_BOUNDARY: Final = re.compile(rb'(?<!\s)\s*+\}\s*+(,)\s*+\{\s*+"[^"\\]{1,40}"')
_LONGEST_BOUNDARY: Final = 4_096
_NEAR_END: Final = 1 << 14
_KEYS_TRIED: Final = 8
_HEADER_BYTES: Final = 1 << 20
_MENDED_AT_ONCE: Final = 4_096
_OUTER_KEYS: Final = (
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "traceName",
    "baseTimeNanoseconds",
    "record_shapes",
    "with_stack",
    "with_flops",
    "with_modules",
    "profile_memory",
)

_object: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_list: Final = msgspec.json.Decoder(list[Raw]).decode


@dataclass(slots=True)
class Document:
    """What a file says besides its events; complete once they are consumed."""

    outer: dict[str, Any] = field(default_factory=dict)
    mended: Mended = field(default_factory=Mended)
    events: int = 0


class Stream:
    """One pass over the events of a file; `document` tells the rest.

    chunk_bytes: how much of the file is dealt with at once; of no influence on the result.
    """

    def __init__(self, content: Content, limits: Limits, *, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.document = Document()
        self._content = content
        self._limits = limits
        self._chunks = _chunks(content.blocks(), chunk_bytes)
        self._lanes = Lanes(limits)
        self._boundary = b""
        self._comma_at = 0

    def batches(self, *, careful: bool = False) -> Iterator[Batch]:
        """All events, in order; `careful` goes event by event even where the JSON is valid.

        Raises `CorruptTrace` where no list of events is found, `TraceTooLarge` for max_events and max_depth.
        """
        rest: bytes | None = self._behind_header()
        while rest is not None:
            rest = yield from self._mended(rest) if careful else self._stretches(rest)
        mended = self.document.mended
        if not self.document.events and (mended.truncated or mended.dropped):
            raise CorruptTrace(
                f"{self._content.file} breaks off before its first whole event", hint="copy the file again"
            )

    def _behind_header(self) -> bytes:
        """Read the outer keys before the list of events; what is read of the list is given back."""
        buffer = bytearray()
        searched = 0
        for chunk in self._chunks:
            buffer += chunk
            if self._content.json_start == b"[":
                bracket = _ARRAY.match(buffer)
                start = bracket and bracket.end()
            else:
                start = self._list_key(buffer, searched, decide=len(buffer) >= _HEADER_BYTES)
            if start is not None:
                return bytes(buffer[start:])
            check_piece(len(buffer))
            searched = max(0, len(buffer) - _LONGEST_BOUNDARY) if len(buffer) >= _HEADER_BYTES else 0
        start = self._list_key(buffer, searched, decide=True)
        if start is not None and self._content.json_start != b"[":
            return bytes(buffer[start:])
        raise CorruptTrace(
            f"{self._content.file} is broken JSON without a list of events",
            hint="the profiler may have been killed early",
        )

    def _list_key(self, buffer: bytearray, searched: int, *, decide: bool) -> int | None:
        """Position behind the bracket that opens the list of events, and the keys before it noted; None without one.

        decide: take the first place that looks like it where no JSON object leads up to any. Until then more is read,
        so that what is taken does not depend on how much was there at first.
        """
        starts = [match.end() for match in _EVENTS_KEY.finditer(buffer, searched)]
        for start in starts[:_KEYS_TRIED]:
            if start > _HEADER_BYTES and start != starts[0]:
                break
            header = bytes(buffer[:start]).removeprefix(_BOM)
            try:
                keys = _object(header + b"]}")
            except (msgspec.DecodeError, RecursionError):
                continue
            if "traceEvents" in keys:
                decode_text(header, self.document.mended)
                self._note_outer(keys)
                return start
        if starts and decide:
            text = decode_text(bytes(buffer[: starts[0]]).removeprefix(_BOM), self.document.mended)
            self._note_outer_text(text + "]}")
        return starts[0] if starts and decide else None

    def _stretches(self, held: bytes) -> Generator[Batch, None, bytes | None]:
        """Decode stretch by stretch; gives back what is left of the file after a detour, None at its end."""
        while chunk := self._read(len(held)):
            comma = self._last_boundary(chunk)
            if comma is None:
                seam = max(0, len(held) - _LONGEST_BOUNDARY)
                held, chunk = b"", held + chunk
                comma = self._last_boundary(chunk, seam)
            if comma is None:
                held = chunk
                check_piece(len(held))
                continue
            text = b"".join((b"[", held, memoryview(chunk)[:comma], b"]"))
            try:
                batch = self._lanes.decode(text)
            except msgspec.DecodeError:
                self._boundary = b""
                return (yield from self._mended(held + chunk, until=len(held) + comma))
            held = chunk[comma + 1 :]
            self._note_replaced(text)
            yield self._counted(batch)
        return (yield from self._tail(held))

    def _read(self, at_least: int) -> bytes:
        """Chunks that together have so many bytes, fewer at the end of the file."""
        parts, size = [], 0
        for chunk in self._chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= at_least:
                break
        return b"".join(parts)

    def _last_boundary(self, text: bytes, start: int = 0) -> int | None:
        """Position of the last comma between what look like two events; None where there is none behind `start`."""
        if self._boundary:
            at = text.rfind(self._boundary, start)
            if at >= 0:
                return at + self._comma_at
        for begin in (max(start, len(text) - _NEAR_END), start):
            found = deque(_BOUNDARY.finditer(text, begin), maxlen=1)
            if found:
                self._boundary, self._comma_at = found[0].group(), found[0].start(1) - found[0].start()
                return found[0].start(1)
        return None

    def _tail(self, buffer: bytes) -> Generator[Batch, None, bytes | None]:
        """The end of the file: the last events, the end of the list, and the outer keys behind it."""
        batch = None
        if b'"traceEvents"' not in buffer:  # a second list would hide the first
            try:
                keys, events = self._object_of(buffer)
                batch = self._lanes.decode(events)
            except (msgspec.DecodeError, RecursionError):
                pass
        if batch is None:
            return (yield from self._mended(buffer))
        self._note_replaced(buffer)
        self._note_outer(keys)
        yield self._counted(batch)
        return None

    def _object_of(self, tail: bytes) -> tuple[dict[str, Raw], bytes]:
        """Outer keys and events of a text that ends the file. Raises `msgspec.DecodeError` where it does not."""
        if self._content.json_start == b"[":
            events = b"[" + tail.strip()
            _list(events)
            return {}, events
        keys = _object(b'{"traceEvents":[' + tail)
        return keys, bytes(keys["traceEvents"])

    def _mended(self, buffer: bytes, until: int | None = None) -> Generator[Batch, None, bytes | None]:
        """Event by event, as far as `until` (all where None); gives back what follows, None at the end of the file."""
        source = Source(buffer, self._chunks, self.document.mended)
        parsed: list[dict[str, Any]] = []
        for event in mended_events(source, self.document.mended, self._limits):
            parsed.append(event)
            reached = until is not None and source.passed + source.position >= until
            if reached or len(parsed) == _MENDED_AT_ONCE:
                yield self._counted(third_lane(parsed))
                parsed = []
            if reached and not at_end(source):
                return source.left
        yield self._counted(third_lane(parsed))
        while source.more():
            pass
        behind = source.text[source.position :].lstrip().removeprefix(",")
        if behind.strip(" \r\n\t}"):
            self._note_outer_text("{" + behind)
        return None

    def _counted(self, batch: Batch) -> Batch:
        self.document.events += batch.kinds.total()
        self._limits.check("max_events", self.document.events, f"number of events in {self._content.file}")
        return batch

    def _note_replaced(self, text: bytes) -> None:
        if not text.isascii():
            decode_text(text, self.document.mended)

    def _note_outer_text(self, text: str) -> None:
        """Outer keys of broken JSON, as far as a lenient parser gets; that it gets nowhere is told."""
        found = _outer_of(text)
        self.document.outer |= found or {}
        self.document.mended.outer_lost |= found is None

    def _note_outer(self, keys: dict[str, Raw]) -> None:
        known = {key: bytes(keys[key]) for key in _OUTER_KEYS if key in keys}
        self.document.outer |= {key: _value(text, self._limits) for key, text in known.items()}


def _chunks(blocks: Iterable[bytes | bytearray], size: int) -> Iterator[bytes]:
    """The blocks again, in pieces of at least half the size and at most twice it."""
    held: list[bytes] = []
    length = 0
    for block in blocks:
        for start in range(0, len(block), size) if len(block) > 2 * size else (0,):
            piece = block[start : start + size] if len(block) > 2 * size else block
            held.append(bytes(piece))
            length += len(piece)
            if 2 * length >= size:
                yield b"".join(held)
                held, length = [], 0
    if held:
        yield b"".join(held)


def _outer_of(text: str) -> dict[str, Any] | None:
    """Known outer keys of an object; None where it cannot be parsed."""
    try:
        parsed, _ = lenient_json.raw_decode(text.lstrip())
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    return {key: parsed[key] for key in _OUTER_KEYS if key in parsed}


def _value(text: bytes, limits: Limits) -> Any:
    check_nesting(text, limits)
    try:
        return lenient_json.decode(text.decode("utf-8", "replace"))
    except ValueError:
        return None
