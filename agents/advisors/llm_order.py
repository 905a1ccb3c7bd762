"""A model's order against the projector's numbers, which no judgement and no text in a trace may outweigh."""

from collections.abc import Iterator

from agents.advisors.protocol import AdvisorChoice, AdvisorInput, Candidate
from agents.advisors.ranking import NOISE_FRAC, rank

# how far the first pick may trail the best gain for the sake of effort or risk
LEAD_FRAC = 0.20


def order_problems(question: AdvisorInput, choice: AdvisorChoice) -> tuple[str, ...]:
    """A first pick that trails too far, and picks that are worse than today, as sentences for a repair."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    picked = [candidates[pick.candidate] for pick in choice.picks if pick.candidate in candidates]
    return tuple(_order_problems(question, picked)) if picked else ()


def _order_problems(question: AdvisorInput, picked: list[Candidate]) -> Iterator[str]:
    best = max(candidate.gain_frac for candidate in question.candidates)
    first = picked[0]
    if 1 + first.gain_frac < (1 + best) * (1 - LEAD_FRAC) and first.id != rank(question)[0].id:
        yield f"{first.id} comes first although it trails the best candidate by more than {LEAD_FRAC:.0%}"
    layouts = {candidate.plan.layout for candidate in question.candidates if candidate.gain_frac >= -NOISE_FRAC}
    if len(layouts) >= question.wanted:
        yield from (
            f"{candidate.id} is projected to be worse while enough better candidates are on the list"
            for candidate in picked
            if candidate.gain_frac < -NOISE_FRAC
        )


def citation_problems(question: AdvisorInput, choice: AdvisorChoice) -> Iterator[str]:
    """Notes cited for a plan that speak neither of a lever it pulls nor of the diagnosed cause."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    for pick in choice.picks:
        if pick.candidate in candidates:
            foreign = foreign_citations(question, candidates[pick.candidate])
            yield from (
                f"{pick.candidate}: citation {chunk!r} is about none of its levers"
                for chunk in pick.citations
                if chunk in foreign
            )


def foreign_citations(question: AdvisorInput, candidate: Candidate) -> frozenset[str]:
    """Chunks of the question that must not be cited for this plan."""
    return frozenset(
        note.citation.chunk_id
        for note in question.notes
        if question.diagnosis.cause not in note.causes and not set(note.levers) & set(candidate.levers)
    )
