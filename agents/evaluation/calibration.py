"""Stated chances against outcomes: a logistic correction (Platt 1999), expected calibration error, Brier score."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.reports_advice import ReliabilityBin
from agents.practice.model import Calibration

Column = NDArray[np.float64]
LEAST_IN_A_BIN = 20
MOST_BINS = 10
# a weak pull to leave shares as they are, in pseudo-observations of the logit's curvature
PULL = 1.0
STEPS = 50


def platt(shares: Sequence[float], outcomes: Sequence[bool], ece: float = 0.0) -> Calibration | None:
    """The correction that fits best; None where there are too few picks for two bins."""
    if len(shares) < 2 * LEAST_IN_A_BIN:
        return None
    share = np.clip(np.array(shares), 1e-6, 1 - 1e-6)
    design = np.stack([np.ones(len(share)), np.log(share / (1 - share))], axis=1)
    happened, prior = np.array(outcomes, dtype=np.float64), np.array([0.0, 1.0])
    weights = prior.copy()
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-(design @ weights)))
        slope = design.T @ (happened - chance) - PULL * (weights - prior)
        curvature = (design * (chance * (1 - chance))[:, None]).T @ design + PULL * np.eye(2)
        step = np.linalg.solve(curvature, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-9:
            break
    return Calibration(intercept=float(weights[0]), slope=float(weights[1]), cases=len(shares), ece=ece)


def reliability(chances: Sequence[float], outcomes: Sequence[bool]) -> tuple[ReliabilityBin, ...]:
    """Bins of equal size, at least LEAST_IN_A_BIN each, in the order of the stated chance; one bin where fewer."""
    order = np.argsort(np.array(chances), kind="stable")
    count = max(1, min(MOST_BINS, len(order) // LEAST_IN_A_BIN))
    return tuple(
        ReliabilityBin(
            n=len(rows),
            stated=float(np.mean([chances[row] for row in rows])),
            happened=float(np.mean([outcomes[row] for row in rows])),
        )
        for rows in np.array_split(order, count)
        if len(rows)
    )


def calibration_error(bins: Sequence[ReliabilityBin]) -> float | None:
    """Expected calibration error: |stated - happened| weighted by the size of the bins; None without any."""
    total = sum(one.n for one in bins)
    return sum(one.n * abs(one.stated - one.happened) for one in bins) / total if total else None


def brier(chances: Sequence[float], outcomes: Sequence[bool]) -> float | None:
    """Mean squared error of stated chances (Brier 1950); None without any."""
    return float(np.mean((np.array(chances) - np.array(outcomes)) ** 2)) if len(chances) else None
