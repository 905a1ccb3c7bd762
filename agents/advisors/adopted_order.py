"""The order of candidates where nothing runs yet: by what a published layout of such a job would most likely be.

Nothing is changed by adopting any of them, so effort decides nothing. Of the candidates projected within SLOWER_FRAC of
the best the most likely layout comes next; of its plans the one the ranking rule prefers. A degree set picked already
comes no second time while another is left, nor does a layout. With diversity a plan of another aim (resource, axis)
than the picks goes before a near-duplicate where it is at least LIKELY_ENOUGH times as likely.
"""

from collections.abc import Sequence

from agents.advisors.diversity import aim_of
from agents.advisors.protocol import AdvisorInput, Candidate
from agents.practice.practice import SLOWER_FRAC

# what a different plan may be less likely and still go before a near-duplicate: hardly less
LIKELY_ENOUGH = 0.8


def is_by_practice(question: AdvisorInput) -> bool:
    """Whether nothing runs yet, speed is the goal, and published runs say something of every candidate."""
    known = all(candidate.adoption is not None for candidate in question.candidates)
    return bool(question.candidates) and known and not question.reference_is_current and question.goal != "fits"


def likeliest(question: AdvisorInput, rest: Sequence[Candidate], picked: Sequence[Candidate]) -> list[Candidate]:
    """The plans of the layout that comes next: those of one (tp, pp, cp, ep), at least one."""
    used = {_degrees(pick) for pick in picked}
    layouts = {pick.plan.layout for pick in picked}
    fresh = (
        [candidate for candidate in rest if _degrees(candidate) not in used]
        or [candidate for candidate in rest if candidate.plan.layout not in layouts]
        or list(rest)
    )
    best = max(1 + candidate.gain_frac for candidate in question.candidates)
    fast = [one for one in fresh if 1 + one.gain_frac >= best / (1 + SLOWER_FRAC)] or fresh
    pool = _apart(fast, picked) if question.diversity else fast
    # equal shares keep the projector's order
    first = max(pool, key=lambda candidate: (_share(candidate), candidate.gain_frac))
    return [candidate for candidate in pool if _degrees(candidate) == _degrees(first)]


def _apart(pool: Sequence[Candidate], picked: Sequence[Candidate]) -> list[Candidate]:
    taken = {aim_of(pick) for pick in picked}
    others = [candidate for candidate in pool if aim_of(candidate) not in taken]
    if not others:
        return list(pool)
    likely = max(map(_share, others)) >= LIKELY_ENOUGH * max(map(_share, pool))
    return others if likely else list(pool)


def _share(candidate: Candidate) -> float:
    return candidate.adoption.share if candidate.adoption is not None else 0.0


def _degrees(candidate: Candidate) -> tuple[int, int, int, int]:
    plan = candidate.plan
    return (plan.tp, plan.pp, plan.cp, plan.ep)
