"""Why a row or a workload cannot be scored: raised inside this package, a value in every report."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

T = TypeVar("T")
LONGEST_REASON = 300


class Refused(Exception):
    """A row that cannot be projected or compared; the text is the reason a reader is shown, cut where it is long."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}...")


def first_problem(error: ValidationError) -> str:
    """What a record says of the first value it refused, and which that is."""
    problem = error.errors()[0]
    place = ".".join(map(str, problem["loc"]))
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])


def or_refused(work: Callable[[], T]) -> "T | Refused":
    """What the work returns, or the refusal it ends in.

    Rows come from files nobody has seen: one odd row must not end the run over all others. What was not foreseen is
    refused too, and its reason says that it was not, so that it is seen and mended.
    """
    try:
        return work()
    except Refused as reason:
        return reason
    except Exception as error:
        lines = str(error).splitlines() or [""]
        return Refused(f"not foreseen, {type(error).__name__}: {lines[0][:200]}")
