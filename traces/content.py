"""One trace file: its bytes in blocks, inflated under limits, and what a reader needs to recognise the format."""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

from projector.errors import EmptyTrace, InvalidDescription
from traces.inflate import BLOCK_BYTES, GZIP_MAGIC, Ending, inflated
from traces.limits import Limits

__all__ = ["GZIP_MAGIC", "HEAD_BYTES", "Content", "Limits", "open_content"]

HEAD_BYTES: Final = 65_536

_WHOLE: Final = Ending()


class Content:
    """Decompressed bytes of one file, in memory or on disk.

    file  what to call it in errors and answers
    path  the file on disk, compressed as it is; None for bytes in memory

    Of a file on disk no more is read than is asked for, beyond its first blocks. `blocks` goes through it in constant
    memory, each time anew; `data` holds the whole of it from the first time it is asked for. Both may raise
    `CorruptTrace` (damaged gzip) and `TraceTooLarge` (max_decompressed_bytes, max_ratio) on their way.
    """

    def __init__(
        self, file: str, data: bytes | bytearray, truncated: bool = False, warnings: tuple[str, ...] = ()
    ) -> None:
        self.file = file
        self.path: Path | None = None
        self._data: bytes | bytearray | None = data
        self._head = bytes(data[:HEAD_BYTES])
        self._ending: Ending | None = Ending(truncated, warnings)
        self._limits = Limits()
        self._compressed = False
        self._found: dict[bytes, bool] = {}

    @classmethod
    def on_disk(cls, path: Path, limits: Limits, name: str, *, compressed: bool) -> "Content":
        """The content of a file; what its first blocks raise is raised at once."""
        content = cls(name, b"")
        content.path, content._limits, content._compressed = path, limits, compressed
        content._data = content._ending = None
        start = bytearray()
        for block in content.blocks():
            start += block
            if len(start) > HEAD_BYTES:
                break
        else:
            content._data = start
        content._head = bytes(start[:HEAD_BYTES])
        return content

    def blocks(self) -> Iterator[bytes | bytearray]:
        """The bytes from the start, in pieces of at most 256 KiB; in one piece where they are in memory."""
        if self._data is not None:
            yield self._data
        elif self._compressed:
            assert self.path is not None, "what is not in memory is on disk"
            self._ending = yield from inflated(self.path, self._limits, self.file)
        else:
            assert self.path is not None, "what is not in memory is on disk"
            with self.path.open("rb") as file:
                while block := file.read(BLOCK_BYTES):
                    yield block
            self._ending = _WHOLE

    @property
    def data(self) -> bytes | bytearray:
        """All bytes. To go through a large file, use `blocks`."""
        if self._data is None:
            whole = bytearray()
            for block in self.blocks():
                whole += block
            self._data = whole
        return self._data

    @property
    def truncated(self) -> bool:
        """Whether the compressed stream ends early; reads the file through where nothing else did."""
        return self._end().truncated

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was odd about the file itself; reads it through where nothing else did."""
        return self._end().warnings

    @property
    def head(self) -> bytes:
        """The first 64 KiB."""
        return self._head

    @cached_property
    def json_start(self) -> bytes:
        """b"{" or b"[" where the content looks like JSON, b"" otherwise."""
        first = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        return first if first in (b"{", b"[") else b""

    def mentions(self, *texts: bytes) -> bool:
        """Whether any of `texts` stands anywhere in the content. Reads on only until it finds one."""
        if any(self._found.get(text) or self.head.find(text) >= 0 for text in texts):
            return True
        sought = [text for text in texts if text not in self._found]
        overlap = max(map(len, sought), default=1) - 1
        before = b""
        for block in self.blocks() if sought else ():
            piece = before + block if before else block
            for text in sought:
                if piece.find(text) >= 0:
                    self._found[text] = True
                    return True
            before = bytes(piece[-overlap:]) if overlap else b""
        self._found.update(dict.fromkeys(sought, False))
        return False

    def matches(self, pattern: bytes) -> bool:
        """Whether `pattern` is found in the head."""
        return re.search(pattern, self.head) is not None

    def _end(self) -> Ending:
        if self._ending is None:
            for _ in self.blocks():
                pass
        assert self._ending is not None, "set at the end of the blocks"
        return self._ending


def open_content(path: Path, limits: Limits, name: str | None = None) -> Content:
    """Open one file; gzip is recognised by its magic bytes, never by the name.

    name: what to call the file in errors and answers, where its path says nothing to the reader.

    Raises `InvalidDescription` (no such file), `EmptyTrace`, `TraceTooLarge` (size on disk), and what the first blocks
    raise: `CorruptTrace`, `TraceTooLarge`. Damage and size further on come out while the content is read.
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
    return Content.on_disk(path, limits, name, compressed=compressed)
