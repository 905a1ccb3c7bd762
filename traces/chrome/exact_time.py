"""Decimal microseconds to integer nanoseconds without passing through a float.

Profilers write microseconds with a fraction, as absolute times of about 1e15 us; a double has 53 bits and cannot hold
such a time to the nanosecond (its spacing there is 125 ns). The decimal digits are therefore read as integers.
"""

import json
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Final

import numpy as np

from traces.trace import Ints, Mask

DIGITS: Final = b"0123456789.,"
"""What a plain list of decimals is made of."""

MAX_NS = 2**62
"""Times at or beyond this (146 years) are refused, so that a sum of two never overflows int64."""

_POINT, _COMMA, _FOUR = 46, 44, 52
_READ_ONE_BY_ONE: Final = 16
_WIDEST_INTEGER_PART: Final = 16
"""A number of so many digits fits 64 bits in nanoseconds where the first is at most a 4."""
_NS_DIGITS: Final = 3
_SCALES: Final = np.array([1000, 100, 10, 1, 1000], dtype=np.int64)
"""By digits behind the point; the last stands for no point."""


def exact_ns(texts: Sequence[bytes]) -> tuple[Ints, Mask]:
    """Nanoseconds of decimal microsecond texts such as b"1365627949885.185" or b'"17.5"', and which were readable.

    Digits beyond the nanosecond are rounded half to even. Unreadable texts (empty, null, NaN, out of range) give 0.
    """
    values = plain_ns(b",".join(texts).replace(b'"', b""), len(texts))
    if values is not None:
        return values, np.ones(len(texts), dtype=np.bool_)
    if len(texts) > _READ_ONE_BY_ONE:  # the few odd ones shall not make the others slow
        halves = exact_ns(texts[: len(texts) // 2]), exact_ns(texts[len(texts) // 2 :])
        return np.concatenate([half[0] for half in halves]), np.concatenate([half[1] for half in halves])
    read = [_any_number(text) for text in texts]
    readable = np.array([value is not None for value in read], dtype=np.bool_)
    return np.array([value or 0 for value in read], dtype=np.int64), readable


def plain_ns(joined: bytes, count: int) -> Ints | None:
    """Nanoseconds of `count` texts of the form 123 or 123.456, with commas between; None where one is of another."""
    if not count:
        return np.empty(0, dtype=np.int64)
    cells = np.frombuffer(joined, dtype=np.uint8)
    ends = np.append(np.flatnonzero(cells == _COMMA), len(cells))
    if len(ends) != count or joined.translate(None, DIGITS):
        return None
    starts = np.append(0, ends[:-1] + 1)
    points = np.flatnonzero(cells == _POINT)
    if len(points) != count:
        owner = np.searchsorted(ends, points)
        if (owner[1:] == owner[:-1]).any():
            return None
        points, found = ends.copy(), points
        points[owner] = found
    whole_digits, fraction_digits = points - starts, ends - points - 1  # -1 where there is no point
    if whole_digits.min() < 1 or fraction_digits.min() < -1 or fraction_digits.max() > _NS_DIGITS:
        return None
    widest = whole_digits >= _WIDEST_INTEGER_PART
    if whole_digits.max() > _WIDEST_INTEGER_PART or (cells[starts[widest]] > _FOUR).any():
        return None
    values = np.fromstring(joined.replace(b".", b""), dtype=np.int64, sep=",")
    if fraction_digits.min() < _NS_DIGITS:
        values *= _SCALES[fraction_digits]
    return values if values.max() < MAX_NS else None


def _any_number(text: bytes) -> int | None:
    """One number of any spelling, exactly; None where it is none or out of range."""
    try:
        plain = json.loads(text) if text.startswith(b'"') else text.decode("ascii")
        with localcontext() as context:
            context.prec = 60
            number = Decimal(plain.strip()) * 1000
            if not number.is_finite() or abs(number) >= MAX_NS:
                return None
            return int(number.to_integral_value())
    except (ArithmeticError, ValueError):  # ValueError holds UnicodeDecodeError
        return None
