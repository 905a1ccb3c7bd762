"""The figures a score prints: errors and rank correlation."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def ranks(values: Sequence[float]) -> Values:
    """Ranks from 0, equal values sharing their mean rank."""
    column = np.asarray(values, dtype=np.float64)
    order = np.argsort(column, kind="stable")
    ranked = np.empty(len(column))
    ranked[order] = np.arange(len(column))
    for value in np.unique(column):
        same = column == value
        ranked[same] = ranked[same].mean()
    return ranked


def spearman(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Rank correlation; nan where one side is constant."""
    a, b = ranks(predicted), ranks(measured)
    if a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def error_line(name: str, predicted: Sequence[float], measured: Sequence[float]) -> str:
    """One row: n, mean and median absolute error, bias, in per cent."""
    error = np.asarray(predicted, dtype=np.float64) / np.asarray(measured, dtype=np.float64) - 1
    return (
        f"{name:<44} n {len(error):>5}  MAPE {100 * np.abs(error).mean():>6.1f} %  "
        f"median {100 * np.median(np.abs(error)):>6.1f} %  bias {100 * error.mean():>+7.1f} %"
    )


def spread_line(predicted: Sequence[float], measured: Sequence[float]) -> str:
    """10th, 50th and 90th percentile of measured over predicted: what the intervals of projections rest on."""
    low, middle, high = np.quantile(np.asarray(measured) / np.asarray(predicted), [0.1, 0.5, 0.9])
    return f"measured / projected: 10 % {low:.2f}, median {middle:.2f}, 90 % {high:.2f}"
