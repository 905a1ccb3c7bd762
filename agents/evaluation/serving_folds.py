"""How far figures of serving rest on the rows they are printed for: constants fitted anew without a row's group."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.refit import Linear, Values, held_out
from agents.evaluation.reports import FittedParameter, IntervalClass
from agents.evaluation.serving_cases import METRICS, Metric
from agents.evaluation.serving_errors import RATE, figures
from agents.evaluation.serving_parameters import ServingParameter
from agents.evaluation.serving_refit import Observation, observation_weights, observations, serving_linear
from agents.evaluation.serving_reports import ServingFigures, ServingFold, ServingFolds
from agents.evaluation.serving_scored import ServingScored
from projector.serving_intervals import SERVING_CLASSES, ServingClass

STATEMENT = (
    "No constant is keyed by model, workload or row. Those that were chosen on published serving points are fitted "
    "here together, pulled to what they would be without a fit, on the rows that do not share the row's own "
    "(family, chip) group, or its engine; the figures 'as projected' use the values in the files."
)
TPOT: Metric = "tpot_s"


def serving_folds(scored: Sequence[ServingScored]) -> ServingFolds:
    """The folds over all figures that rows print."""
    seen = observations(scored)
    linear, weights = serving_linear(scored, seen), observation_weights(seen)
    everything = linear.fitted(np.ones(len(seen), dtype=np.bool_), weights)
    by_group = held_out(linear, [one.group for one in seen], weights)
    by_engine = held_out(linear, [one.one.case.stack.engine for one in seen], weights)
    named = (
        ("as projected", np.ones(len(seen))),
        ("fitted on all rows", linear.projected(everything) / linear.projected_s),
        ("own (family, chip) group left out", by_group),
        ("own engine left out", by_engine),
    )
    return ServingFolds(
        statement=STATEMENT,
        figures=tuple(fold for name, factor in named for fold in _folds(name, seen, factor)),
        parameters=_parameters(linear, everything),
        intervals=tuple(_intervals(seen, by_group, by_engine)),
        ranks=tuple(_ranks(seen, by_group)),
    )


def _parameters(linear: Linear[ServingParameter], fitted: Values) -> tuple[FittedParameter, ...]:
    return tuple(
        FittedParameter(
            name=parameter.name,
            prior=parameter.prior,
            spread=parameter.spread,
            basis=parameter.basis,
            present=float(linear.present[place]),
            fitted=float(linear.present[place] * np.exp(fitted[place])),
            rows=int(linear.rows[place]),
            groups=int(linear.groups[place]),
        )
        for place, parameter in enumerate(linear.parameters)
    )


def _folds(name: str, seen: Sequence[Observation], factor: Values) -> Iterator[ServingFold]:
    """The errors of every metric, dense models and mixtures of experts apart."""
    for metric in METRICS:
        for kind in ("dense", "mixture of experts"):
            places = [place for place, one in enumerate(seen) if one.metric == metric and one.one.case.kind == kind]
            if not places:
                continue
            ratio = np.array([seen[place].projected_s / seen[place].measured_s for place in places]) * factor[places]
            error = (1 / ratio if metric == RATE else ratio) - 1
            yield ServingFold(
                name=name,
                kind=kind,
                metric=metric,
                n=len(places),
                mape=float(np.abs(error).mean()),
                median_error=float(np.median(np.abs(error))),
                bias=float(error.mean()),
            )


def _ranks(seen: Sequence[Observation], factor: Values) -> Iterator[ServingFigures]:
    """TPOT out of fold inside each (model, chip, engine)."""
    members: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(seen):
        if one.metric == TPOT:
            case = one.one.case
            members[f"{case.row.model}, {case.hardware.id}, {case.row.engine}"].append(place)
    for value, places in sorted(members.items()):
        found = figures("model, chip, engine", value, TPOT, [seen[place].one for place in places], factor[places])
        if found is not None:
            yield found


def _intervals(seen: Sequence[Observation], by_group: Values, by_engine: Values) -> Iterator[IntervalClass]:
    """Percentiles of measured over projected TPOT by the classes of `projector.serving_intervals`: of engines that were
    seen with the row's group left out, of others with all rows of the engine left out."""
    for one in SERVING_CLASSES:
        chosen = _members(seen, one)
        if not chosen.any():
            continue
        factor = by_group if one.seen else by_engine
        ratio = np.array([each.measured_s / each.projected_s for each in seen])[chosen] / factor[chosen]
        low, high = np.quantile(ratio, (0.1, 0.9))
        yield IntervalClass(
            name=one.name,
            runs=int(chosen.sum()),
            low_factor=one.low_factor,
            high_factor=one.high_factor,
            ratio_10=float(low),
            ratio_90=float(high),
            coverage_80=float(((ratio >= one.low_factor) & (ratio <= one.high_factor)).mean()),
        )


def _members(seen: Sequence[Observation], one: ServingClass) -> NDArray[np.bool_]:
    return np.array(
        [each.metric == TPOT and each.one.case.architecture.is_moe == one.moe for each in seen], dtype=np.bool_
    )
