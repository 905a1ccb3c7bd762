"""Containers and compressions other than gzip: recognised and named, never unpacked."""

import re

from traces.content import GZIP_MAGIC, Content, Limits
from traces.reader import Reader, unsupported
from traces.trace import Trace

_MAGIC = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (GZIP_MAGIC, "a gzip file inside a gzip file"),
)
_TAR_MAGIC_AT = 257


def _title(content: Content) -> str:
    for magic, title in _MAGIC:
        if content.head.startswith(magic):
            return title
    if content.head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar":
        return "a tar archive" + _what_for(content.head[:100] + content.head[512:612])
    return ""


def _what_for(names: bytes) -> str:
    """A guess of what the archive holds, from the names of its first two members."""
    if re.search(rb"\.et\b", names):
        return " of Chakra execution traces (protobuf)"
    return " of Chakra execution traces (JSON)" if b"chakra" in names.lower() else ""


def claims(content: Content) -> bool:
    """A magic number of an archive or a compression."""
    return bool(_title(content))


def read(content: Content, _limits: Limits) -> tuple[Trace, ...]:
    """Always `UnsupportedTrace`."""
    unsupported(content, _title(content), "give a PyTorch Kineto or XProf trace itself, plain or gzip")


READER = Reader("archive", "archives (tar, zip, zstd, xz, bzip2)", claims, read)
