"""Uploaded traces on disk, named by the sha256 of their bytes and by nothing a user wrote."""

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from projector.specs.record import Record

MAX_NAME_CHARACTERS = 200


class StoredTrace(Record):
    """One uploaded file. `name` is what the client called it: shown, never used as a path."""

    sha256: str
    name: str
    size_bytes: int


@dataclass(frozen=True)
class TraceStore:
    """Folder of traces; `incoming` holds uploads that are not complete yet.

    A committed trace is pledged to the job it came for until `settle`; a pledged one is not removed.
    """

    folder: Path
    _pledged: Counter[str] = field(default_factory=Counter, repr=False, compare=False)

    @property
    def incoming(self) -> Path:
        """Where bytes go until the upload is whole."""
        return self.folder / "incoming"

    def open(self, before: datetime | None = None) -> None:
        """Create the folders and remove what an interrupted process left half-uploaded.

        before: only what nobody has written to since, where other processes receive uploads too.
        """
        self.incoming.mkdir(parents=True, exist_ok=True)
        for leftover in self.incoming.iterdir():
            with suppress(FileNotFoundError):  # another process ended its upload
                if before is None or leftover.stat().st_mtime < before.timestamp():
                    leftover.unlink()

    def receive(self, name: str) -> "IncomingTrace":
        """A file to write an upload into."""
        return IncomingTrace(self, name)

    def pledge(self, trace: StoredTrace) -> None:
        """A job that refers to this trace will be stored."""
        self._pledged[trace.sha256] += 1

    def settle(self, traces: Sequence[StoredTrace]) -> None:
        """The job these traces came for is stored, or will not be."""
        self._pledged.subtract(trace.sha256 for trace in traces)
        for digest in {trace.sha256 for trace in traces}:
            if self._pledged[digest] <= 0:
                del self._pledged[digest]

    def remove(self, digest: str) -> None:
        """Remove a trace, unless it is pledged to a job that is about to be stored."""
        if digest not in self._pledged:
            (self.folder / digest).unlink(missing_ok=True)

    def path(self, trace: StoredTrace) -> Path:
        """Where the bytes of a stored trace are."""
        return self.folder / trace.sha256


class IncomingTrace:
    """Bytes on their way to disk: write, then `commit` or `discard`."""

    def __init__(self, store: TraceStore, name: str) -> None:
        self.name = "".join(c if c.isprintable() else "?" for c in name)[:MAX_NAME_CHARACTERS]
        self.size_bytes = 0
        self._store = store
        self._digest = sha256()
        self.path = store.incoming / uuid4().hex
        self._file: BinaryIO = self.path.open("xb")

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data)
        self._digest.update(data)
        self.size_bytes += len(data)

    def close(self) -> None:
        """No more bytes will come."""
        self._file.close()

    def commit(self) -> StoredTrace:
        """Move the file to its content's name. The same content twice is one file."""
        self.close()
        stored = StoredTrace(sha256=self._digest.hexdigest(), name=self.name, size_bytes=self.size_bytes)
        os.replace(self.path, self._store.path(stored))
        self._store.pledge(stored)
        return stored

    def discard(self) -> None:
        """Remove what was written; after `commit` this does nothing."""
        self.close()
        self.path.unlink(missing_ok=True)
