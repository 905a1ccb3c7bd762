"""Practice: of the layouts of a job, which one published runs suggest would be adopted, and why.

The posterior of a layout is exp(x b) over their sum (`choice`): projected speed counts with a fixed weight, which says
how much a projection can be trusted, and a few figures of the layout (`features`) and votes of similar published runs
(`votes`) with weights fitted on what was adopted elsewhere. A layout projected clearly slower than the best is no
candidate for a first place, whatever practice says (SLOWER_FRAC).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agents.practice.choice import Column, shares
from agents.practice.features import FEATURES, GAIN, features_of
from agents.practice.model import PracticeModel, WeightSet
from agents.practice.table import DEGREES, LayoutTable
from agents.practice.votes import Votes, support_of, vote_figures, votes_of
from agents.wording import listed, percent, quoted
from projector.specs.plan import ParallelismPlan

if TYPE_CHECKING:
    from knowledge_base.past import PastMatch

# a projection is off by about a tenth (80 % intervals are wider): what is slower by more than this is not "as fast"
SLOWER_FRAC = 0.15
# contributions to the posterior below this (a factor of 1.3) are not worth a sentence
LEAST_REASON = 0.25
REASONS = 2
LEAST_SUPPORT = 0.10
LONGEST_CASE = 200


@dataclass(frozen=True)
class Practice:
    """Columns of shape [n] over the layouts of `table`: share, the posterior; contributions [n, features]."""

    table: LayoutTable
    votes: Votes
    share: Column
    contributions: Column
    weights: WeightSet

    def order(self) -> NDArray[np.intp]:
        """Layouts by share, those projected clearly slower than the best behind all others."""
        near = self.table.good >= self.table.good.max() / (1 + SLOWER_FRAC)
        return np.lexsort((-self.table.value, -self.share, ~near))

    def place(self, plan: ParallelismPlan) -> int | None:
        """The row of the table with the plan's degrees; None where it has none."""
        same = (self.table.degrees == np.array([getattr(plan, name) for name in DEGREES])).all(axis=1)
        return int(np.flatnonzero(same)[0]) if same.any() else None

    def reasons(self, place: int) -> tuple[str, ...]:
        """What speaks for a layout beside its projected speed, against the layout projected best; as sentences."""
        fastest = int(np.argmax(self.table.value))
        behind = self.table.good[fastest] / self.table.good[place] - 1
        if place == fastest:
            return self._supported(place)
        gained = self.contributions[place] - self.contributions[fastest]
        figures = [
            (gained[column], feature.more if self._grows(column, place, fastest) else feature.less)
            for column, feature in enumerate(FEATURES)
            if feature.name != GAIN and gained[column] >= LEAST_REASON
        ]
        words = [text for _, text in sorted(figures, key=lambda entry: -entry[0])[:REASONS]]
        if not words:
            return self._supported(place)
        sentence = (
            f"By projection alone {self._text(fastest)} would be {percent(behind)} ahead, which a projection hardly "
            f"tells apart; published runs rather choose a layout that {listed(words)}."
        )
        return (sentence, *self._supported(place))

    def _supported(self, place: int) -> tuple[str, ...]:
        """How many similar published runs have just this layout."""
        if not len(self.votes) or support_of(self.table, self.votes)[place] < LEAST_SUPPORT:
            return ()
        same = (self.votes.degrees == self.table.degrees[place]).all(axis=1)
        nearest = self.votes.texts[int(np.argmax(np.where(same, self.votes.weight, -1.0)))]
        return (f"Published runs alike have this layout; the nearest: {quoted(nearest, LONGEST_CASE)}.",)

    def _grows(self, column: int, place: int, fastest: int) -> bool:
        weight = self.weights.column[column]
        return bool((self.contributions[place, column] - self.contributions[fastest, column]) * weight > 0)

    def _text(self, place: int) -> str:
        degrees = zip(DEGREES, self.table.degrees[place].tolist(), strict=True)
        return " ".join(f"{name} {degree}" for name, degree in degrees if degree > 1) or "data parallelism alone"


def practice_of(
    table: LayoutTable, matches: "Sequence[PastMatch]", framework: str | None, model: PracticeModel
) -> Practice:
    """The posterior over the layouts of a table with at least one. matches: past runs, () without history."""
    votes = votes_of(matches, table.setting, framework)
    weights = model.of(framework_named=framework is not None, with_past=len(votes) > 0)
    figures = figures_of(table, votes)
    return Practice(table, votes, shares(figures, weights.column), figures * weights.column, weights)


def figures_of(table: LayoutTable, votes: Votes) -> Column:
    """The figures of every layout, those of votes behind where there are votes."""
    own = features_of(table)
    return np.concatenate([own, vote_figures(table, votes)], axis=1) if len(votes) else own
