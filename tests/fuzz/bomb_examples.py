"""What the tests of bombs share: the process that reads, ways to write files, and bounds.

Bounds are multiples of what the readers hold by design: blocks of 1 MiB, one event of at most 64 MiB with its text, and
the rows that are kept.
"""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.fuzz.measured import Reading
from tests.unit.traces.trace_examples import kernel

MIB: Final = 1 << 20
FLAT: Final = 64 * MIB
"""What reading any file may take above what the process has: blocks, a parser's tables, the first use of libraries."""
WHOLE: Final = json.dumps(kernel("nvjet", 1, 2)).encode()
"""An event of 2 us."""


def packed(path: Path, pieces: Iterable[bytes]) -> Path:
    """A gzip file of the pieces, which are never in memory together."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        for piece in pieces:
            file.write(piece)
    return path


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def refused(reading: Reading, kind: str, told: str, *, rise: int = FLAT) -> None:
    assert (reading.outcome, told in reading.message) == (kind, True), reading
    assert reading.rise_bytes <= rise, reading
