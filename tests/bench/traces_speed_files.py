"""Large Kineto files made of a real one: copies one after another, with times and ids shifted so that nothing collides.

`python -m tests.bench.traces_speed_files SOURCE TARGET SIZE_BYTES` writes TARGET and TARGET.gz. The text of the events
is kept as the profiler wrote it; metadata events and outer keys are those of the first copy.
"""

import gzip
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

_LIST_KEY = re.compile(rb'"traceEvents":\s*\[\s*')
_NUMBERS = re.compile(
    rb'(?:"(?:correlation|External id|id|Ev Idx|Record function id|Python id|Python parent id)": *|("ts": *))(\d+)'
)
_BETWEEN_COPIES_US = 1_000


def replicate(source: Path, target: Path, size_bytes: int) -> int:
    """Write copies of `source` (.json.gz) to `target` until it has `size_bytes`; how many copies there are."""
    head, events, tail = _parts(gzip.decompress(source.read_bytes()))
    repeated = _Repeated(b",".join(event for event in events if b'"cat":' in event))
    copies = 1
    with target.open("wb") as file:
        file.write(head + b",".join(events))
        while file.tell() + len(tail) < size_bytes:
            file.write(b"," + repeated.copy(copies))
            copies += 1
        file.write(tail)
    return copies


class _Repeated:
    """Events of which copies are made: each later than the one before, its ids higher; an id of 0 is none and stays."""

    def __init__(self, events: bytes) -> None:
        found = [(match[1] is not None, int(match[2])) for match in _NUMBERS.finditer(events)]
        times = [number for is_time, number in found if is_time]
        ids = [number for is_time, number in found if not is_time]
        steps = max(ids) + 1, max(times) - min(times) + _BETWEEN_COPIES_US
        self._numbers = [number for _, number in found]
        self._steps = [steps[is_time] if is_time or number else 0 for is_time, number in found]
        self._template = _NUMBERS.sub(lambda match: match[0][: -len(match[2])] + b"%d", events.replace(b"%", b"%%"))

    def copy(self, number: int) -> bytes:
        """Copy `number`; 0 are the events themselves."""
        shifted = (first + number * step for first, step in zip(self._numbers, self._steps, strict=True))
        return self._template % tuple(shifted)


def pack(source: Path, target: Path) -> None:
    """Write `source` as gzip, at the level a profiler uses."""
    with source.open("rb") as plain, gzip.open(target, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(plain, packed, 1 << 20)


def _parts(text: bytes) -> tuple[bytes, list[bytes], bytes]:
    """The text up to the first event, the events, and what follows the last of them."""
    match = _LIST_KEY.search(text)
    assert match, "a Kineto file has a list of events"
    start = match.end()
    indent = re.match(rb"\{\s*\n( *)", text[start:])
    assert indent, "the profiler writes a key a line"
    line = text.rfind(b"\n", 0, start)
    margin = text[line:start]
    boundary = margin + b"}," + margin + b"{"
    end = text.rindex(margin + b"}") + len(margin) + 1
    return text[:start], list(_split(text[start:end], boundary, margin)), text[end:]


def _split(events: bytes, boundary: bytes, margin: bytes) -> Iterator[bytes]:
    pieces = events.split(boundary)
    for number, piece in enumerate(pieces):
        before = margin + b"{" if number else b""
        behind = margin + b"}" if number < len(pieces) - 1 else b""
        yield before + piece + behind


if __name__ == "__main__":
    replicate(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
    pack(Path(sys.argv[2]), Path(sys.argv[2] + ".gz"))
