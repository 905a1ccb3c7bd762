"""Ranking inside groups of rows that measured several configurations of one workload: regret and pairwise order.

A group is what one source measured of one workload with one release: a same-day sweep. Rows of one workload from
several sources or releases mix software progress with configuration and form groups of another kind, kept apart.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.reports import SweepFigures, SweepGroup
from agents.evaluation.rows import MeasuredRow
from agents.evaluation.scored import Scored

PAIR_DIFFERENCE = 0.05
FEWEST_FOR_RANKS = 4
ALL = "all"

Key = tuple[str, ...]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Sweeps:
    """Groups of same-day sweeps, and of workloads that mix sources or releases."""

    same: tuple[SweepGroup, ...]
    mixed: tuple[SweepGroup, ...]


def sweeps(scored: Sequence[Scored], left_out: Mapping[str, float], given: Sequence[MeasuredRow]) -> Sweeps:
    """The groups of all scored rows.

    left_out: id -> measured seconds a token of rows that were refused; the best of a group may be one of them.
    given: the rows that count, refused ones included.
    """
    timed = [one for one in scored if one.measured_s is not None]
    same = _groups(timed, left_out, given, same_day)
    sources: dict[str, set[Key]] = defaultdict(set)
    for row in given:
        sources[row.workload_id].add(same_day(row))
    mixing = [one for one in timed if len(sources[one.case.row.workload_id]) > 1]
    mixed_rows = [row for row in given if len(sources[row.workload_id]) > 1]
    return Sweeps(same, _groups(mixing, left_out, mixed_rows, _workload))


def sweep_figures(groups: Sequence[SweepGroup]) -> tuple[SweepFigures, ...]:
    """The groups together, then by source; nothing where there is no group."""
    by_source: dict[str, list[SweepGroup]] = defaultdict(list)
    for group in groups:
        by_source[group.source].append(group)
    named = [(ALL, list(groups)), *sorted(by_source.items())] if groups else []
    return tuple(_together(name, members) for name, members in named)


def spearman(a: Values, b: Values) -> float | None:
    """Rank correlation, equal values sharing their mean rank; None where one side is constant."""
    first, second = _ranks(a), _ranks(b)
    if first.std() == 0 or second.std() == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def same_day(row: MeasuredRow) -> Key:
    """What rows of one sweep share."""
    return (row.workload_id, row.source, row.release or "")


def _workload(row: MeasuredRow) -> Key:
    return (row.workload_id,)


def _groups(
    timed: Iterable[Scored],
    left_out: Mapping[str, float],
    given: Iterable[MeasuredRow],
    key: Callable[[MeasuredRow], Key],
) -> tuple[SweepGroup, ...]:
    members: dict[Key, list[Scored]] = defaultdict(list)
    for one in timed:
        members[key(one.case.row)].append(one)
    rows: dict[Key, list[MeasuredRow]] = defaultdict(list)
    for row in given:
        rows[key(row)].append(row)
    return tuple(
        _group(name, one, rows[name], left_out)
        for name, one in sorted(members.items())
        if len({each.case.row.configuration for each in one}) > 1
    )


def _group(
    name: Key, members: Sequence[Scored], rows: Sequence[MeasuredRow], left_out: Mapping[str, float]
) -> SweepGroup:
    measured = np.array([one.case.target.s_per_token for one in members if one.case.target is not None])
    projected = np.array([one.projected_s_per_token for one in members])
    fits = np.array([not one.too_large for one in members])
    best = min([float(measured.min()), *(left_out[row.id] for row in rows if row.id in left_out)])
    order = order_of_picks(measured, projected, fits)
    pairs, right, tied = pairs_in_order([one.case.row.configuration for one in members], measured, projected)
    return SweepGroup(
        name=" ".join(part for part in name if part),
        source=members[0].case.row.source,
        n_given=len(rows),
        n_modelled=len(members),
        spread=float(measured.max() / measured.min()),
        top1_regret=float(measured[order[0]] / best - 1.0),
        top3_regret=float(measured[order[:3]].min() / best - 1.0),
        pairs=pairs,
        right_pairs=right,
        tied_pairs=tied,
        spearman=spearman(projected, measured) if len(set(measured.tolist())) >= FEWEST_FOR_RANKS else None,
    )


def order_of_picks(measured: Values, projected: Values, fits: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Rows as they would be picked: what does not fit last, of equals the slower first so that no tie flatters."""
    return np.lexsort((-measured, projected, ~fits))


def pairs_in_order(configurations: Sequence[str], measured: Values, projected: Values) -> tuple[int, int, int]:
    """(pairs that count, in the right order, tied in projection)."""
    kinds = np.unique(configurations, return_inverse=True)[1]
    first, second = np.triu_indices(len(measured), 1)
    a, b = measured[first], measured[second]
    counts = (np.maximum(a, b) > (1 + PAIR_DIFFERENCE) * np.minimum(a, b)) & (kinds[first] != kinds[second])
    difference = projected[first] - projected[second]
    right = counts & (np.sign(difference) == np.sign(a - b))
    return int(counts.sum()), int(right.sum()), int((counts & (difference == 0)).sum())


def _together(value: str, groups: Sequence[SweepGroup]) -> SweepFigures:
    pairs = sum(group.pairs for group in groups)
    top1, top3 = ([getattr(group, name) for group in groups] for name in ("top1_regret", "top3_regret"))
    ranked = [group.spearman for group in groups if group.spearman is not None]
    return SweepFigures(
        value=value,
        groups=len(groups),
        rows=sum(group.n_modelled for group in groups),
        pairs=pairs,
        tied_pairs=sum(group.tied_pairs for group in groups),
        order_accuracy=sum(group.right_pairs for group in groups) / pairs if pairs else None,
        top1_regret=float(np.mean(top1)),
        top1_regret_worst=max(top1),
        top3_regret=float(np.mean(top3)),
        top3_regret_worst=max(top3),
        spearman=float(np.mean(ranked)) if ranked else None,
    )


def _ranks(values: Values) -> Values:
    order = np.argsort(values, kind="stable")
    ranked = np.empty(len(values))
    ranked[order] = np.arange(len(values))
    for value in np.unique(values):
        same = values == value
        ranked[same] = ranked[same].mean()
    return ranked
