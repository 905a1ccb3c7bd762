"""Recorded request logs: Mooncake-style JSONL and CSV, read as untrusted data."""

import csv
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from projector.errors import InvalidDescription
from projector.simulation.request_log import RequestLog
from projector.simulation.simulate import MOST_REQUESTS
from projector.specs.record import MOST_TOKENS

MOST_LOG_BYTES = 100_000_000
MOST_LINE_CHARACTERS = 1_000_000
# seconds: a century, so that sums of times stay exact to a microsecond
MOST_SECONDS = 3.2e9
# Mooncake's traces hash prompts in blocks of so many tokens (FAST'25 traces, kvcache-ai/Mooncake)
BLOCK_TOKENS = 512

JSON_KEYS = ("timestamp", "input_length", "output_length")
HASHES = "hash_ids"
# (time, prompt, answer) as Azure's inference traces name them, and in plain words
AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
PLAIN = ("arrival_s", "input_tokens", "output_tokens")
FORMS = (
    "a line a request: JSON with timestamp (ms), input_length, output_length and maybe hash_ids, "
    "or CSV whose header has "
    f"{', '.join(PLAIN)} or {', '.join(AZURE)}"
)


@dataclass(frozen=True)
class ReadLog:
    """A log, and what a reader has to know of it: columns that are not read, an order that was made."""

    log: RequestLog
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    arrival_s: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] | None = None


