"""Ways to change archives so that more than a checksum fails: headers set right again, members packed anew."""

import gzip
import io
import tarfile
import zipfile
import zlib
from random import Random
from typing import Final

from tests.fuzz.byte_mutations import damaged

_BLOCK: Final = 512
_CHECKSUM: Final = slice(148, 156)


def reshaped_archive(data: bytes, random: Random) -> bytes | None:
    """A zip with one of its members damaged and packed again, a gzip file likewise, a tar with checksums that hold."""
    if data.startswith(b"PK"):
        return _rezipped(data, random)
    if data.startswith(b"\x1f\x8b"):
        try:
            inner = zlib.decompressobj(31).decompress(data, 1 << 20)
        except zlib.error:
            return None
        changed = _summed(damaged(inner, random)) if len(inner) % _BLOCK == 0 else damaged(inner, random)
        return gzip.compress(changed, 1, mtime=0)
    return _summed(damaged(data, random)) if len(data) % _BLOCK == 0 else None


def _rezipped(data: bytes, random: Random) -> bytes | None:
    buffer = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
            members = old.infolist()
            chosen = random.choice(members) if members else None
            for member in members[:50]:
                body = old.open(member).read(1 << 16)
                again = damaged(body, random) if member is chosen else body
                new.writestr(member.filename, again, random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, OSError, zlib.error):
        return None
    return buffer.getvalue()


def _summed(data: bytes) -> bytes:
    """The blocks that look like headers of a tar archive, with the checksum they need."""
    held = bytearray(data)
    for at in range(0, len(held) - _BLOCK + 1, _BLOCK):
        header = held[at : at + _BLOCK]
        if header[257:262] == tarfile.POSIX_MAGIC[:5]:
            header[_CHECKSUM] = b" " * 8
            held[at + _CHECKSUM.start : at + _CHECKSUM.stop] = b"%06o\0 " % sum(header)
    return bytes(held)
