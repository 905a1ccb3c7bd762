"""The prose of a model, sentence by sentence: what each says that the data of its plan does not hold, by kind."""

import re
from collections.abc import Sequence

from agents.advisors.llm_claims import claim_problems
from agents.advisors.llm_comparisons import comparison_problems, without_places
from agents.advisors.llm_directions import direction_problems
from agents.advisors.llm_figures import figure_problems
from agents.advisors.llm_text import text_problems
from agents.advisors.protocol import AdvisorChoice, AdvisorInput, Candidate, Pick
from agents.advisors.validate import unsourced

SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)]*\s+")
# reasons as users read them: in our words, without what was said
TEXT = "it is not plain text that can be read with certainty"
FIGURE = "a number is no figure of this plan, or has another unit or meaning there"
DIRECTION = "a direction is not that of the plan's figures"
COMPARISON = "a comparison is not borne out by the figures of the proposals"
CLAIM = "a claim is not held by the diagnosis"
MOST_SENTENCES = 12


def sentences(text: str) -> tuple[str, ...]:
    """A text cut behind full stops."""
    return tuple(part.strip() for part in SENTENCE.split(text) if part.strip())


def sentence_problems(
    question: AdvisorInput, candidate: Candidate, picked: Sequence[Candidate], sentence: str
) -> dict[str, tuple[str, ...]]:
    """What is wrong with one sentence about a candidate among those picked.

    By the reason as users read it, with sentences for a repair.
    """
    plain = without_places(sentence, picked)
    found = {
        TEXT: text_problems(question, sentence),
        FIGURE: (
            *(f"the number {number} has no source" for number in unsourced(question, candidate, plain)),
            *figure_problems(question, candidate, plain),
        ),
        DIRECTION: direction_problems(candidate, sentence),
        COMPARISON: comparison_problems(question, candidate, picked, sentence),
        CLAIM: claim_problems(question, sentence),
    }
    listed = {reason: tuple(dict.fromkeys(problems)) for reason, problems in found.items()}
    return {reason: problems for reason, problems in listed.items() if problems}


def prose_problems(question: AdvisorInput, choice: AdvisorChoice) -> tuple[str, ...]:
    """What the prose of each pick says that its data does not hold, as sentences for a repair."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    picked = tuple(candidates[pick.candidate] for pick in choice.picks if pick.candidate in candidates)
    return tuple(
        dict.fromkeys(
            f"{pick.candidate}: {problem}"
            for pick in choice.picks
            if pick.candidate in candidates
            for sentence in _said(pick)
            for problems in sentence_problems(question, candidates[pick.candidate], picked, sentence).values()
            for problem in problems
        )
    )


def _said(pick: Pick) -> tuple[str, ...]:
    return tuple(sentence for text in (pick.rationale, *pick.risks) for sentence in sentences(text))
