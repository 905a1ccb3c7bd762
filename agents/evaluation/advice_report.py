"""The report of `eval advice` over workloads, from what the service answered."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, median, stdev

from agents.evaluation.advice import Advised
from agents.evaluation.advice_request import Choice
from agents.evaluation.calibration import brier, calibration_error, reliability
from agents.evaluation.hits import Hits
from agents.evaluation.practice_fit import picks_of, weights_of
from agents.evaluation.rates import Z_95, rate
from agents.evaluation.reports_advice import AblationRow, Cost, Effort, OrderOnly, Reliability
from agents.evaluation.topk import ALL, NONTRIVIAL
from agents.evaluation.workloads import Workload
from agents.practice.choice import Column

EVENT = "the proposal's layout (tp, pp, cp, ep) is the adopted one"


def strata_of(workload: Workload) -> tuple[str, ...]:
    """The strata a workload counts in."""
    return (ALL, *((NONTRIVIAL,) if workload.nontrivial else ()), workload.stratum)


def by_stratum(advised: Sequence[Advised]) -> dict[str, list[Advised]]:
    """Every stratum with its workloads."""
    found: dict[str, list[Advised]] = defaultdict(list)
    for one in advised:
        for stratum in strata_of(one.outcome.published.workload):
            found[stratum].append(one)
    return dict(sorted(found.items()))


def reliability_of(advised: Sequence[Advised]) -> Reliability:
    """Stated chances against outcomes, all proposals together."""
    stated = [entry for one in advised for entry in one.chances]
    chances, outcomes = [chance for chance, _ in stated], [outcome for _, outcome in stated]
    bins = reliability(chances, outcomes) if stated else ()
    mean = fmean(map(float, outcomes)) if stated else 0.0
    return Reliability(
        event=EVENT,
        n=len(stated),
        ece=calibration_error(bins),
        brier=brier(chances, outcomes),
        brier_constant=brier([mean] * len(stated), outcomes),
        bins=bins,
    )


def efforts_of(advised: Sequence[Advised]) -> tuple[Effort, ...]:
    """Layouts tried until the adopted one: advised, at random (of n layouts (n + 1) / 2 on average), exhaustive."""
    found = []
    for stratum, members in by_stratum(advised).items():
        placed = [
            (one.outcome.hits.rank, one.outcome.layouts)
            for one in members
            if one.outcome.hits is not None and one.outcome.hits.rank is not None
        ]
        found.append(
            Effort(
                stratum=stratum,
                n=len(placed),
                advised=median([place for place, _ in placed]) if placed else None,
                random=median([(count + 1) / 2 for _, count in placed]) if placed else None,
                exhaustive=median([count for _, count in placed]) if placed else None,
            )
        )
    return tuple(found)


def costs_of(advised: Sequence[Advised]) -> tuple[Cost, ...]:
    """What the first proposal costs, projected and, where sweeps measured it, measured."""
    found = []
    for stratum, members in by_stratum(advised).items():
        losses = [one.projected_loss for one in members if one.projected_loss is not None]
        regrets = [one.measured_regret for one in members if one.measured_regret is not None]
        found.append(
            Cost(
                stratum=stratum,
                n=len(losses),
                projected_loss=fmean(losses) if losses else None,
                measured_n=len(regrets),
                measured_regret=fmean(regrets) if regrets else None,
            )
        )
    return tuple(found)


def order_only(own: Sequence[Choice], choices: Sequence[Choice], *, with_past: bool) -> tuple[OrderOnly, ...]:
    """Hits of the order of layouts alone: own group left out of the fit, and own group and own sources.

    History hides the own group in both; what it holds of the own source on other models or chips stays.
    """
    found = []
    for left_out, source in (("group", False), ("group and source", True)):
        weights: dict[tuple[str, frozenset[str]], Column | None] = {}
        marks: dict[str, list[list[bool]]] = defaultdict(list)
        for one in own:
            key = (one.group, one.sources if source else frozenset())
            if key not in weights:
                rest = [other for other in choices if other.group != one.group]
                rest = [other for other in rest if not other.sources & one.sources] if source else rest
                weights[key] = weights_of(rest, with_past=with_past) if rest else None
            fitted = weights[key]
            picks = picks_of(one, fitted, with_past=with_past) if fitted is not None else []
            for stratum in strata_of(one.published.workload):
                marks[stratum].append([outcome for _, outcome in picks])
        found += [
            OrderOnly(
                stratum=stratum,
                left_out=left_out,
                n=len(marked),
                top1=rate([float(any(one[:1])) for one in marked]),
                top3=rate([float(any(one)) for one in marked]),
            )
            for stratum, marked in sorted(marks.items())
        ]
    return tuple(found)


def ablation_of(whole: Sequence[Advised], ablated: Sequence[Advised], left_out: str, note: str) -> list[AblationRow]:
    """By stratum the rates without a part and what that costs, paired by workload."""
    rows = []
    without = by_stratum(ablated)
    for stratum, members in by_stratum(whole).items():
        others = without[stratum]
        top1, top3 = (_paired(members, others, name) for name in ("top1", "top3"))
        rows.append(
            AblationRow(
                left_out=left_out,
                stratum=stratum,
                n=len(others),
                top1=rate(_marks(others, "top1")),
                top3=rate(_marks(others, "top3")),
                tolerant=rate(_marks(others, "tolerant")),
                top1_cost=top1[0],
                top1_interval=top1[1],
                top3_cost=top3[0],
                top3_interval=top3[1],
                note=note,
            )
        )
    return rows


def _paired(whole: Sequence[Advised], ablated: Sequence[Advised], name: str) -> tuple[float, float]:
    """(mean difference, half its 95 % interval by the normal approximation)."""
    apart = [mine - theirs for mine, theirs in zip(_marks(whole, name), _marks(ablated, name), strict=True)]
    if len(apart) < 2:
        return (fmean(apart) if apart else 0.0, 0.0)
    return fmean(apart), Z_95 * stdev(apart) / len(apart) ** 0.5


def _marks(advised: Sequence[Advised], name: str) -> list[float]:
    def mark(found: Hits | None) -> float:
        return float(found is not None and bool(getattr(found, name)))

    return [mark(one.outcome.hits) for one in advised]
