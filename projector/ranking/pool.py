"""Pool: of all plans seen so far those that can still matter, so that a space need not be held to be ranked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.ranking.pareto import fronts_of_groups, pareto_rows
from projector.search.factors import divisors
from projector.specs.plan_batch import PlanBatch

LAYOUT_FIELDS = ("dp", "fsdp", "tp", "pp", "cp", "ep")


@dataclass(frozen=True)
class Pool:
    """Plans in the order of the search, with columns of shape [n] ([n, k] losses).

    layout   one number a layout (`ParallelismPlan.layout`)
    good     the objective, more is better
    saved    what the plan saves of a blamed term, more is better; 0 throughout where nothing is blamed
    losses   the figures of the Pareto set, less is better
    """

    plans: PlanBatch
    layout: NDArray[np.int64]
    good: NDArray[np.float64]
    saved: NDArray[np.float64]
    losses: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.layout)

    def take(self, rows: NDArray[Any]) -> "Pool":
        """The rows an index array or a mask selects."""
        return Pool(self.plans.take(rows), self.layout[rows], self.good[rows], self.saved[rows], self.losses[rows])

    def reduced(self) -> "Pool":
        """Without plans that are neither the best of their layout, nor save most of the blamed term there for what they
        are worth, nor are in the Pareto set: no plan that follows can make those matter again.
        """
        fronts = fronts_of_groups(self.layout, -self.saved, -self.good)
        return self.take(np.unique(np.concatenate([fronts, pareto_rows(self.losses)])))

    def with_more(self, other: "Pool") -> "Pool":
        """Both, this one's plans first, reduced."""
        return Pool(
            PlanBatch.concat([self.plans, other.plans]),
            np.concatenate([self.layout, other.layout]),
            np.concatenate([self.good, other.good]),
            np.concatenate([self.saved, other.saved]),
            np.concatenate([self.losses, other.losses]),
        ).reduced()


def layout_numbers(plans: PlanBatch, devices: int) -> NDArray[np.int64]:
    """One number a layout, shape [n]: every degree divides the devices, so its place among the divisors is a digit."""
    known = np.array(divisors(devices))
    assert len(known) ** len(LAYOUT_FIELDS) < 2**63, "the layouts of so many devices have no 64-bit numbers"
    return _number([np.searchsorted(known, plans.columns[field]) for field in LAYOUT_FIELDS], len(known))


def _number(digits: Sequence[NDArray[Any]], base: int) -> NDArray[np.int64]:
    number = np.zeros_like(digits[0], dtype=np.int64)
    for digit in digits:
        number = number * base + digit
    return number
