"""What a process of the pool is given to do in a test."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

from projector.errors import CorruptTrace


def pid_and_double(number: int) -> tuple[int, int]:
    return os.getpid(), 2 * number


def dies_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def leaves_at_three(number: int) -> int:
    if number == 3:
        os._exit(7)
    return number


def is_corrupt(name: str) -> NoReturn:
    raise CorruptTrace(f"{name} is broken", hint="copy it again")


class OddError(Exception):
    """One that cannot be pickled and put together again."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


def is_odd(_number: int) -> NoReturn:
    raise OddError("strange", "thing")


def answer_with_a_lock(_number: int) -> object:
    return threading.Lock()


def waits_for_ever(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    threading.Event().wait()


def name_of_main(_number: int) -> str | None:
    return getattr(sys.modules["__main__"], "__file__", None)
