"""Error figures of scored rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.reports import ErrorFigures
from agents.evaluation.scored import Scored

Values = NDArray[np.float64]
INTERVAL_QUANTILES = (0.1, 0.9)


def error_figures(scored: Sequence[Scored], factors: Sequence[float] | None = None) -> ErrorFigures:
    """Figures over the rows that print a speed. factors: one a row, multiplied on its projection and interval."""
    levels = [1.0] * len(scored) if factors is None else factors
    timed = [(one, level) for one, level in zip(scored, levels, strict=True) if one.measured_s is not None]
    if not timed:
        return ErrorFigures(n=0)
    measured = np.array([one.measured_s for one, _ in timed], dtype=np.float64)
    level = np.array([level for _, level in timed])
    projected = level * np.array([one.projected_s for one, _ in timed])
    intervals = [one.projection.step_time_interval_s for one, _ in timed]
    low, high = (level * np.array([getattr(interval, end) for interval in intervals]) for end in ("low", "high"))
    error = projected / measured - 1.0
    ratio_10, ratio_90 = np.quantile(measured / projected, INTERVAL_QUANTILES)
    return ErrorFigures(
        n=len(timed),
        mape=float(np.abs(error).mean()),
        median_error=float(np.median(np.abs(error))),
        bias=float(error.mean()),
        coverage_80=float(((low <= measured) & (measured <= high)).mean()),
        width_80=float(np.median((high - low) / projected)),
        ratio_10=float(ratio_10),
        ratio_90=float(ratio_90),
    )
