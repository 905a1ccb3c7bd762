"""Answers about untrusted texts that are remembered: few of them, and of short texts only.

What is remembered outlives the file it came from, in a service for good. A text of megabytes is asked about once and
forgotten, so that files cannot fill the memory with their names.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

LONGEST_REMEMBERED: Final = 1_024

P = ParamSpec("P")
T = TypeVar("T")


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Like `lru_cache(most)`, except that calls with a longer text among their positional arguments are not kept."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(most)(function)

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            for argument in args:
                if isinstance(argument, str) and len(argument) > LONGEST_REMEMBERED:
                    return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # they are texts and flags

        return answer

    return decorate
