"""Figures of anchored projections over pairs (anchor, other run of its sweep); every sweep weighs the same."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.reports_anchor import AnchorErrors, AnchorFolds, AnchorRanking
from agents.evaluation.sweeps import PAIR_DIFFERENCE

Values = NDArray[np.float64]
ALL = "all"
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
STATEMENT = (
    "How much of a ratio another plan keeps (`projector.anchor.transport`) was chosen on published sweeps, so it is "
    "in-sample wherever they are given here. One factor on all of it, chosen on the other (family, chip) groups, shows "
    "whether the level is right for a group it never saw."
)


@dataclass(frozen=True)
class Pairs:
    """One anchor and the other runs of its sweep; columns over those. ratio: measured over modelled of the anchor."""

    sweep: str
    group: str
    source: str
    distance: NDArray[np.str_]
    measured_s: Values
    modelled_s: Values
    anchored_s: Values
    ratio: float
    held: Values
    low: Values
    high: Values
    plain_low: Values
    plain_high: Values


def anchor_figures(pairs: Sequence[Pairs]) -> dict[str, Any]:
    """The fields of a report that are counted over all pairs."""
    classes = Counter(name for one in pairs for name in one.distance.tolist())
    by_distance = (_errors(ALL, pairs), *(_errors(name, pairs, distance=name) for name, _ in classes.most_common()))
    sources: dict[str, list[Pairs]] = defaultdict(list)
    for one in pairs:
        sources[one.source].append(one)
    return {
        "n_pairs": sum(len(one.measured_s) for one in pairs),
        "modelled_mape": by_distance[0].modelled_mape,
        "anchored_mape": by_distance[0].anchored_mape,
        "by_distance": by_distance,
        "by_source": tuple(_errors(name, ones) for name, ones in sorted(sources.items())),
        "ranking": (
            _ranking("modelled", pairs, lambda one: one.modelled_s),
            _ranking("anchored", pairs, lambda one: one.anchored_s),
        ),
    }


def fold_figures(pairs: Sequence[Pairs]) -> AnchorFolds:
    """The factor in hindsight, and of every group the one the others choose."""
    groups = sorted({one.group for one in pairs})
    if not pairs:
        return AnchorFolds(
            statement=STATEMENT,
            as_built_mape=None,
            in_sample_factor=None,
            in_sample_mape=None,
            leave_group_out_mape=None,
            factors={},
        )
    table = {
        group: [_group_error([one for one in pairs if one.group == group], factor) for factor in FACTORS]
        for group in groups
    }
    best = _best(table.values())
    chosen = {group: _best(errors for other, errors in table.items() if other != group) for group in groups}
    return AnchorFolds(
        statement=STATEMENT,
        as_built_mape=_mean(table.values(), FACTORS.index(1.0)),
        in_sample_factor=FACTORS[best],
        in_sample_mape=_mean(table.values(), best),
        leave_group_out_mape=_left_out(table, chosen) if len(groups) > 1 else None,
        factors={group: FACTORS[place] for group, place in chosen.items()} if len(groups) > 1 else {},
    )


def _errors(value: str, pairs: Sequence[Pairs], distance: str | None = None) -> AnchorErrors:
    masks = [np.ones(len(one.measured_s), bool) if distance is None else one.distance == distance for one in pairs]
    kept = [(one, mask) for one, mask in zip(pairs, masks, strict=True) if mask.any()]
    if not kept:
        return AnchorErrors(value=value, pairs=0, sweeps=0)
    names = np.concatenate([np.full(int(mask.sum()), one.sweep) for one, mask in kept])
    weights = _weights(names)

    def column(of: Callable[[Pairs], Values]) -> Values:
        return np.concatenate([of(one)[mask] for one, mask in kept])

    measured = column(lambda one: one.measured_s)
    modelled, anchored = column(lambda one: one.modelled_s), column(lambda one: one.anchored_s)
    whole = column(lambda one: one.modelled_s * one.ratio)
    plain = [column(lambda one: one.plain_low), column(lambda one: one.plain_high)]
    ends = [column(lambda one: one.low), column(lambda one: one.high)]
    return AnchorErrors(
        value=value,
        pairs=len(measured),
        sweeps=len(set(names.tolist())),
        modelled_mape=_mape(modelled, measured, weights),
        anchored_mape=_mape(anchored, measured, weights),
        carried_whole_mape=_mape(whole, measured, weights),
        modelled_coverage_80=_covered(modelled, plain, measured, weights),
        anchored_coverage_80=_covered(anchored, ends, measured, weights),
        modelled_width_80=float(np.median(plain[1] - plain[0])),
        anchored_width_80=float(np.median(ends[1] - ends[0])),
        held=float((weights * column(lambda one: one.held)).sum()),
    )


def _weights(names: NDArray[np.str_]) -> Values:
    """Every sweep weighs the same; the sum is 1."""
    _, place, counts = np.unique(names, return_inverse=True, return_counts=True)
    weights: Values = 1.0 / counts[place] / len(counts)
    return weights


def _mape(projected: Values, measured: Values, weights: Values) -> float:
    return float((weights * np.abs(projected / measured - 1.0)).sum())


def _covered(projected: Values, ends: Sequence[Values], measured: Values, weights: Values) -> float:
    inside = (ends[0] * projected <= measured) & (measured <= ends[1] * projected)
    return float((weights * inside).sum())


def _ranking(value: str, pairs: Sequence[Pairs], of: Callable[[Pairs], Values]) -> AnchorRanking:
    by_sweep: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for one in pairs:
        if len(one.measured_s) > 1:
            by_sweep[one.sweep].append(_ranked(of(one), one.measured_s))
    if not by_sweep:
        return AnchorRanking(value=value, sweeps=0, order_accuracy=None, top1_regret=None, top3_regret=None)
    # sweeps in which no two runs differ enough have no order
    means = [
        np.nanmean(ones, axis=0) if not np.isnan(ones[0][0]) else np.mean(ones, axis=0) for ones in by_sweep.values()
    ]
    order = [mean[0] for mean in means if not np.isnan(mean[0])]
    return AnchorRanking(
        value=value,
        sweeps=len(by_sweep),
        order_accuracy=float(np.mean(order)) if order else None,
        top1_regret=float(np.mean([mean[1] for mean in means])),
        top3_regret=float(np.mean([mean[2] for mean in means])),
    )


def _ranked(projected: Values, measured: Values) -> tuple[float, float, float]:
    """(share of pairs in the right order, regret of the best pick, of the best of three)."""
    first, second = np.triu_indices(len(measured), 1)
    a, b = measured[first], measured[second]
    counts = np.maximum(a, b) > (1 + PAIR_DIFFERENCE) * np.minimum(a, b)
    right = counts & (np.sign(projected[first] - projected[second]) == np.sign(a - b))
    order = np.lexsort((-measured, projected))
    best = measured.min()
    return (
        float(right.sum() / counts.sum()) if counts.any() else float("nan"),
        float(measured[order[0]] / best - 1.0),
        float(measured[order[:3]].min() / best - 1.0),
    )


def _group_error(pairs: Sequence[Pairs], factor: float) -> tuple[float, int]:
    """(sum over the sweeps of a group of their error, sweeps)."""
    errors: dict[str, list[float]] = defaultdict(list)
    for one in pairs:
        held = np.minimum(factor * one.held, 1.0)
        errors[one.sweep] += np.abs(one.modelled_s * one.ratio**held / one.measured_s - 1.0).tolist()
    return sum(float(np.mean(of_sweep)) for of_sweep in errors.values()), len(errors)


def _mean(errors: Iterable[Sequence[tuple[float, int]]], place: int) -> float:
    found = [one[place] for one in errors]
    return sum(error for error, _ in found) / sum(count for _, count in found)


def _best(errors: Iterable[Sequence[tuple[float, int]]]) -> int:
    found = list(errors)
    return int(np.argmin([_mean(found, place) for place in range(len(FACTORS))])) if found else FACTORS.index(1.0)


def _left_out(table: dict[str, list[tuple[float, int]]], chosen: dict[str, int]) -> float:
    found = [table[group][place] for group, place in chosen.items()]
    return sum(error for error, _ in found) / sum(count for _, count in found)
