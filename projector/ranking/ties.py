"""Ranks that plans share where a projection cannot tell them apart."""

import numpy as np
from numpy.typing import NDArray

# Consecutive releases of one stack measure the same configuration a median of 1.9 % apart.
TIE_FRAC = 0.02


def shared_ranks(good: NDArray[np.float64], frac: float = TIE_FRAC) -> NDArray[np.int64]:
    """Competition ranks from 1 of figures of which more is better, shape [n], in the order given.

    The best figure leads a group, and every figure within `frac` of it, good (1 + frac) >= leader, shares its rank. The
    best of the rest leads the next group, whose rank is one more than the number of figures before it ("1 1 1 4"). A
    figure is compared with its leader alone, so that ties do not chain: no two of a group differ by more than frac.
    """
    order = np.argsort(-good, kind="stable")
    falling = good[order]
    ranks = np.empty(len(good), dtype=np.int64)
    start = 0
    while start < len(good):
        # falling figures: the group ends where the leader is out of reach
        end = int(np.searchsorted(-falling * (1 + frac), -falling[start], side="right"))
        end = max(end, start + 1)
        ranks[order[start:end]] = start + 1
        start = end
    return ranks
