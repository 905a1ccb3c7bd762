"""Rows by a key of theirs (thread, stream, name), and over ranges that overlap.

However many keys or ranges a file makes up, each row is looked at a few times: the cost grows with the rows alone.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from traces.trace import Ints

Keys = NDArray[np.integer]


def places_by(keys: Keys) -> Iterator[tuple[int, Ints]]:
    """Every distinct key, ascending, and the places where it stands, ascending."""
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    cuts = np.flatnonzero(sorted_keys[1:] != sorted_keys[:-1]) + 1 if len(keys) else np.empty(0, dtype=np.int64)
    begins, ends = [0, *cuts.tolist()], [*cuts.tolist(), len(keys)]
    for begin, end in zip(begins, ends, strict=True) if len(keys) else ():
        yield int(sorted_keys[begin]), order[begin:end]


def sums_by(keys: Keys, values: Ints) -> tuple[Keys, Ints]:
    """The distinct keys, ascending, and the exact sum of the values of each."""
    distinct, place = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, place.ravel(), values)
    return distinct, sums


def over_ranges(values: Ints, first: Ints, behind: Ints, pick: Callable[[Ints, Ints], Ints]) -> Ints:
    """np.minimum or np.maximum (`pick`) over values[first:behind] of each range; no range may be empty.

    A range is covered by two pieces of a power of two, so pieces twice as wide are made until the widest is reached.
    """
    found = np.zeros(len(first), dtype=np.int64)
    lengths = behind - first
    widest = int(lengths.max(initial=0))
    width = 1
    while width <= widest:
        mine = np.flatnonzero((lengths >= width) & (lengths < 2 * width))
        found[mine] = pick(values[first[mine]], values[behind[mine] - width])
        values = pick(values[:-width], values[width:])
        width *= 2
    return found
