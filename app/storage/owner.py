"""Who owns a data folder: one process, unless the settings say that several share it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from app.errors import DataDirBusy, InvalidSettings

LOCK_NAME = "service.lock"


class DataDirLock:
    """The lock of a data folder. It may be held twice by the process that has it, and ends with that process."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._lock = FileLock(data_dir / LOCK_NAME, thread_local=False)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it. DataDirBusy: another process does. InvalidSettings: the folder cannot be written."""
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise DataDirBusy(
                "another service owns this data folder",
                hint="stop it, or choose another folder with --data-dir or SHARDWISE_DATA_DIR",
            ) from error
        except OSError as error:
            raise InvalidSettings(
                f"data_dir cannot be used: {error.strerror}", hint="name a writable folder"
            ) from error
        try:
            yield
        finally:
            self._lock.release()
