"""Error figures of serving rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.serving_cases import Metric
from agents.evaluation.serving_reports import ServingFigures
from agents.evaluation.serving_scored import ServingScored
from agents.evaluation.sweeps import FEWEST_FOR_RANKS, spearman

Values = NDArray[np.float64]
RATE: Metric = "decode_tokens_per_s_per_chip"


def figures(
    by: str, value: str, metric: Metric, scored: Sequence[ServingScored], slower: Values | None = None
) -> ServingFigures | None:
    """Errors of one metric over the rows that print it; None where none does.

    slower: one a row, multiplied on its projected seconds (another set of constants).
    """
    printing = [(one, place) for place, one in enumerate(scored) if metric in one.projected]
    if not printing:
        return None
    ones = [one for one, _ in printing]
    measured = np.array([one.measured(metric) for one in ones], dtype=np.float64)
    projected = np.array([one.projected[metric] for one in ones])
    if slower is not None:
        by_row = slower[[place for _, place in printing]]
        projected = projected / by_row if metric == RATE else projected * by_row
    error, ratio = projected / measured - 1, measured / projected
    low, high = (np.array([getattr(one, end) for one in ones]) for end in ("low_factor", "high_factor"))
    if metric == RATE:
        low, high = 1 / high, 1 / low
    roofline = np.array([one.roofline_tpot_s for one in ones]) if metric == "tpot_s" else None
    ranked = len(set(measured.tolist())) >= FEWEST_FOR_RANKS
    ratio_10, ratio_90 = np.quantile(ratio, (0.1, 0.9))
    return ServingFigures(
        by=by,
        value=value,
        metric=metric,
        n=len(ones),
        mape=float(np.abs(error).mean()),
        median_error=float(np.median(np.abs(error))),
        bias=float(error.mean()),
        spearman=spearman(projected, measured) if ranked else None,
        coverage_80=float(((low <= ratio) & (ratio <= high)).mean()),
        ratio_10=float(ratio_10),
        ratio_90=float(ratio_90),
        roofline_mape=None if roofline is None else float(np.abs(roofline / measured - 1).mean()),
        roofline_median_error=None if roofline is None else float(np.median(np.abs(roofline / measured - 1))),
        roofline_spearman=None if roofline is None or not ranked else spearman(roofline, measured),
    )
