"""An archive to numbered files in a folder, under limits that all archives of a job share."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, Literal

from projector.errors import CorruptTrace, TraceError, TraceTooLarge
from traces.archive.members import Member, shown
from traces.archive.stream import ByteStream, Compression, decompressed
from traces.archive.tar import BLOCK, is_tar, tar_members
from traces.archive.zip import zip_members
from traces.limits import RATIO_CHECKED_FROM_BYTES, Limits

MOST_NESTED: Final = 2
"""An archive, and archives in it; deeper ones are left out."""

_NAME_SHOWN: Final = 80
_SHOWN: Final = 4
_HIDDEN_FOLDER: Final = "__MACOSX"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MAGIC: Final[tuple[tuple[bytes, Compression], ...]] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
)

Packing = Literal["zip", "tar", "single"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What an archive is: how its members are packed (single: one compressed file), and how the whole is."""

    packing: Packing
    compression: Compression = ""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A member on disk. `name` is untrusted text: the archive's and the member's own."""

    path: Path
    name: str
    size_bytes: int


@dataclass(slots=True)
class Unpacking:
    """The folder the archives of a job are unpacked to, what they have used of the limits, and what is to be told.

    files     members seen; written and damaged: those unpacked, and those that could not be
    packed_bytes  of the archives opened so far, on disk
    """

    folder: Path
    limits: Limits
    files: int = 0
    written: int = 0
    damaged: int = 0
    hidden: int = 0
    packed_bytes: int = 0
    unpacked_bytes: int = 0
    told: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def next_path(self) -> Path:
        """A path nobody has: the number of the file, whatever its name."""
        return self.folder / f"{next(self._numbers)}"


def kind_of(path: Path, limits: Limits) -> Kind | None:
    """What kind of archive a file is, by its first bytes; None for any other file, a gzip file of no tar among them."""
    with path.open("rb") as file:
        head = file.read(BLOCK)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Kind("zip")
    if is_tar(head):
        return Kind("tar")
    compression = next((name for magic, name in _MAGIC if head.startswith(magic)), None)
    if compression is None:
        return None
    if _is_packed_tar(path, compression, limits):
        return Kind("tar", compression)
    return None if compression == "gzip" else Kind("single", compression)


def unpack(path: Path, kind: Kind, name: str, unpacking: Unpacking, depth: int = 1) -> Iterator[Unpacked]:
    """Write the files of an archive, and of archives in it, to disk, in the archive's order.

    Members that are damaged, encrypted, links or devices are left out and told; hidden files are counted.

    Raises `CorruptTrace` (nothing can be unpacked), `TraceTooLarge` (max_files, max_unpacked_bytes, max_ratio, and
    max_decompressed_bytes for one file).
    """
    refused: dict[str, list[str]] = {}
    before = unpacking.written
    if depth == 1:
        unpacking.packed_bytes += path.stat().st_size
    for member in _until_damage(_members(path, kind, name, unpacking), unpacking):
        unpacking.files += 1
        unpacking.limits.check("max_files", unpacking.files, f"number of files up to {name}")
        if member.refused:
            refused.setdefault(member.refused, []).append(member.name)
        elif is_hidden(member.name):
            unpacking.hidden += 1
        elif (unpacked := _written(member, _title(name, member.name), unpacking)) is not None:
            yield from _opened(unpacked, unpacking, depth)
    for why, names in sorted(refused.items()):
        unpacking.told.append(f"{name}: {len(names):,} members were left out, being {why}: {_some(names)}")
    if unpacking.damaged and unpacking.written == before:
        raise CorruptTrace(f"{name} holds no file that can be unpacked", hint="copy the archive again")


def is_hidden(name: str) -> bool:
    """Whether a path has a part that begins with a dot, or is what macOS adds to archives."""
    parts = name.replace("\\", "/").split("/")
    return any((part.startswith(".") and part not in (".", "..")) or part == _HIDDEN_FOLDER for part in parts)


def _is_packed_tar(path: Path, compression: Compression, limits: Limits) -> bool:
    try:
        return is_tar(ByteStream(decompressed(path, compression, limits, path.name, [])).peek(BLOCK))
    except TraceError:
        return False


def _members(path: Path, kind: Kind, name: str, unpacking: Unpacking) -> Iterator[Member]:
    if kind.packing == "zip":
        return zip_members(path, unpacking.limits, name)
    stream = ByteStream(decompressed(path, kind.compression, unpacking.limits, name, unpacking.told))
    if kind.packing == "tar":
        return tar_members(stream, unpacking.limits, name, unpacking.told)
    return iter((Member("", stream.remaining()),))


def _until_damage(members: Iterator[Member], unpacking: Unpacking) -> Iterator[Member]:
    """The members before the archive is found to be damaged, which is told once something came out of it."""
    before = unpacking.written
    try:
        yield from members
    except CorruptTrace as fault:
        if unpacking.written == before:
            raise
        unpacking.told.append(f"{fault}; what is before that was read")


def _written(member: Member, title: str, unpacking: Unpacking) -> Unpacked | None:
    """A member on disk; None, and told, where it is damaged."""
    path, size_bytes = unpacking.next_path(), 0
    try:
        with path.open("xb") as file:
            for piece in member.pieces:
                size_bytes += len(piece)
                unpacking.unpacked_bytes += len(piece)
                unpacking.limits.check("max_decompressed_bytes", size_bytes, f"size of {title} in bytes")
                unpacking.limits.check("max_unpacked_bytes", unpacking.unpacked_bytes, "unpacked size in bytes")
                if unpacking.unpacked_bytes > RATIO_CHECKED_FROM_BYTES:
                    ratio = unpacking.unpacked_bytes / max(unpacking.packed_bytes, 1)
                    unpacking.limits.check("max_ratio", ratio, "compression ratio of all that was unpacked")
                file.write(piece)
    except CorruptTrace as fault:
        path.unlink()
        unpacking.damaged += 1
        unpacking.told.append(f"{fault}; it was left out")
        return None
    except OSError as fault:
        if fault.errno not in _NO_ROOM:
            raise
        raise TraceTooLarge(
            f"there is no room on disk to unpack {title}, after {unpacking.unpacked_bytes:,} bytes",
            hint="give the files themselves, or fewer of them",
        ) from fault
    unpacking.written += 1
    return Unpacked(path, title, size_bytes)


def _opened(unpacked: Unpacked, unpacking: Unpacking, depth: int) -> Iterator[Unpacked]:
    """The file, or what is in it where it is an archive itself."""
    kind = kind_of(unpacked.path, unpacking.limits)
    if kind is None:
        yield unpacked
        return
    if depth >= MOST_NESTED:
        unpacking.told.append(f"{unpacked.name} is an archive inside {depth} others: left out")
    else:
        try:
            yield from unpack(unpacked.path, kind, unpacked.name, unpacking, depth + 1)
        except CorruptTrace as fault:
            unpacking.told.append(f"{fault}; it was left out")
    unpacked.path.unlink()


def _title(archive: str, member: str) -> str:
    """What to call a member; one compressed file alone is called what the file is called."""
    return f"{archive}/{shown(member.removeprefix('./'))}" if member else archive


def _some(names: list[str]) -> str:
    return ", ".join(ascii(name[:_NAME_SHOWN]) for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
