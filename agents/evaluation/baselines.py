"""Two baselines that need no model: the commonest published layouts, and those of the same model on other chips."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agents.evaluation.ranking import PROPOSALS
from agents.evaluation.rows import Degrees
from agents.evaluation.workloads import Workload


@dataclass(frozen=True)
class Published:
    """A workload with the layouts its experts adopted."""

    workload: Workload
    layouts: frozenset[Degrees]


@dataclass(frozen=True)
class Baselines:
    """What the baselines propose for one workload, best first, at most three layouts each.

    common            the commonest layouts of workloads with a layout worth choosing, own (family, chip) group left out
    common_in_sample  the same with nothing left out
    same_model        the layouts of the same model family on other chips, the commonest first
    """

    common: tuple[Degrees, ...]
    common_in_sample: tuple[Degrees, ...]
    same_model: tuple[Degrees, ...]


def baselines(workload: Workload, published: Sequence[Published]) -> Baselines:
    """The proposals for a workload, of which `published` may hold the answer."""
    chosen = [one for one in published if one.workload.nontrivial]
    return Baselines(
        common=_commonest([one for one in chosen if one.workload.group != workload.group]),
        common_in_sample=_commonest(chosen),
        same_model=_commonest(
            [
                one
                for one in published
                if one.workload.family == workload.family and one.workload.chip.lower() != workload.chip.lower()
            ]
        ),
    )


def _commonest(published: Sequence[Published]) -> tuple[Degrees, ...]:
    counts = Counter(layout for one in published for layout in one.layouts)
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(layout for layout, _ in ordered[:PROPOSALS])
