"""Decimal microseconds to integer nanoseconds without passing through a float.

Profilers write microseconds with a fraction, as absolute times of about 1e15 us; a double has 53 bits and cannot hold
such a time to the nanosecond (its spacing there is 125 ns). The decimal digits are therefore read as integers.
"""

from collections.abc import Sequence
from decimal import Decimal, localcontext

import numpy as np

from traces.trace import Ints, Mask

MAX_NS = 2**62
"""Times at or beyond this (146 years) are refused, so that a sum of two never overflows int64."""

_WIDEST_INTEGER_PART = 16
_ZERO, _FOUR, _NINE, _POINT = 48, 52, 57, 46


def exact_ns(texts: Sequence[bytes]) -> tuple[Ints, Mask]:
    """Nanoseconds of decimal microsecond texts such as b"1365627949885.185" or b'"17.5"', and which were readable.

    Digits beyond the nanosecond are rounded half to even. Unreadable texts (empty, null, NaN, out of range) give 0.
    """
    if not texts:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)
    if texts[0].startswith(b'"'):
        texts = [text.strip(b'"') for text in texts]
    values, plain = _plain_decimals(texts)
    for row in np.flatnonzero(~plain).tolist():
        slow = _any_number(texts[row])
        plain[row] = slow is not None
        values[row] = slow or 0
    return values, plain


def _plain_decimals(texts: Sequence[bytes]) -> tuple[Ints, Mask]:
    """All texts at once, a column of characters at a time; the second array marks those of the form 123 or 123.456."""
    width = max(1, min(max(map(len, texts)), _WIDEST_INTEGER_PART + 5))
    cells = np.array(texts, dtype=f"S{width}").view(np.uint8).reshape(len(texts), width)
    values = np.zeros(len(texts), dtype=np.int64)
    fraction_digits = np.zeros(len(texts), dtype=np.int64)
    after_point = np.zeros(len(texts), dtype=np.bool_)
    plain = np.fromiter((0 < len(text) <= width for text in texts), dtype=np.bool_, count=len(texts))
    plain &= (cells[:, 0] >= _ZERO) & (cells[:, 0] <= _NINE)
    for column in range(width):
        cell = cells[:, column]
        digit = (cell >= _ZERO) & (cell <= _NINE)
        point = (cell == _POINT) & ~after_point
        beyond = digit & (fraction_digits == 3)
        plain &= (digit & (~beyond | (cell == _ZERO))) | point | (cell == 0)
        taken = digit & ~beyond & plain
        values[taken] = values[taken] * 10 + (cell[taken] - np.uint8(_ZERO))
        fraction_digits += taken & after_point
        after_point |= point
        if column == _WIDEST_INTEGER_PART - 1:  # with its fraction a larger one would not fit 64 bits
            plain &= after_point | (cell == 0) | (cells[:, 0] <= _FOUR)
        if column == _WIDEST_INTEGER_PART:
            plain &= after_point | (cell == 0)
    values *= 10 ** (3 - fraction_digits)
    return values, plain & (values < MAX_NS)


def _any_number(text: bytes) -> int | None:
    """One number of any spelling, exactly; None where it is none or out of range."""
    try:
        with localcontext() as context:
            context.prec = 60
            number = Decimal(text.decode("ascii").strip().strip('"').strip()) * 1000
            if not number.is_finite() or abs(number) >= MAX_NS:
                return None
            return int(number.to_integral_value())
    except (ArithmeticError, ValueError):  # ValueError holds UnicodeDecodeError
        return None
