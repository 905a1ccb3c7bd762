"""Events of a Chrome trace whose JSON is broken, one by one.

Profilers and killed jobs leave invalid UTF-8, control characters, lone backslashes, unescaped quotes, bare NaN, and
files that stop in the middle. Each event is parsed on its own: a broken one is repaired, or dropped and counted, and
the next one is found by the text that starts an event. Whatever was done is told in `Mended`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from projector.errors import TraceTooLarge
from traces.chrome.events import lenient_json, strict_json
from traces.chrome.nesting import check_nesting
from traces.content import Limits

# Quantifiers with a "+" behind them give nothing back, so that long runs of blanks cost no more than one pass.
_SEPARATORS: Final = re.compile(r"[\s,\x00-\x1f]*+")
_EVENTS_KEY: Final = re.compile(r'"traceEvents"\s*+:\s*+\[')
_EVENT_START: Final = re.compile(r'\{\s*+"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"\s*+:')
_PHASE_KEY: Final = re.compile(r'"ph"\s*+:')
_OUTER_KEY: Final = (
    r'"(?:traceName|deviceProperties|distributedInfo|displayTimeUnit|baseTimeNanoseconds|schemaVersion|metadata|trace_id'
    r'|INFO|host_name|with_\w+|record_shapes|profile_memory|\w+_version)"\s*+:'
)
_EVENT_END: Final = re.compile(
    rf"(?:\}}\s*+(?:,\s*+)?|,\s*+)(?={_EVENT_START.pattern})"
    rf"|\}}\s*+(?=\]\s*+(?:\}}\s*+)?\Z|\]\s*+,\s*+{_OUTER_KEY})"
)
_ANY_OBJECT_END: Final = re.compile(r'\}\s*+,\s*+(?=\{\s*+"[^"\\]{1,40}"\s*+:)')
_LONGEST_REPAIRED = 1 << 20

_LONE_BACKSLASH: Final = re.compile(r'\\(?:(u[0-9a-fA-F]{4})|(["\\/bfnrt])|)')
_BARE_WORD: Final = re.compile(r"(?<=[:,\[\s])(?:-?nan|-?inf(?:inity)?)(?=\s*+[,\]}])", re.IGNORECASE)
_QUOTE: Final = re.compile(r'(?<!\\)"')


@dataclass(slots=True)
class Mended:
    """What happened while reading; filled as the events are consumed."""

    repaired: int = 0
    dropped: int = 0
    replaced: int = 0
    truncated: bool = False
    rest: str = ""

    def warnings(self) -> tuple[str, ...]:
        """One sentence for each kind of damage."""
        told = []
        if self.replaced:
            told.append(f"{self.replaced:,} byte sequences were not valid UTF-8 and were replaced")
        if self.repaired:
            told.append(f"{self.repaired:,} events had broken JSON and were repaired")
        if self.dropped:
            told.append(f"{self.dropped:,} pieces of broken JSON could not be read and were dropped")
        if self.truncated:
            told.append("the file ends before its list of events does; only the events before that point were read")
        return tuple(told)


def decode_text(data: bytes | bytearray, mended: Mended) -> str:
    """Text of the file; bytes that are no UTF-8 become U+FFFD and are counted."""
    text = data.decode("utf-8-sig", "replace")
    mended.replaced += text.count("�") - data.count("�".encode())
    return text


def events_start(text: str) -> int | None:
    """Position after the bracket that opens the list of events."""
    match = _EVENTS_KEY.search(text)
    if match:
        return match.end()
    stripped = text.lstrip()
    return len(text) - len(stripped) + 1 if stripped.startswith("[") else None


def mended_event(text: str, mended: Mended) -> dict[str, Any] | None:
    """The one event that `text` holds, repaired where that helps; None where it cannot be read."""
    event, end = _next_event(text, 0, mended)
    if event is None or text[end:].strip():
        mended.dropped += 1
        return None
    return event


def mended_events(text: str, start: int, mended: Mended, limits: Limits) -> Iterator[dict[str, Any]]:
    """Every event that can be read from `text[start:]`; `mended.rest` is the text behind the list.

    Raises `TraceTooLarge` for max_depth.
    """
    position = _skip_separators(text, start)
    while position < len(text) and not _list_ends(text, position):
        event, end = _next_event(text, position, mended)
        check_nesting(text[position:end].encode("utf-8", "replace"), limits)
        if event is not None:
            yield event
        elif end < len(text):
            mended.dropped += 1
        position = _skip_separators(text, end)
    mended.truncated = position >= len(text)
    mended.rest = text[position + 1 :]


def _skip_separators(text: str, position: int) -> int:
    match = _SEPARATORS.match(text, position)
    return match.end() if match else position


def _list_ends(text: str, position: int) -> bool:
    """Whether the list ends here: a closing bracket with no event behind it (a broken event may leave one)."""
    return text[position] == "]" and _PHASE_KEY.search(text, position) is None


def _next_event(text: str, position: int, mended: Mended) -> tuple[dict[str, Any] | None, int]:
    """The event at `position` and where it ends; None where what stands there can be neither read nor repaired."""
    if text[position] != "{":
        start = _EVENT_START.search(text, position)
        return None, start.start() if start else len(text)
    try:
        return strict_json.raw_decode(text, position)
    except ValueError:
        pass
    except RecursionError as fault:
        raise TraceTooLarge("an event is nested too deeply to be parsed", hint="limit max_depth") from fault
    try:
        parsed = lenient_json.raw_decode(text, position)
    except ValueError:
        match = _EVENT_END.search(text, position) or _ANY_OBJECT_END.search(text, position)
        end = match.end() if match else len(text)
        return _repair(text[position:end], mended), end
    mended.repaired += 1
    return parsed


def _repair(piece: str, mended: Mended) -> dict[str, Any] | None:
    """Parse one broken event after escaping lone backslashes, then stray quotes, with bare NaN and inf as null."""
    if len(piece) > _LONGEST_REPAIRED:
        return None
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
