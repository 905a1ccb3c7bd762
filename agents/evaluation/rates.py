"""Shares with their Wilson intervals."""

import math
from collections.abc import Sequence

from agents.evaluation.reports import Rate

Z_95 = 1.959963984540054


def rate(hits: Sequence[float]) -> Rate:
    """The share of hits (0 to 1 each) among n trials, with its 95 % Wilson interval (Wilson 1927, score interval)

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).
    """
    n, total = len(hits), float(sum(hits))
    if n == 0:
        return Rate(hits=0.0, n=0, rate=None, low=None, high=None)
    p, z2 = total / n, Z_95**2
    middle = p + z2 / (2 * n)
    half = Z_95 * math.sqrt(max(p * (1 - p), 0.0) / n + z2 / (4 * n * n))
    scale = 1 + z2 / n
    return Rate(hits=total, n=n, rate=p, low=max(0.0, (middle - half) / scale), high=min(1.0, (middle + half) / scale))