def read_log(content: bytes, *, block_tokens: int = BLOCK_TOKENS) -> ReadLog:
    """The requests of a log, in order of arrival; block_tokens: prompt tokens a hash stands for.

    InvalidDescription with the number of the line that is not what it should be, and where a limit is passed. Nothing
    is left out: a line that cannot be read ends the reading.
    """
    if len(content) > MOST_LOG_BYTES:
        raise InvalidDescription(
            f"a log of {len(content)} bytes passes the limit of {MOST_LOG_BYTES}", hint="simulate a part of it"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDescription(f"the log is no UTF-8 text (byte {error.start})", hint=FORMS) from None
    lines = _lines(text)
    notes: dict[str, None] = {}
    reader = _json_rows if text.lstrip()[:1] == "{" else _csv_rows
    rows: list[_Row] = []
    for row in reader(lines, block_tokens, notes):
        if len(rows) == MOST_REQUESTS:
            raise InvalidDescription(f"the log has more than {MOST_REQUESTS} requests", hint="simulate a part of it")
        rows.append(row)
    if not rows:
        raise InvalidDescription("the log has no request", hint=FORMS)
    return ReadLog(_log(rows, block_tokens, notes), tuple(notes))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """(number, line) of every line that is not blank."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MOST_LINE_CHARACTERS:
            raise InvalidDescription(f"line {number} of the log has {len(line)} characters")
        if line.strip():
            yield number, line.rstrip("\r")


def _log(rows: list[_Row], block_tokens: int, notes: dict[str, None]) -> RequestLog:
    arrival_s = np.array([row.arrival_s for row in rows], dtype=np.float64)
    order = np.argsort(arrival_s, kind="stable")
    if np.any(np.diff(arrival_s) < 0):
        notes["the log is not in order of arrival: it was put in order"] = None
    in_order = [rows[place] for place in order]
    return RequestLog(
        arrival_s=arrival_s[order],
        input_tokens=np.array([row.input_tokens for row in in_order], dtype=np.int64),
        output_tokens=np.array([row.output_tokens for row in in_order], dtype=np.int64),
        blocks=tuple(row.blocks for row in in_order if row.blocks is not None),
        block_tokens=block_tokens,
    )


def _json_rows(lines: Iterator[tuple[int, str]], block_tokens: int, notes: dict[str, None]) -> Iterator[_Row]:
    hashed: bool | None = None
    for number, line in lines:
        record = _json_object(number, line)
        missing = [key for key in JSON_KEYS if key not in record]
        if missing:
            raise InvalidDescription(f"line {number} of the log has no {', '.join(missing)}", hint=FORMS)
        for key in record:
            if key not in (*JSON_KEYS, HASHES):
                notes[_unread(key)] = None
        if hashed is None:
            hashed = HASHES in record
        elif hashed != (HASHES in record):
            raise InvalidDescription(
                f"line {number} of the log has {'no ' if hashed else ''}{HASHES}, the lines before it "
                f"{'have them' if hashed else 'have none'}"
            )
        inputs, outputs = (_tokens(number, key, record[key]) for key in JSON_KEYS[1:])
        blocks = _hashes(number, record[HASHES], inputs, block_tokens) if hashed else None
        yield _Row(_seconds(number, JSON_KEYS[0], record[JSON_KEYS[0]]) / 1e3, inputs, outputs, blocks)


def _json_object(number: int, line: str) -> dict[str, object]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidDescription(f"line {number} of the log is no JSON object", hint=FORMS) from None
    if not isinstance(record, dict):
        raise InvalidDescription(f"line {number} of the log is no JSON object", hint=FORMS)
    return record


def _hashes(number: int, value: object, inputs: int, block_tokens: int) -> tuple[int, ...]:
    wanted = math.ceil(inputs / block_tokens)
    if not isinstance(value, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        raise InvalidDescription(f"line {number} of the log: {HASHES} is no list of whole numbers")
    if len(value) != wanted:
        raise InvalidDescription(
            f"line {number} of the log: {len(value)} {HASHES} for {inputs} tokens in blocks of {block_tokens}, not "
            f"{wanted}",
            hint="state how many tokens a hash stands for",
        )
    return tuple(value)


def _csv_rows(lines: Iterator[tuple[int, str]], _block_tokens: int, notes: dict[str, None]) -> Iterator[_Row]:
    try:
        first, line = next(lines)
    except StopIteration:
        return
    header = [name.strip() for name in _cells(first, line)]
    names = next((names for names in (PLAIN, AZURE) if set(names) <= set(header)), None)
    if names is None:
        nearest = max((PLAIN, AZURE), key=lambda names: len(set(names) & set(header)))
        missing = [name for name in nearest if name not in header]
        raise InvalidDescription(f"the header of the log has no {', '.join(missing)}", hint=FORMS)
    time = _azure_time if names is AZURE else _seconds
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InvalidDescription(f"the header of the log has {', '.join(twice)} more than once")
    for name in header:
        if name not in names:
            notes[_unread(name)] = None
    places = [header.index(name) for name in names]
    for number, line in lines:
        cells = _cells(number, line)
        if len(cells) != len(header):
            raise InvalidDescription(f"line {number} of the log has {len(cells)} cells, its header {len(header)}")
        at, inputs, outputs = (cells[place].strip() for place in places)
        yield _Row(time(number, names[0], at), _tokens(number, names[1], inputs), _tokens(number, names[2], outputs))


def _cells(number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise InvalidDescription(f"line {number} of the log is no CSV: {error}") from None


def _azure_time(number: int, name: str, text: str) -> float:
    """Seconds since 1970 of "2023-11-16 18:15:46.6805900": more digits than a datetime keeps are cut off."""
    moment, _, digits = text.partition(".")
    try:
        found = datetime.fromisoformat(f"{moment}.{(digits or '0')[:6]:0<6}+00:00")
        if digits and not digits.isdecimal():
            raise ValueError
    except ValueError:
        raise InvalidDescription(
            f"line {number} of the log: {name} {text[:40]!r} is no time", hint="as 2023-11-16 18:15:46.6805900"
        ) from None
    return found.timestamp()


def _seconds(number: int, name: str, value: object) -> float:
    found = _number(number, name, value, float)
    if not 0 <= found <= MOST_SECONDS * 1e3:
        raise InvalidDescription(f"line {number} of the log: {name} {found:g} is below 0 or beyond all reason")
    return found


def _tokens(number: int, name: str, value: object) -> int:
    found = _number(number, name, value, float)
    if not 1 <= found <= MOST_TOKENS or not float(found).is_integer():
        raise InvalidDescription(
            f"line {number} of the log: {name} {found:g} is no number of tokens from 1 to {MOST_TOKENS}"
        )
    return int(found)


def _number(number: int, name: str, value: object, kind: Callable[[str], float]) -> float:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        try:
            found = kind(value)  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            found = math.nan
        if math.isfinite(found):
            return found
    raise InvalidDescription(f"line {number} of the log: {name} {str(value)[:40]!r} is no number")


def _unread(name: str) -> str:
    return f"of the log is not read: {name[:40]!r}"
