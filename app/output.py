"""Stdout that tells its failures apart from all others: a closed pipe, a full disk, no stdout at all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO


class OutputFailed(Exception):
    """What a command printed could not be written."""


class _Checked:
    """The stream, with OutputFailed for what goes wrong while writing."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text."""
        if self._stream is None:
            raise OutputFailed("stdout is closed")
        try:
            return self._stream.write(text)
        except (OSError, ValueError) as error:
            raise OutputFailed(_reason(error)) from error

    def flush(self) -> None:
        """Hand on what is buffered."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except (OSError, ValueError) as error:
            raise OutputFailed(_reason(error)) from error

    def isatty(self) -> bool:
        """Whether people read it."""
        return self._stream is not None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def checked_stdout() -> Iterator[None]:
    """Raise OutputFailed where something of the block's output cannot be written, at the latest at its end."""
    stream = sys.stdout
    checked: Any = _Checked(stream)
    try:
        with redirect_stdout(checked):
            try:
                yield
            finally:
                checked.flush()
    except OutputFailed:
        # what is still buffered would fail once more when the interpreter ends
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
