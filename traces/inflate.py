"""Bytes of a gzip file in bounded pieces, with limits checked after each, so that a bomb ends early."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from isal import isal_zlib

from projector.errors import CorruptTrace, EmptyTrace
from traces.limits import RATIO_CHECKED_FROM_BYTES, Limits

GZIP_MAGIC: Final = b"\x1f\x8b"
BLOCK_BYTES: Final = 1 << 18
"""Most bytes of one piece; small enough to stay in a processor's cache while it is parsed."""

_DAMAGED: Final = cast(type[Exception], isal_zlib.error)  # the stub types the class as an instance
_READ_BYTES: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class Ending:
    """How a file ended. `truncated`: inside its compressed stream."""

    truncated: bool = False
    warnings: tuple[str, ...] = ()


def inflated(path: Path, limits: Limits, name: str) -> Generator[bytes, None, Ending]:
    """Every member of a gzip file, piece by piece; the return value says how it ended.

    Raises `CorruptTrace` (damaged), `EmptyTrace` (nothing inside), `TraceTooLarge` (max_decompressed_bytes, max_ratio).
    """
    member = isal_zlib.decompressobj(wbits=31)
    read = done = 0
    warnings: tuple[str, ...] = ()
    with path.open("rb") as file:
        pending = file.read(_READ_BYTES)
        while pending:
            read += len(pending)
            while not member.eof:
                piece = _decompress(member, pending, name, done)
                done += len(piece)
                pending = member.unconsumed_tail
                limits.check("max_decompressed_bytes", done, f"decompressed size of {name} in bytes")
                if done > RATIO_CHECKED_FROM_BYTES:
                    limits.check("max_ratio", done / read, f"compression ratio of {name}")
                if piece:
                    yield piece
                if not pending and len(piece) < BLOCK_BYTES:
                    break
            if member.eof:
                rest = member.unused_data
                if len(rest) < len(GZIP_MAGIC):
                    rest += file.read(_READ_BYTES)
                if not rest.startswith(GZIP_MAGIC):
                    if rest.strip(b"\0"):
                        warnings = ("bytes after the end of the gzip stream were ignored",)
                    break
                member, pending, read = isal_zlib.decompressobj(wbits=31), rest, read - len(member.unused_data)
            else:
                pending = file.read(_READ_BYTES)
    if not done:
        if member.eof:
            raise EmptyTrace(f"{name} is a gzip file of nothing")
        raise CorruptTrace(f"{name} ends inside the gzip header", hint="copy the file again")
    return Ending(truncated=not member.eof, warnings=warnings)


def _decompress(member: "isal_zlib.Decompress", pending: bytes, name: str, done: int) -> bytes:
    try:
        piece: bytes = member.decompress(pending, BLOCK_BYTES)
    except _DAMAGED as fault:
        raise CorruptTrace(
            f"{name} is damaged gzip: {fault} after {done:,} decompressed bytes", hint="copy the file again"
        ) from fault
    return piece
