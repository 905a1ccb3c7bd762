"""A conditional logit: which of a job's layouts is the adopted one, from a few figures of each (McFadden 1974).

    P(i) = exp(x_i b) / sum_j exp(x_j b)     over the layouts j of one job

Weights b maximise the penalised likelihood of the layouts that were adopted,

    sum_jobs w log sum_{i adopted} P(i) - sum_k lambda_k (b_k - prior_k)^2 / 2,

by Newton's method with step halving. A weight with a large penalty stays at its prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
MOST_STEPS = 50
LEAST_GAIN = 1e-7
SMALLEST_STEP = 1e-4


@dataclass(frozen=True)
class Choices:
    """Jobs stacked: figures [layouts of all jobs, features], adopted [layouts] 0 or 1, first [jobs] the row each
    job begins at. A job without an adopted layout bears on nothing."""

    figures: Column
    adopted: Column
    first: NDArray[np.intp]

    @property
    def job(self) -> NDArray[np.intp]:
        """The job of each layout."""
        counts = np.diff(np.append(self.first, len(self.adopted)))
        return np.repeat(np.arange(len(self.first)), counts)

    @classmethod
    def of(cls, figures: Sequence[Column], adopted: Sequence[Column]) -> "Choices":
        """Jobs one after the other; each has at least one layout."""
        counts = [len(one) for one in adopted]
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.intp)
        return cls(np.concatenate(figures), np.concatenate(adopted), first)


def shares(figures: Column, weights: Column) -> Column:
    """P of every layout of one job, shape [n]."""
    score = figures @ weights
    grown = np.exp(score - score.max())
    return np.asarray(grown / grown.sum(), dtype=np.float64)


def fitted(choices: Choices, job_weights: Column, prior: Column, penalty: Column) -> Column:
    """The weights, shape [features]. job_weights: [jobs], how much each job counts."""
    weights = prior.astype(np.float64).copy()
    value = _value(choices, weights, job_weights, prior, penalty)
    for _ in range(MOST_STEPS):
        slope, curvature = _slope(choices, weights, job_weights, prior, penalty)
        step, length = np.linalg.solve(curvature, slope), 1.0
        while (new := _value(choices, weights + length * step, job_weights, prior, penalty)) < value:
            length /= 2
            if length < SMALLEST_STEP:
                return weights
        weights, gained, value = weights + length * step, new - value, new
        if gained < LEAST_GAIN:
            break
    return weights


def _shares(choices: Choices, weights: Column) -> Column:
    score = choices.figures @ weights
    grown = np.exp(score - np.maximum.reduceat(score, choices.first)[choices.job])
    return np.asarray(grown / np.add.reduceat(grown, choices.first)[choices.job], dtype=np.float64)


def _value(choices: Choices, weights: Column, job_weights: Column, prior: Column, penalty: Column) -> float:
    hit = np.add.reduceat(_shares(choices, weights) * choices.adopted, choices.first)
    told = np.where(hit > 0, np.log(np.where(hit > 0, hit, 1.0)), 0.0)
    return float(job_weights @ told - 0.5 * penalty @ (weights - prior) ** 2)


def _slope(
    choices: Choices, weights: Column, job_weights: Column, prior: Column, penalty: Column
) -> tuple[Column, Column]:
    """(gradient, minus the part of the Hessian that is negative whatever the data: steps always climb)."""
    job, figures = choices.job, choices.figures
    share = _shares(choices, weights)
    among = share * choices.adopted
    hit = np.add.reduceat(among, choices.first)
    told = job_weights * (hit > 0)
    among = among / np.where(hit > 0, hit, 1.0)[job]
    slope = ((among - share) * told[job]) @ figures - penalty * (weights - prior)
    mean = np.add.reduceat(share[:, None] * figures, choices.first)
    apart = figures - mean[job]
    curvature = (apart * (share * told[job])[:, None]).T @ apart + np.diag(penalty)
    return slope, curvature
