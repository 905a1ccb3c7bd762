"""Where the language model orders plans otherwise than the rules: both orders, with the figures that decide."""

from collections.abc import Sequence
from typing import Literal

from agents.advisors.protocol import AdvisorInput, Candidate
from agents.advisors.ranking import rank
from agents.findings import Disagreement, Standpoint
from agents.gains import objective_change
from agents.wording import duration, signed_percent


def disagreement(question: AdvisorInput, ids: Sequence[str], used: Literal["rules", "llm"]) -> Disagreement | None:
    """The two orders; None where they are the same, or where the model's names what is not on the list."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    if any(name not in candidates for name in ids) or not ids:
        return None
    ours, theirs = rank(question), tuple(candidates[name] for name in ids)
    if [candidate.id for candidate in ours] == list(ids):
        return None
    return Disagreement(
        rules=_standpoints(ours), llm=_standpoints(theirs), used=used, text=_text(question, ours, theirs, used)
    )


def _standpoints(order: Sequence[Candidate]) -> tuple[Standpoint, ...]:
    return tuple(
        Standpoint(
            rank=place,
            title=candidate.title,
            gain_frac=candidate.gain_frac,
            step_time_s=candidate.step_time_s,
            memory_bytes=candidate.projection.memory.total_bytes if candidate.projection.memory else None,
            adoption_effort=candidate.effort,
        )
        for place, candidate in enumerate(order, start=1)
    )


def _text(
    question: AdvisorInput, ours: Sequence[Candidate], theirs: Sequence[Candidate], used: Literal["rules", "llm"]
) -> str:
    """The first place at which they part."""
    whose = "of the rules" if used == "rules" else "of the language model"
    for place, (own, other) in enumerate(zip(ours, theirs, strict=False), start=1):
        if own.id != other.id:
            return (
                f"Place {place}: the rules put {_figures(question, own)}, "
                f"the language model {_figures(question, other)}. "
                f"The order shown is that {whose}."
            )
    return f"The language model names {len(theirs)} plans and the rules {len(ours)}. The order shown is that {whose}."


def _figures(question: AdvisorInput, candidate: Candidate) -> str:
    gain = objective_change(candidate.gain_frac, question.objective.direction)
    return (
        f"'{candidate.title}' ({question.objective.meaning} {signed_percent(gain)}, step "
        f"{duration(candidate.step_time_s)}, adoption by {candidate.effort})"
    )
