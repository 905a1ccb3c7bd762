"""One process of the pool, seen from both sides of its pipe.

It is a fresh interpreter that imports the work and nothing of the program around it: `multiprocessing` would import the
main module again, which costs a service or a command its whole start, and loops where a script has no guard.
"""

import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final

from projector.errors import WorkersUnavailable

_FAREWELL_S: Final = 2.0
_READY: Final = "ready"
_START: Final = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from multiprocessing.connection import Connection; pipe = Connection(int(sys.argv[1])); "
    "sys.path[:] = pipe.recv(); from traces.pool_process import serve; serve(pipe)"
)

SUPPORTED: Final = os.name == "posix"


class Worker:
    """A process, its pipe, and the number of the task it has in hand.

    ready: whether it said that it runs; a process that ends before could not be started at all.
    Raises `WorkersUnavailable` where the system has no room for another process.
    """

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.connection, theirs = Pipe()
        with theirs:
            command = [sys.executable, "-c", _START, str(theirs.fileno())]
            try:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter, a program of ours
                    command, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
                )
            except OSError as fault:
                self.connection.close()
                raise WorkersUnavailable(
                    f"a process that reads traces could not be started: {fault.strerror}", hint="read with one worker"
                ) from fault
        self.ready = False
        self.index = -1
        self._send(sys.path)
        self._send(work)

    def give(self, index: int, task: object) -> None:
        """Hand it a task."""
        self.index = index
        self._send(task)

    def answer(self) -> tuple[Any, Exception | None] | None:
        """(result, error) of its task, where the pipe has something; None where that was the word that it is ready.

        Raises EOFError where the process has ended.
        """
        try:
            said = self.connection.recv()
        except OSError as broken:
            raise EOFError from broken
        if not self.ready and said == _READY:
            self.ready = True
            return None
        result, fault = said
        return result, fault

    def how_it_ended(self) -> str:
        """Signal or exit code of a process whose pipe has closed."""
        try:
            code = self._process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def end(self, *, now: bool = False) -> None:
        """Let it go; `now` in the middle of its work."""
        self.connection.close()
        if not now:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_FAREWELL_S)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _send(self, something: object) -> None:
        # a process that has died is noticed when its answer is waited for
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(something)


def serve(connection: Connection) -> None:
    """Life of the process: the work, then one task after the other until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with connection, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        work = connection.recv()
        connection.send(_READY)
        while True:
            connection.send(_answer(work, connection.recv()))


def _answer(work: Callable[[Any], Any], task: object) -> tuple[Any, Exception | None]:
    try:
        return work(task), None
    except Exception as fault:
        return None, _portable(fault)


def _portable(fault: Exception) -> Exception:
    """The exception, or one that says the same where it cannot be pickled; with its traceback, which stays behind."""
    text = "".join(traceback.format_exception(fault))
    try:
        pickle.loads(pickle.dumps(fault))  # noqa: S301 - bytes of our own
    except Exception:
        fault = RuntimeError(repr(fault))
    fault.add_note(text)
    return fault
