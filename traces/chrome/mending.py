"""Events of a Chrome trace whose JSON is broken, one by one.

Profilers and killed jobs leave invalid UTF-8, control characters, lone backslashes, unescaped quotes, bare NaN, and
files that stop in the middle. Each event is parsed on its own: a broken one is repaired, or dropped and counted, and
the next one is found by the text that starts an event. Whatever was done is told in `Mended`.

No more of the file is held than the event at hand and `LOOK_AHEAD` characters behind it, so that what becomes of an
event does not depend on where in the file reading began. A broken event longer than that is dropped.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from projector.errors import TraceTooLarge
from traces.chrome.fields import lenient_json, strict_json
from traces.chrome.nesting import check_nesting
from traces.limits import Limits

LOOK_AHEAD: Final = 1 << 20
LONGEST_PIECE: Final = 1 << 26
"""Most bytes of what has to be in memory at once: one event, or all that stands before or behind the list of events."""

# Quantifiers with a "+" behind them give nothing back, so that long runs of blanks cost no more than one pass.
_SEPARATORS: Final = re.compile(r"[\s,\x00-\x1f]*+")
_EVENT_START: Final = re.compile(r'\{\s*+"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"\s*+:')
_PHASE_KEY: Final = re.compile(r'"ph"\s*+:\s*+"')
_OUTER_KEY: Final = (
    r'"(?:traceName|deviceProperties|distributedInfo|displayTimeUnit|baseTimeNanoseconds|schemaVersion|metadata|trace_id'
    r'|INFO|host_name|with_\w+|record_shapes|profile_memory|\w+_version)"\s*+:'
)
_LAST_EVENT_END: Final = rf"\}}\s*+(?=\]\s*+,\s*+{_OUTER_KEY})"
_EVENT_END: Final = re.compile(rf"(?:\}}\s*+(?:,\s*+)?|,\s*+)(?={_EVENT_START.pattern})|{_LAST_EVENT_END}")
_EVENT_END_IN_TAIL: Final = re.compile(rf"{_EVENT_END.pattern}|\}}\s*+(?=\]\s*+(?:\}}\s*+)?\Z)")
_ANY_OBJECT_END: Final = re.compile(r'\}\s*+,\s*+(?=\{\s*+"[^"\\]{1,40}"\s*+:)')
_LONGEST_START: Final = 4_096
_NEAR: Final = 1 << 14
_LONGEST_TOKEN: Final = 64

_LONE_BACKSLASH: Final = re.compile(r'\\(?:(u[0-9a-fA-F]{4})|(["\\/bfnrt])|)')
_BARE_WORD: Final = re.compile(r"(?<=[:,\[\s])(?:-?nan|-?inf(?:inity)?)(?=\s*+[,\]}])", re.IGNORECASE)
_CUT_CHARACTER: Final = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z")
_LONGEST_CHARACTER: Final = 4
_QUOTE: Final = re.compile(r'(?<!\\)"')


@dataclass(slots=True)
class Mended:
    """What happened while reading; filled as the events are consumed."""

    repaired: int = 0
    dropped: int = 0
    replaced: int = 0
    truncated: bool = False
    outer_lost: bool = False

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each kind of damage."""
        told = []
        if self.replaced:
            told.append(f"{self.replaced:,} byte sequences were not valid UTF-8 and were replaced")
        if self.repaired:
            told.append(f"{self.repaired:,} events had broken JSON and were repaired")
        if self.dropped:
            told.append(f"{self.dropped:,} pieces of broken JSON could not be read and were dropped")
        if self.outer_lost:
            told.append("what stands around the list of events is broken: what it says of rank and devices is unknown")
        if self.truncated:
            told.append("the file ends before its list of events does; only the events before that point were read")
        return tuple(told)


def decode_text(data: bytes, mended: Mended) -> str:
    """Text of a piece of the file; bytes that are no UTF-8 become U+FFFD and are counted."""
    text = data.decode("utf-8", "replace")
    mended.replaced += text.count("\ufffd") - data.count("\ufffd".encode())
    return text


def check_piece(size: int) -> None:
    """Raise `TraceTooLarge` where a piece of the file that cannot be divided is of `size` characters or bytes."""
    if size > LONGEST_PIECE:
        raise TraceTooLarge(
            f"one event, or the text around the list of events, is longer than {LONGEST_PIECE:,} bytes",
            hint="no profiler writes such a file",
        )


class Source:
    """Text of a file from a position on, read as it is needed.

    text      what is read and not yet left behind
    position  where the next event begins in it
    passed    characters left behind
    ended     whether the text reaches to the end of the file
    """

    def __init__(self, start: bytes, chunks: Iterator[bytes], mended: Mended) -> None:
        self.text = ""
        self.position = self.passed = 0
        self.ended = False
        self._chunks = chunks
        self._mended = mended
        self._held = b""
        self._append(start)

    def more(self) -> bool:
        """Read on; whether there was more, be it a part of a character that waited for the rest of it."""
        check_piece(len(self.text) - self.position)
        before = len(self.text)
        chunk = next(self._chunks, None)
        self.ended = chunk is None
        self._append(chunk or b"")
        return chunk is not None or len(self.text) > before

    def reach(self, count: int) -> bool:
        """Read on until `count` characters follow the position; whether any were added."""
        before = len(self.text)
        while len(self.text) - self.position < count and not self.ended:
            self.more()
        return len(self.text) > before

    def move_to(self, position: int) -> None:
        """Go on at `position` of the text."""
        self.position = position
        if position > LOOK_AHEAD:
            self.passed += position
            self.text = self.text[position:]
            self.position = 0

    @property
    def left(self) -> bytes:
        """What is read and not yet dealt with, as bytes again."""
        return self.text[self.position :].encode() + self._held

    def _append(self, chunk: bytes) -> None:
        """Add the text of `chunk`; a character that it cuts in two waits for the next."""
        data = self._held + chunk
        end = len(data)
        if not self.ended and (cut := _CUT_CHARACTER.search(data, max(0, end - _LONGEST_CHARACTER))):
            end = cut.start()
        self._held = data[end:]
        self.text += decode_text(data[:end], self._mended)


