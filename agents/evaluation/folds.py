"""How far error figures rest on the rows they are printed for: every constant fitted anew without a row's own group.

All parameters of `agents.evaluation.parameters` are fitted together on the rows of the other (family, chip) groups, and
once more on those of other sources; the row is then projected with what it had no part in. Around the present values
projections are linear in the logarithms of the parameters (`agents.evaluation.refit`); for the largest groups the rows
are projected again with the fitted values themselves, and the difference is printed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.constants import constants
from agents.evaluation.errors import error_figures
from agents.evaluation.parameters import PARAMETERS, Parameter
from agents.evaluation.refit import Linear, held_out, moved, row_weights, training_linear
from agents.evaluation.reports import Check, FittedParameter, FoldFigures, Folds, IntervalClass
from agents.evaluation.scored import Scored, score_all
from agents.evaluation.sweeps import sweep_figures, sweeps
from projector.intervals import CLASSES, kind

Values = NDArray[np.float64]
STATEMENT = (
    "No constant is keyed by model, workload or row. Those that were chosen on published step times are fitted here "
    "together, pulled to what they would be without a fit, on the rows that do not share the row's own (family, chip) "
    "group, or its source; the figures 'as projected' use the values in the files."
)
CHECKED_GROUPS = 3


def folds(scored: Sequence[Scored]) -> Folds:
    """The folds over the rows that print a speed."""
    timed = [one for one in scored if one.measured_s is not None]
    linear, weights = training_linear(timed, PARAMETERS), row_weights(timed)
    everything = linear.fitted(np.ones(len(timed), dtype=np.bool_), weights)
    groups = [one.case.row.group for one in timed]
    by_group = held_out(linear, groups, weights)
    by_source = held_out(linear, [one.case.row.source for one in timed], weights)
    present = np.ones(len(timed))
    fitted = linear.projected(everything) / linear.projected_s
    named = (("as projected", present), ("fitted on all rows", fitted))
    left_out = (("own (family, chip) group left out", by_group), ("own source left out", by_source))
    return Folds(
        statement=STATEMENT,
        figures=tuple(_figures(name, timed, factor) for name, factor in (*named, *left_out)),
        parameters=tuple(
            FittedParameter(
                name=parameter.name,
                prior=parameter.prior,
                spread=parameter.spread,
                basis=parameter.basis,
                present=float(linear.present[place]),
                fitted=float(linear.present[place] * np.exp(everything[place])),
                rows=int(linear.rows[place]),
                groups=int(linear.groups[place]),
            )
            for place, parameter in enumerate(linear.parameters)
        ),
        checks=tuple(_check(timed, linear, weights, name) for name, _ in Counter(groups).most_common(CHECKED_GROUPS)),
        intervals=_intervals(timed, by_group),
        constants=constants(scored, timed),
        sources={
            one.case.hardware.id: one.case.hardware.calibration.source
            for one in sorted(scored, key=lambda one: one.case.hardware.id)
        },
    )


def _figures(name: str, timed: Sequence[Scored], factor: Values) -> FoldFigures:
    """Errors, and order and regret inside sweeps, with every row's projection multiplied."""
    changed = [_times(one, float(by)) for one, by in zip(timed, factor, strict=True)]
    same = sweep_figures(sweeps(changed, {}, [one.case.row for one in timed]).same)
    return FoldFigures(
        name=name,
        errors=error_figures(timed, factor.tolist()),
        order_accuracy=same[0].order_accuracy if same else None,
        top1_regret=same[0].top1_regret if same else None,
        top1_regret_worst=same[0].top1_regret_worst if same else None,
    )


def _times(one: Scored, factor: float) -> Scored:
    time_s = one.projection.step_time_s * factor
    return replace(one, projection=one.projection.model_copy(update={"step_time_s": time_s}))


def _check(timed: Sequence[Scored], linear: Linear[Parameter], weights: Values, group: str) -> Check:
    """The rows of a group projected again with the values of the fit that left it out."""
    out = np.array([one.case.row.group == group for one in timed])
    d = linear.fitted(~out, weights)
    again = score_all(moved([one.case for one, is_out in zip(timed, out, strict=True) if is_out], linear, d))
    seconds = np.array([one.projected_s if isinstance(one, Scored) else np.nan for one in again])
    difference = np.abs(np.log(seconds / linear.projected(d)[out]))
    return Check(
        group=group,
        rows=int(out.sum()),
        linear_mape=float(np.abs(linear.projected(d)[out] / linear.measured_s[out] - 1).mean()),
        projected_mape=float(np.abs(seconds / linear.measured_s[out] - 1).mean()),
        median_difference=float(np.median(difference)),
        largest_difference=float(difference.max()),
    )


def _intervals(timed: Sequence[Scored], factor: Values) -> tuple[IntervalClass, ...]:
    """Percentiles of measured over projected time out of fold, by the classes of `projector.intervals`."""
    place = np.array([_class(one) for one in timed], dtype=np.int64)
    ratio = np.array([one.measured_s or np.nan for one in timed]) / (
        factor * np.array([one.projected_s for one in timed])
    )
    found = []
    for number, one in enumerate(CLASSES):
        own = ratio[place == number]
        if len(own) == 0:
            continue
        low, high = np.quantile(own, (0.1, 0.9))
        inside = (own >= one.low_factor) & (own <= one.high_factor)
        found.append(
            IntervalClass(
                name=one.name,
                runs=len(own),
                low_factor=one.low_factor,
                high_factor=one.high_factor,
                ratio_10=float(low),
                ratio_90=float(high),
                coverage_80=float(inside.mean()),
            )
        )
    return tuple(found)


def _class(one: Scored) -> int:
    breakdown = one.projection.breakdown
    exposed_frac = breakdown.exposed_communication_s / max(breakdown.total_s, 1e-30)
    model = kind(one.case.architecture)
    return max(
        number for number, each in enumerate(CLASSES) if each.model == model and exposed_frac >= each.exposed_frac
    )
