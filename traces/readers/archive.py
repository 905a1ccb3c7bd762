"""Archives and compressions where a trace is expected: what is unpacked before a reader sees it, and what never is."""

from traces.archive.tar import is_tar
from traces.content import GZIP_MAGIC, Content, Limits
from traces.reader import Reader, unsupported
from traces.trace import Trace

_MAGIC = (
    (b"PK\x03\x04", "a zip archive"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"BZh", "a bzip2 file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a rar archive"),
    (GZIP_MAGIC, "a gzip file"),
)


def _title(content: Content) -> str:
    title = next((title for magic, title in _MAGIC if content.head.startswith(magic)), "")
    return title or ("a tar archive" if is_tar(content.head) else "")


def claims(content: Content) -> bool:
    """A magic number of an archive or a compression, in what is left once gzip is off."""
    return bool(_title(content))


def read(content: Content, _limits: Limits) -> tuple[Trace, ...]:
    """Always `UnsupportedTrace`: zip and tar archives are unpacked by `traces.sources`, before any reader is asked."""
    inside = " inside a gzip file" if content.path is not None and _is_gzip(content) else ""
    unsupported(
        content,
        _title(content) + inside,
        "give the traces plain or as gzip, or pack them as zip, tar, tar.gz or tar.xz",
    )


def _is_gzip(content: Content) -> bool:
    assert content.path is not None, "asked only of files on disk"
    with content.path.open("rb") as file:
        return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC


READER = Reader("archive", "archives (zip, tar with gzip, bzip2 or xz)", claims, read)