def mended_events(source: Source, mended: Mended, limits: Limits) -> Iterator[dict[str, Any]]:
    """Every event that can be read from the source, which afterwards is behind the list or at the end of the file.

    At each event the source is behind it, so that reading may go on elsewhere. Raises `TraceTooLarge` for max_depth.
    """
    while not at_end(source) and not _list_ends(source):
        event = _next_event(source, mended, limits)
        if event is not None:
            yield event
        elif not at_end(source):
            mended.dropped += 1
    mended.truncated = at_end(source)
    if not mended.truncated:
        source.move_to(source.position + 1)


def at_end(source: Source) -> bool:
    """Skip what may stand between events; whether the file ends there."""
    while True:
        match = _SEPARATORS.match(source.text, source.position)
        if match:
            source.move_to(match.end())
        if source.position < len(source.text):
            return False
        if not source.more():
            return True


def _list_ends(source: Source) -> bool:
    """Whether the list ends here: a closing bracket with no event behind it (a broken event may leave one)."""
    if source.text[source.position] != "]":
        return False
    start = source.position
    while _PHASE_KEY.search(source.text, start) is None:
        start = max(source.position, len(source.text) - _LONGEST_START)
        if not source.more():
            return True
    return False


def _next_event(source: Source, mended: Mended, limits: Limits) -> dict[str, Any] | None:
    """The event at the source's position; None where what stands there can be neither read nor repaired."""
    if source.text[source.position] != "{":
        _skip_rubbish(source)
        return None
    found = _parsed(source, strict_json)
    if found is None and source.reach(LOOK_AHEAD):
        found = _parsed(source, strict_json)
    if found is None:
        found = _parsed(source, lenient_json)
        mended.repaired += found is not None
    if found is None:
        end = _broken_end(source)
        piece = source.text[source.position : end]
        source.move_to(end)
        check_nesting(piece.encode("utf-8", "replace"), limits)
        return _repair(piece, mended)
    event, end = found
    check_nesting(source.text[source.position : end].encode("utf-8", "replace"), limits)
    source.move_to(end)
    return event


def _skip_rubbish(source: Source) -> None:
    """Go to the next text that starts an event, or to the end."""
    while (start := _EVENT_START.search(source.text, source.position)) is None:
        source.move_to(max(source.position, len(source.text) - _LONGEST_START))
        if not source.more():
            source.move_to(len(source.text))
            return
    source.move_to(start.start())


def _parsed(source: Source, parser: json.JSONDecoder) -> tuple[dict[str, Any], int] | None:
    """The object at the source's position and where it ends; None where the parser finds none."""
    for length in (_NEAR, len(source.text)):
        piece = source.text[source.position : source.position + length]  # a fault counts the lines before it
        try:
            event, end = parser.raw_decode(piece)
        except json.JSONDecodeError as fault:
            cut = source.position + length < len(source.text)
            if cut and (fault.pos > length - _LONGEST_TOKEN or fault.msg.startswith("Unterminated string")):
                continue
            return None
        except ValueError:
            return None
        except RecursionError as fault:
            raise TraceTooLarge("an event is nested too deeply to be parsed", hint="limit max_depth") from fault
        return event, source.position + end
    return None


def _broken_end(source: Source) -> int:
    """Where the broken event at the source's position ends, as far as can be told from what follows."""
    limit = source.position + LOOK_AHEAD
    in_tail = source.ended and len(source.text) <= limit
    for pattern in (_EVENT_END_IN_TAIL if in_tail else _EVENT_END, _ANY_OBJECT_END):
        match = pattern.search(source.text, source.position, limit)
        if match:
            return match.end()
    return min(limit, len(source.text))


def _repair(piece: str, mended: Mended) -> dict[str, Any] | None:
    """Parse one broken event after escaping lone backslashes, then stray quotes, with bare NaN and inf as null."""
    piece = _BARE_WORD.sub("null", piece.rstrip().rstrip(","))
    for escape in (_escape_backslashes, _escape_quotes):
        piece = escape(piece)
        try:
            event = lenient_json.decode(piece)
        except (json.JSONDecodeError, RecursionError):
            continue
        if isinstance(event, dict):
            mended.repaired += 1
            return event
    return None


def _escape_backslashes(piece: str) -> str:
    return _LONE_BACKSLASH.sub(lambda match: match.group() if match.lastindex else "\\\\", piece)


def _escape_quotes(piece: str) -> str:
    """Escape quotes that neither open nor close a string: no structure before them and none after."""

    def escape(match: re.Match[str]) -> str:
        before, after = match.start() - 1, match.end()
        while before >= 0 and piece[before].isspace():
            before -= 1
        while after < len(piece) and piece[after].isspace():
            after += 1
        opens = before < 0 or piece[before] in "{[,:"
        closes = after == len(piece) or piece[after] in ":,}]"
        return '"' if opens or closes else '\\"'

    return _QUOTE.sub(escape, piece)
