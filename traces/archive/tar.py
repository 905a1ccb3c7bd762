"""Members of a tar archive (v7, ustar, GNU, pax), read front to back.

Format: POSIX.1-2017 pax, "ustar Interchange Format" and "pax Header Block"; GNU tar manual, "Basic Tar Format".
Headers are read by exact, bounded counts: nothing is allocated because a header says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from projector.errors import CorruptTrace, TraceTooLarge
from traces.archive.members import Member, left_out
from traces.archive.stream import ByteStream, cut_short
from traces.content import Limits

BLOCK: Final = 512
_CHECKSUM: Final = slice(148, 156)
_FILES: Final = b"07\0"
_NAMED: Final = {b"1": "a link", b"2": "a link", b"3": "a device", b"4": "a device", b"6": "a pipe"}
_FOLDER, _SPARSE, _LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL = b"5", b"S", b"L", b"K", b"x", b"g"
_MOST_HEADER_BYTES: Final = 1 << 20
_MOST_DIGITS: Final = 20
_ENTRIES_A_FILE: Final = 4


@dataclass(slots=True)
class _Extension:
    """What the headers before a member's own say of it."""

    name: bytes = b""
    size: int | None = None
    sparse: bool = False


def is_tar(head: bytes) -> bool:
    """Whether the first 512 bytes are the header of a member: their checksum holds, and they name something."""
    return len(head) >= BLOCK and head[0] != 0 and _checksum_holds(head[:BLOCK])


def tar_members(stream: ByteStream, limits: Limits, name: str, told: list[str]) -> Iterator[Member]:
    """Files of the archive in order; links, devices and sparse files as refused ones, folders not at all.

    An archive that is cut short or damaged between members ends there, which is added to `told`; a member that is cut
    off is still given, as far as it goes.

    Raises `CorruptTrace` (an extension header beyond belief), `TraceTooLarge` (more headers than max_files allows for).
    """
    extension, entries = _Extension(), 0
    while True:
        header = stream.take(BLOCK)
        if len(header) == BLOCK and not any(header):
            return
        if len(header) < BLOCK or not _checksum_holds(header):
            told.append(f"{name} is damaged: what is before that was read" if len(header) == BLOCK else cut_short(name))
            return
        entries += 1
        if entries > _ENTRIES_A_FILE * limits.max_files:
            raise TraceTooLarge(f"{name} holds more than {entries - 1:,} headers", hint="limit max_files")
        kind, size = header[156:157], _number(header[124:136])
        if size is None:
            told.append(f"{name} states a size that is none: what is before that was read")
            return
        if kind in (_LONG_NAME, _PAX, _LONG_LINK, _PAX_GLOBAL):
            data = _extension_data(stream, size, name)
            if kind == _LONG_NAME:
                extension.name = data.rstrip(b"\0")
            elif kind == _PAX:
                _read_pax(data, extension)
            continue
        yield from _member(stream, header, kind, size, extension)
        extension = _Extension()
        if stream.ended:
            told.append(cut_short(name))
            return


def _member(stream: ByteStream, header: bytes, kind: bytes, size: int, extension: _Extension) -> Iterator[Member]:
    """The member a header stands for, its bytes passed over afterwards as far as nobody read them."""
    title = (extension.name or _ustar_name(header)).decode("utf-8", "replace")
    if kind == _FOLDER or (title.endswith("/") and kind in _FILES):
        return
    if kind in _NAMED:
        yield left_out(title, _NAMED[kind])
        return
    size = size if extension.size is None else extension.size
    if kind == _SPARSE and header[482]:
        while (more := stream.take(BLOCK)) and len(more) == BLOCK and more[504]:
            pass
    body = stream.pieces(size)
    if kind == _SPARSE or extension.sparse:
        yield left_out(title, "a sparse file")
    elif kind not in _FILES:
        yield left_out(title, "of a kind that is not known")
    else:
        yield Member(title, body)
    for _ in body:
        pass
    stream.skip(-size % BLOCK)


def _checksum_holds(header: bytes) -> bool:
    """Sum of the bytes, its own field taken as blanks; some old programs summed them as signed ones."""
    stated = _number(header[_CHECKSUM])
    blank = header[: _CHECKSUM.start] + b" " * 8 + header[_CHECKSUM.stop :]
    unsigned = sum(blank)
    return stated is not None and stated in (unsigned, unsigned - 256 * sum(byte > 127 for byte in blank))


def _number(field: bytes) -> int | None:
    """A number in octal digits, or, after a set top bit, in base 256; None where it is neither, or negative."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    try:
        return int(digits, 8) if digits.isdigit() else None
    except ValueError:
        return None


def _ustar_name(header: bytes) -> bytes:
    name, prefix = header[:100].partition(b"\0")[0], header[345:500].partition(b"\0")[0]
    return prefix + b"/" + name if header[257:263] == b"ustar\0" and prefix else name


def _extension_data(stream: ByteStream, size: int, name: str) -> bytes:
    if size > _MOST_HEADER_BYTES:
        raise CorruptTrace(
            f"{name} has a header of {size:,} bytes, {size - _MOST_HEADER_BYTES:,} over what one may have",
            hint="pack the traces again",
        )
    data = stream.take(size)
    stream.skip(-size % BLOCK)
    return data


def _read_pax(data: bytes, extension: _Extension) -> None:
    """Records "length key=value\\n"; a broken one ends them."""
    at = 0
    while at < len(data):
        digits, blank, _ = data[at : at + _MOST_DIGITS].partition(b" ")
        length = int(digits) if blank and digits.isdigit() else 0
        if length <= len(digits) + 1 or at + length > len(data):
            return
        key, _, value = data[at + len(digits) + 1 : at + length].rstrip(b"\n").partition(b"=")
        at += length
        if key == b"path":
            extension.name = value
        elif key == b"size" and value.isdigit() and len(value) <= _MOST_DIGITS:
            extension.size = int(value)
        elif key.startswith(b"GNU.sparse"):
            extension.sparse = True
