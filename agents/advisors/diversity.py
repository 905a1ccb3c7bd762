"""Diversity: three proposals are three answers only where they differ in what they relieve or which axis they enlarge.

The aim of a plan is the pair (resource relieved most, degree enlarged most), both against the reference. Two plans of
one aim are near-duplicates: the second only stands where no plan of another aim comes within DIVERSITY_GAP_FRAC of the
best that is left.
"""

from collections.abc import Sequence

from agents.advisors.protocol import Candidate
from agents.proposal_parts import Resource

# What a plan of another aim may cost beside a near-duplicate. A choice: errors of a projection are of this size (its
# published intervals are wider), so a plan this close may well be the better one, and it fails for other reasons.
DIVERSITY_GAP_FRAC = 0.05


def aim_of(candidate: Candidate) -> tuple[Resource, str | None]:
    """(resource relieved most, degree enlarged most)."""
    return candidate.resource, candidate.enlarges


def without_near_duplicates(pool: Sequence[Candidate], picked: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of aims not picked yet, where one of them is close to the best of the pool; else the whole pool.

    The kept plan aims at nothing, so nothing duplicates it.
    """
    taken = {aim_of(pick) for pick in picked if not pick.keeps}
    others = [candidate for candidate in pool if aim_of(candidate) not in taken]
    if not others:
        return list(pool)
    best, best_other = (max(1 + candidate.gain_frac for candidate in group) for group in (pool, others))
    return others if best_other >= best / (1 + DIVERSITY_GAP_FRAC) else list(pool)
