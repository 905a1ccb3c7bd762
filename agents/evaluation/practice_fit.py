"""The weights of practice: fitted on published workloads, one group or source left out at a time, and for good.

A workload counts 1 / sqrt(workloads of its group), so that a group published in twenty sizes does not outvote the
others. The weight of projected speed is not fitted: a projection's error of two layouts' ratio is about normal with the
spread of published errors (mean absolute error 8 %, so a standard deviation of 10 %); the logit that is nearest to that
normal has the slope 1.7 / 0.10 = 17 (Johnson and Kotz: a logistic of scale 1 / 1.7 is within 0.01 of the normal).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.evaluation.advice_request import Choice
from agents.evaluation.calibration import calibration_error, platt, reliability
from agents.practice.choice import Choices, Column, fitted, shares
from agents.practice.features import GAIN, NAMES
from agents.practice.model import Calibration, PracticeModel, WeightSet
from agents.practice.practice import SLOWER_FRAC
from agents.practice.votes import VOTE_NAMES

GAIN_WEIGHT = 17.0
HELD, PENALTY = 1e6, 1.0
PICKS = 3
COMMAND = "shardwise eval advice FILE... --write-practice PATH"
PRIOR = (
    "gain is held at 17, the slope of the logit nearest to a normal error of 10 %; every other weight has a normal "
    "prior about 0 with standard deviation 1"
)


def weights_of(chosen: Sequence[Choice], *, with_past: bool, gain: float = GAIN_WEIGHT) -> Column:
    """The weights that fit these workloads, shape [features]; the prior where there are none."""
    names = _names(with_past)
    prior = np.array([gain if name == GAIN else 0.0 for name in names])
    penalty = np.array([HELD if name == GAIN else PENALTY for name in names])
    if not chosen:
        return prior
    counts = Counter(one.group for one in chosen)
    told = Choices.of([one.figures(with_past=with_past) for one in chosen], [one.adopted for one in chosen])
    return fitted(told, np.array([counts[one.group] ** -0.5 for one in chosen]), prior, penalty)


def picks_of(choice: Choice, weights: Column, *, with_past: bool) -> list[tuple[float, bool]]:
    """(share, adopted) of the first PICKS layouts in order, those projected clearly slower than the best behind."""
    share = shares(choice.figures(with_past=with_past), weights)
    near = choice.table.good >= choice.table.good.max() / (1 + SLOWER_FRAC)
    order = np.lexsort((-choice.table.value, -share, ~near))[:PICKS]
    return [(float(share[row]), bool(choice.adopted[row])) for row in order.tolist()]


def blind_models(chosen: Sequence[Choice], shipped: PracticeModel) -> dict[str, PracticeModel]:
    """Group -> the model that has not seen it: the one that ships, or where it has, one fitted on the other groups."""
    seen = {one.group for one in chosen} & set(shipped.groups)
    folds = fold_models(chosen) if seen else {}
    return {group: folds[group] if group in seen else shipped for group in {one.group for one in chosen}}


def fold_models(chosen: Sequence[Choice]) -> dict[str, PracticeModel]:
    """Group -> the model that its workloads are advised by: fitted and calibrated on the other groups alone, whether
    their framework was told or not as these workloads had it."""
    folds = [_Folds.of(chosen, with_past=with_past) for with_past in (False, True)]
    found = {}
    for group in sorted({one.group for one in chosen}):
        sets = [
            _weight_set(one.weights[group], chosen, group, calibrated(one.picks_of_others(group)), named, one.with_past)
            for one in folds
            for named in (False, True)
        ]
        data = f"{sets[0].workloads} workloads of {sets[0].groups} other groups"
        found[group] = PracticeModel(command=COMMAND, data=data, prior=PRIOR, sets=tuple(sets))
    return found


def shipped_sets(chosen: Sequence[Choice], *, framework_named: bool) -> list[WeightSet]:
    """Fitted on every group; calibrated on what models that had not seen a pick's group said of it."""
    sets = []
    for with_past in (False, True):
        folds = _Folds.of(chosen, with_past=with_past)
        calibration, error = calibrated(folds.picks_of_others(None)), folds.error()
        if calibration is not None and error is not None:
            calibration = calibration.model_copy(update={"ece": round(error, 4)})
        weights = weights_of(chosen, with_past=with_past)
        sets.append(_weight_set(weights, chosen, None, calibration, framework_named, with_past))
    return sets


@dataclass(frozen=True)
class _Folds:
    """By group left out: the weights, and the (share, adopted) of the first picks they make for the group."""

    with_past: bool
    weights: dict[str, Column]
    picks: dict[str, list[tuple[float, bool]]]

    @classmethod
    def of(cls, chosen: Sequence[Choice], *, with_past: bool) -> "_Folds":
        weights, picks = {}, {}
        for group in sorted({one.group for one in chosen}):
            found = weights_of([one for one in chosen if one.group != group], with_past=with_past)
            weights[group] = found
            own = [one for one in chosen if one.group == group]
            picks[group] = [pick for one in own for pick in picks_of(one, found, with_past=with_past)]
        return cls(with_past, weights, picks)

    def picks_of_others(self, group: str | None) -> list[tuple[float, bool]]:
        return [pick for other, picks in self.picks.items() if other != group for pick in picks]

    def error(self) -> float | None:
        """Expected calibration error where each group's picks are corrected by what the other groups ask for."""
        chances, outcomes = [], []
        for group, picks in self.picks.items():
            found = calibrated(self.picks_of_others(group))
            if found is None:
                return None
            chances += [found.chance(share) for share, _ in picks]
            outcomes += [outcome for _, outcome in picks]
        return calibration_error(reliability(chances, outcomes))


def calibrated(picks: Sequence[tuple[float, bool]]) -> Calibration | None:
    """The correction of shares that these picks ask for, and its error on them."""
    shares_, outcomes = [share for share, _ in picks], [outcome for _, outcome in picks]
    found = platt(shares_, outcomes)
    if found is None:
        return None
    error = calibration_error(reliability([found.chance(share) for share in shares_], outcomes))
    return found.model_copy(update={"ece": round(error or 0.0, 4)})


def _weight_set(
    weights: Column,
    chosen: Sequence[Choice],
    left_out: str | None,
    calibration: Calibration | None,
    framework_named: bool,
    with_past: bool,
) -> WeightSet:
    bearing = [one for one in chosen if one.group != left_out and one.adopted.any()]
    return WeightSet(
        framework_named=framework_named,
        with_past=with_past,
        weights={name: round(float(value), 4) for name, value in zip(_names(with_past), weights, strict=True)},
        workloads=len(bearing),
        groups=len({one.group for one in bearing}),
        calibration=calibration,
    )


def _names(with_past: bool) -> tuple[str, ...]:
    return (*NAMES, *VOTE_NAMES) if with_past else NAMES
