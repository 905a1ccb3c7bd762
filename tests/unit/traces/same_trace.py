"""Whether two ways of reading a file gave the same, in every column, mapping, count and word."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from projector.errors import TraceError
from traces.trace import Trace


def differences(left: Trace, right: Trace) -> list[str]:
    """Names of the fields in which two traces differ."""
    return [one.name for one in fields(Trace) if not _same(getattr(left, one.name), getattr(right, one.name))]


def outcome(read: Callable[[], tuple[Trace, ...]]) -> tuple[Trace, ...] | str:
    """The traces, or the error in words."""
    try:
        return read()
    except TraceError as fault:
        return f"{type(fault).__name__}: {fault}"


def assert_same(left: tuple[Trace, ...] | str, right: tuple[Trace, ...] | str) -> None:
    """Both are the same traces, or the same error."""
    if isinstance(left, str) or isinstance(right, str):
        assert left == right
        return
    assert len(left) == len(right)
    assert [differences(*pair) for pair in zip(left, right, strict=True)] == [[] for _ in left]


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    return bool(left == right)
