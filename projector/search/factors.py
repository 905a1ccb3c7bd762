"""Divisors and ordered factorisations: the ways to lay devices out along axes."""

from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors of a positive number, ascending."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


@cache
def ordered_factorisations(number: int, axes: int) -> NDArray[np.int64]:
    """Every way to write `number` as a product of `axes` ordered factors, shape [m, axes], lexicographic.

    For number = 2**k there are binomial(k + axes - 1, axes - 1) of them: 165 for 256 over 4 axes.
    """
    found = np.array(_factorise(number, axes), dtype=np.int64).reshape(-1, axes)
    found.setflags(write=False)
    return found


def _factorise(number: int, axes: int) -> list[tuple[int, ...]]:
    if axes == 1:
        return [(number,)]
    return [(first, *rest) for first in divisors(number) for rest in _factorise(number // first, axes - 1)]
