"""Members of a zip archive: stored and deflated ones; what is encrypted or packed otherwise is told."""

import io
import stat
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from projector.errors import CorruptTrace, TraceTooLarge
from traces.archive.members import Member, left_out
from traces.limits import RATIO_CHECKED_FROM_BYTES, Limits

_READ_BYTES: Final = 1 << 20
_DIRECTORY_BYTES_A_FILE: Final = 1 << 9
_LEAST_DIRECTORY_BYTES: Final = 1 << 20
_ENCRYPTED: Final = 0x1
# Others inflate a few thousand bytes to any size at once.
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_METHOD_NAMES: Final = {9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}


class _Bounded(io.FileIO):
    """A file that never gives more bytes at once than a believable directory of members has."""

    def __init__(self, path: Path, most_bytes: int, name: str) -> None:
        super().__init__(path)
        self._most_bytes, self._name = most_bytes, name

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = self._most_bytes + 1
        if size > self._most_bytes + 1:
            raise TraceTooLarge(
                f"{self._name} states a directory of {size:,} bytes, {size - self._most_bytes:,} over what is believed",
                hint="limit max_files",
            )
        return super().read(size) or b""


def zip_members(path: Path, limits: Limits, name: str) -> Iterator[Member]:
    """Files of the archive in the order of its directory; links and what cannot be unpacked as refused ones.

    Raises `CorruptTrace` (no directory, as in a file that is cut short; a member's `pieces` where it is damaged),
    `TraceTooLarge` (max_files; a member's `pieces`: max_ratio).
    """
    most_bytes = max(_LEAST_DIRECTORY_BYTES, limits.max_files * _DIRECTORY_BYTES_A_FILE)
    with _Bounded(path, most_bytes, name) as file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError) as fault:
            raise CorruptTrace(
                f"{name} is a zip archive without a readable directory of its members: {fault}",
                hint="it may be cut short: copy it again",
            ) from fault
        with archive:
            limits.check("max_files", len(archive.infolist()), f"number of files in {name}")
            for entry in archive.infolist():
                if not entry.filename.endswith("/"):  # is_dir of the library fails for a member without a name
                    yield _member(archive, entry, limits, name)


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: Limits, name: str) -> Member:
    mode = stat.S_IFMT(entry.external_attr >> 16)
    if entry.flag_bits & _ENCRYPTED:
        return left_out(entry.filename, "encrypted")
    if mode not in (0, stat.S_IFREG):
        return left_out(entry.filename, "a link" if mode == stat.S_IFLNK else "a device")
    if entry.compress_type not in _METHODS:
        return left_out(entry.filename, f"packed in a way that is not read ({_method(entry.compress_type)})")
    return Member(entry.filename, _pieces(archive, entry, limits, f"{name}/{entry.filename}"))


def _method(number: int) -> str:
    return _METHOD_NAMES.get(number, f"method {number}")


def _pieces(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: Limits, name: str) -> Iterator[bytes]:
    done = 0
    try:
        with archive.open(entry) as file:
            while piece := file.read(_READ_BYTES):
                done += len(piece)
                if done > RATIO_CHECKED_FROM_BYTES:
                    limits.check("max_ratio", done / max(entry.compress_size, 1), f"compression ratio of {name}")
                yield piece
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError) as fault:
        raise CorruptTrace(f"{name} is damaged: {fault}", hint="copy the archive again") from fault
