"""Pool: of all plans seen so far those that can still matter, so that a space need not be held to be ranked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.ranking.pareto import fronts_of_groups, pareto_rows
from projector.specs.plan import LAYOUT_FIELDS
from projector.specs.plan_batch import PlanBatch, is_one_value


@dataclass(frozen=True)
class Pool:
    """Plans in the order of the search, with columns of shape [n] ([n, k] losses).

    layout   one number a layout (`ParallelismPlan.layout`), of no meaning outside this pool
    good     the objective, more is better
    saved    what the plan saves of a blamed term, more is better; 0 throughout where nothing is blamed
    losses   the figures of the Pareto set, less is better
    """

    plans: PlanBatch
    layout: NDArray[np.int64]
    good: NDArray[np.float64]
    saved: NDArray[np.float64]
    losses: NDArray[np.float64]

    @classmethod
    def of(
        cls, plans: PlanBatch, good: NDArray[np.float64], saved: NDArray[np.float64], losses: NDArray[np.float64]
    ) -> "Pool":
        """The plans that can still matter."""
        return cls(plans, layout_numbers(plans), good, saved, losses).reduced()

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
        return Pool.of(
            PlanBatch.concat([self.plans, other.plans]),
            np.concatenate([self.good, other.good]),
            np.concatenate([self.saved, other.saved]),
            np.concatenate([self.losses, other.losses]),
        )


def layout_numbers(plans: PlanBatch) -> NDArray[np.int64]:
    """One number a layout, shape [n], the same for two of these plans where all LAYOUT_FIELDS are.

    Degrees are digits of a number, each to the base of the largest one; what no longer fits 64 bits is counted anew.
    """
    number = np.zeros(len(plans), dtype=np.int64)
    values = 1
    for field in LAYOUT_FIELDS:
        degrees = plans.columns[field]
        if is_one_value(degrees) or not len(plans):
            continue
        base = int(degrees.max()) + 1
        if values * base >= 2**63:
            number = np.unique(number, return_inverse=True)[1].ravel()
            values = int(number.max()) + 1
        number = number * base + degrees
        values *= base
    return number
