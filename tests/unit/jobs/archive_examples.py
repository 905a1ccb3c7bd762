"""Short ways to write archives in a test."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping


def zip_of(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tar_of(files: Mapping[str, bytes], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    """A tar archive; mode as of `tarfile.open`: "w", "w:gz", "w:bz2", "w:xz"."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode, format=form) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def tar_with(*entries: tuple[str, bytes, bytes]) -> bytes:
    """A tar archive of (name, type, data) members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind, data in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.size, entry.linkname = kind, len(data), "/etc/passwd"
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def gz(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)
