"""Work in daemon threads: unlike those of an executor, they do not hold up the end of the process."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

PREFIX = "shardwise: "

T = TypeVar("T")


def in_daemon_thread(function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
    """Call `function` in a thread of its own. A future that was cancelled discards what comes of it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_value: Callable[[], None]) -> None:
        if not future.done():
            set_value()

    def work() -> None:
        try:
            result = function(*arguments)
        except Exception as error:
            done = _bound(future.set_exception, error)
        else:
            done = _bound(future.set_result, result)
        # the loop is closed where the service stopped without waiting
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, done)

    threading.Thread(target=work, name=_thread_name(function), daemon=True).start()
    return future


def any_at_work() -> bool:
    """Whether a thread started here still runs."""
    return any(thread.name.startswith(PREFIX) for thread in threading.enumerate())


def count_at_work(*functions: Callable[..., object]) -> int:
    """How many threads started here still run one of these functions, whoever waits for them."""
    names = {_thread_name(function) for function in functions}
    return sum(thread.name in names for thread in threading.enumerate())


def _thread_name(function: Callable[..., object]) -> str:
    return f"{PREFIX}{getattr(function, '__name__', 'work')}"


def _bound(function: Callable[[T], None], value: T) -> Callable[[], None]:
    return lambda: function(value)
