"""The bytes of one trace file: read and inflated under limits, with what a reader needs to recognise the format."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, cast

from isal import isal_zlib

from projector.errors import CorruptTrace, EmptyTrace, InvalidDescription, TraceTooLarge

GZIP_MAGIC: Final = b"\x1f\x8b"
HEAD_BYTES: Final = 65_536

_DAMAGED: Final = cast(type[Exception], isal_zlib.error)  # the stub types the class as an instance
_READ_BYTES = 1 << 20
_INFLATE_BYTES = 8 << 20
_RATIO_CHECKED_FROM_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a file is believed. A passed limit raises `TraceTooLarge`, never cuts silently.

    max_ratio is decompressed over compressed size; real traces reach about 40, a bomb about 1000. It is checked once
    32 MiB came out, so that a small repetitive file is not refused.
    """

    max_compressed_bytes: int = 1 << 30
    max_decompressed_bytes: int = 4 << 30
    max_ratio: float = 200.0
    max_events: int = 20_000_000
    max_depth: int = 64

    def check(self, name: str, value: float, what: str) -> None:
        """Raise `TraceTooLarge` where `value` is above the limit called `name`."""
        limit = getattr(self, name)
        if value > limit:
            raise TraceTooLarge(
                f"{what} is at least {value:,.0f}, {value - limit:,.0f} over the limit of {limit:,.0f}",
                hint=f"limit {name}; profile fewer steps, or raise the limit",
            )


@dataclass(frozen=True)
class Content:
    """Decompressed bytes of one file. `truncated`: the compressed stream ended early."""

    file: str
    data: bytearray | bytes
    truncated: bool = False
    warnings: tuple[str, ...] = ()

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB."""
        return bytes(self.data[:HEAD_BYTES])

    @cached_property
    def json_start(self) -> bytes:
        """b"{" or b"[" where the content looks like JSON, b"" otherwise."""
        first = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        return first if first in (b"{", b"[") else b""

    def mentions(self, *texts: bytes) -> bool:
        """Whether any of `texts` stands anywhere in the content."""
        return any(self.data.find(text) >= 0 for text in texts)

    def matches(self, pattern: bytes) -> bool:
        """Whether `pattern` is found in the head."""
        return re.search(pattern, self.head) is not None


def open_content(path: Path, limits: Limits, name: str | None = None) -> Content:
    """Read one file; gzip is recognised by its magic bytes, never by the name.

    name: what to call the file in errors and answers, where its path says nothing to the reader.

    Raises `InvalidDescription` (no such file), `EmptyTrace`, `CorruptTrace`, `TraceTooLarge`.
    """
    name = path.name if name is None else name
    if not path.is_file():
        raise InvalidDescription(f"no trace file {name!r}", hint="give the path of one profiler trace")
    size = path.stat().st_size
    if not size:
        raise EmptyTrace(f"{name} has no bytes")
    with path.open("rb") as file:
        compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    limits.check("max_compressed_bytes" if compressed else "max_decompressed_bytes", size, f"size of {name} in bytes")
    if not compressed:
        return Content(name, path.read_bytes())
    return _inflate(path, limits, name)


def _inflate(path: Path, limits: Limits, name: str) -> Content:
    """Inflate every member of a gzip file in bounded pieces, checking the limits after each."""
    data = bytearray()
    warnings: tuple[str, ...] = ()
    member = isal_zlib.decompressobj(wbits=31)
    read = 0
    with path.open("rb") as file:
        pending = file.read(_READ_BYTES)
        while pending:
            read += len(pending)
            while not member.eof:
                piece = _decompress(member, pending, name, len(data))
                data += piece
                pending = member.unconsumed_tail
                limits.check("max_decompressed_bytes", len(data), f"decompressed size of {name} in bytes")
                if len(data) > _RATIO_CHECKED_FROM_BYTES:
                    limits.check("max_ratio", len(data) / read, f"compression ratio of {name}")
                if not pending and len(piece) < _INFLATE_BYTES:
                    break
            if member.eof:
                rest = member.unused_data or file.read(_READ_BYTES)
                if not rest.startswith(GZIP_MAGIC):
                    if rest.strip(b"\0"):
                        warnings = ("bytes after the end of the gzip stream were ignored",)
                    break
                member, pending, read = isal_zlib.decompressobj(wbits=31), rest, read - len(member.unused_data)
            else:
                pending = file.read(_READ_BYTES)
    if not data:
        if member.eof:
            raise EmptyTrace(f"{name} is a gzip file of nothing")
        raise CorruptTrace(f"{name} ends inside the gzip header", hint="copy the file again")
    return Content(name, data, truncated=not member.eof, warnings=warnings)


def _decompress(member: "isal_zlib.Decompress", pending: bytes, name: str, done: int) -> bytes:
    try:
        piece: bytes = member.decompress(pending, _INFLATE_BYTES)
    except _DAMAGED as fault:
        raise CorruptTrace(
            f"{name} is damaged gzip: {fault} after {done:,} decompressed bytes", hint="copy the file again"
        ) from fault
    return piece
