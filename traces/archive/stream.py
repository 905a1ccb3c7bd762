"""Bytes of a possibly compressed file, piece by piece, and reading them by exact counts. Memory stays flat."""

import bz2
import lzma
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, Protocol

from projector.errors import CorruptTrace
from traces.inflate import inflated
from traces.limits import RATIO_CHECKED_FROM_BYTES, Limits

Compression = Literal["", "gzip", "bzip2", "xz"]

_READ_BYTES: Final = 1 << 16
_BLOCK_BYTES: Final = 1 << 20
_XZ_MEMORY_BYTES: Final = 256 << 20


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def decompressed(path: Path, compression: Compression, limits: Limits, name: str, told: list[str]) -> Iterator[bytes]:
    """Pieces of at most 1 MiB of what the file holds. Where the file is cut short they end, which is added to `told`.

    Raises `CorruptTrace` (damaged), `EmptyTrace`, `TraceTooLarge` (max_unpacked_bytes, max_ratio).
    """
    if compression == "gzip":
        ending = yield from inflated(path, replace(limits, max_decompressed_bytes=limits.max_unpacked_bytes), name)
        if ending.truncated:
            told.append(cut_short(name))
        told.extend(f"{name}: {warning}" for warning in ending.warnings)
    elif compression:
        yield from _decompressed(path, compression, limits, name, told)
    else:
        with path.open("rb") as file:
            while piece := file.read(_BLOCK_BYTES):
                yield piece


def cut_short(name: str) -> str:
    """The sentence for a file that ends early."""
    return f"{name} is cut short: what is before that was read"


def _decompressed(path: Path, compression: Compression, limits: Limits, name: str, told: list[str]) -> Iterator[bytes]:
    """Every stream of a bzip2 or xz file, one after the other."""
    read = done = 0
    with path.open("rb") as file:
        pending = file.read(_READ_BYTES)
        read += len(pending)
        member = _decompressor(compression)
        while True:
            if member.eof:
                rest = (member.unused_data or file.read(_READ_BYTES)).lstrip(b"\0")
                if not rest:
                    return
                member, pending = _decompressor(compression), rest
            try:
                piece = member.decompress(pending, _BLOCK_BYTES)
            except (OSError, EOFError, ValueError, lzma.LZMAError) as fault:
                raise CorruptTrace(f"{name} is damaged {compression}: {fault}", hint="copy the file again") from fault
            done += len(piece)
            limits.check("max_unpacked_bytes", done, f"decompressed size of {name} in bytes")
            if done > RATIO_CHECKED_FROM_BYTES:
                limits.check("max_ratio", done / read, f"compression ratio of {name}")
            if piece:
                yield piece
            pending = b""
            if not member.eof and member.needs_input:
                pending = file.read(_READ_BYTES)
                read += len(pending)
                if not pending and not done:
                    raise CorruptTrace(f"{name} is cut short before anything comes out", hint="copy the file again")
                if not pending:
                    told.append(cut_short(name))
                    return


def _decompressor(compression: Compression) -> _Decompressor:
    if compression == "bzip2":
        return bz2.BZ2Decompressor()
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)


class ByteStream:
    """Takes exact counts of bytes off pieces of any size. `ended`: the pieces gave out before a count was full."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest: bytes | memoryview = b""
        self.ended = False

    def take(self, count: int) -> bytes:
        """The next `count` bytes, fewer at the end; for small counts, they are held in memory."""
        return b"".join(self.pieces(count))

    def peek(self, count: int) -> bytes:
        """The same, without taking them."""
        seen = self.take(count)
        self._rest = seen + bytes(self._rest)
        self.ended = False
        return seen

    def pieces(self, count: int) -> Iterator[bytes]:
        """The next `count` bytes in pieces."""
        while count > 0:
            if not self._rest:
                self._rest = memoryview(next(self._pieces, b""))
            if not self._rest:
                self.ended = True
                return
            piece, self._rest = self._rest[:count], self._rest[count:]
            count -= len(piece)
            yield bytes(piece)

    def skip(self, count: int) -> None:
        """Pass over the next `count` bytes."""
        for _ in self.pieces(count):
            pass

    def remaining(self) -> Iterator[bytes]:
        """All that is left, in pieces."""
        if self._rest:
            yield bytes(self._rest)
        yield from self._pieces
