"""The language-model advisor: asks for a choice by id with prose, and lets nothing through that the data does not hold.

One call of `choose` is one turn. `agents.advisors.ask` gives it a second one with the problems of the first, then falls
back to the rules. The advisor keeps nothing between turns and serves several threads at once.
"""

import re
from collections.abc import Iterator
from typing import Literal

from pydantic import SecretStr

from agents.advisors.llm_client import ModelClient
from agents.advisors.llm_directions import direction_problems
from agents.advisors.llm_figures import figure_problems
from agents.advisors.llm_prompt import shown_candidates, system_prompt, user_prompt
from agents.advisors.llm_schema import read_answer, response_schema
from agents.advisors.protocol import AdvisorChoice, AdvisorInput, AnswerRefused, Candidate, Pick
from agents.advisors.ranking import NOISE_FRAC, rank
from agents.advisors.validate import problems_of

# how far the first pick may trail the best gain for the sake of effort or risk
LEAD_FRAC = 0.20
MARKUP = re.compile(r"://|www\.|</?[a-z!]|\]\(|[`|{}\\]|\bev-[a-z]|\bc\d+\b", re.IGNORECASE)


class LlmAdvisor:
    """An advisor behind any litellm provider string.

    model, api_base, api_key, timeout_s, retries: as in `ModelClient`. retry_wait_s: before the first retry, twice as
    long before each further one. max_output_tokens: longest answer.
    """

    name: Literal["rules", "llm"] = "llm"

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: SecretStr | None = None,
        timeout_s: float = 60.0,
        retries: int = 2,
        retry_wait_s: float = 0.5,
        max_output_tokens: int = 3000,
    ) -> None:
        self._max_output_tokens = max_output_tokens
        self._client = ModelClient(
            model,
            api_base=api_base,
            api_key=api_key,
            timeout_s=timeout_s,
            retries=retries,
            retry_wait_s=retry_wait_s,
            max_output_tokens=max_output_tokens,
        )

    def choose(self, question: AdvisorInput, problems: tuple[str, ...] = ()) -> AdvisorChoice:
        """One turn. AnswerRefused with what is wrong with the answer, AdvisorFailed where none came."""
        shown = shown_candidates(question)
        reply = self._client.ask(
            system_prompt(), user_prompt(question, shown, problems), response_schema(question, shown)
        )
        if reply.truncated:
            cut = f"the answer was cut off at {self._max_output_tokens} tokens; write less"
            raise AnswerRefused((cut,), usage=reply.usage)
        choice = read_answer(reply.text, question, reply.usage)
        broken = [
            *problems_of(question, choice),
            *_choice_problems(question, choice),
            *prose_problems(question, choice),
        ]
        if broken:
            raise AnswerRefused(tuple(dict.fromkeys(broken)), usage=reply.usage)
        return choice

    def close(self) -> None:
        """Give up connections; the advisor may be asked again."""
        self._client.close()


def prose_problems(question: AdvisorInput, choice: AdvisorChoice) -> tuple[str, ...]:
    """What the prose of each pick says that its data does not hold: figures, directions, markup."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    return tuple(
        f"{pick.candidate}: {problem}"
        for pick in choice.picks
        if pick.candidate in candidates
        for problem in _pick_problems(question, candidates[pick.candidate], pick)
    )


def _pick_problems(question: AdvisorInput, candidate: Candidate, pick: Pick) -> Iterator[str]:
    for text in (pick.rationale, *pick.risks):
        if MARKUP.search(text):
            yield "the prose holds a link, markup, code or an internal id"
        yield from figure_problems(question, candidate, text)
        yield from direction_problems(candidate, text)


def _choice_problems(question: AdvisorInput, choice: AdvisorChoice) -> Iterator[str]:
    """Choices against the projector's numbers, which no judgement and no text in a trace may outweigh."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    picked = [candidates[pick.candidate] for pick in choice.picks if pick.candidate in candidates]
    if not picked:
        return
    yield from _foreign_citations(question, choice, candidates)
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


def _foreign_citations(
    question: AdvisorInput, choice: AdvisorChoice, candidates: dict[str, Candidate]
) -> Iterator[str]:
    """Notes cited for a plan that speak neither of a lever it pulls nor of the diagnosed cause."""
    notes = {note.citation.chunk_id: note for note in question.notes}
    for pick in choice.picks:
        levers = candidates[pick.candidate].levers if pick.candidate in candidates else ()
        for chunk in pick.citations:
            note = notes.get(chunk)
            if note is not None and question.diagnosis.cause not in note.causes and not set(note.levers) & set(levers):
                yield f"{pick.candidate}: citation {chunk!r} is about none of its levers"
