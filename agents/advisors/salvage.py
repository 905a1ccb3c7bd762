"""What of a model's refused answer may still be used: its choice if that keeps the rules, and the sentences that hold.

Sentences that fail are left out and counted with the reason. Where nothing is left to say of a plan, the rules' words
stand for it. A choice that breaks a rule is replaced by that of the rules, and what the model wrote about the same
plans is checked as if it had been written about that order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.advisors.llm_order import foreign_citations, order_problems
from agents.advisors.llm_prose import MOST_SENTENCES, sentence_problems, sentences
from agents.advisors.protocol import AdvisorChoice, AdvisorInput, Candidate, Pick
from agents.advisors.validate import selection_problems
from agents.findings import DroppedSentence

LENGTH = "there are more sentences than an explanation needs"


@dataclass(frozen=True)
class Salvaged:
    """choice: safe to show. order_kept: it is the model's. texts: how many plans have the model's words.

    refused: what was left out, as it was written, for the audit log alone; `dropped` says the same without the words.
    """

    choice: AdvisorChoice
    order_kept: bool
    texts: int
    dropped: tuple[DroppedSentence, ...]
    refused: tuple[str, ...]


def salvage(
    question: AdvisorInput,
    answer: AdvisorChoice,
    by_rules: AdvisorChoice,
    explain: Callable[[AdvisorInput, Candidate], Pick],
) -> Salvaged:
    """The answer without what does not hold.

    by_rules: the choice that stands in. explain: the rules' words for a plan they did not choose.
    """
    if not (selection_problems(question, answer) or order_problems(question, answer)):
        kept = _in_order(question, answer, answer, by_rules, explain)
        if kept.texts:
            return kept
    # a model of whose words nothing holds does not order the plans either
    return _in_order(question, answer, by_rules, by_rules, explain)


def _in_order(
    question: AdvisorInput,
    answer: AdvisorChoice,
    order: AdvisorChoice,
    by_rules: AdvisorChoice,
    explain: Callable[[AdvisorInput, Candidate], Pick],
) -> Salvaged:
    """The answer's words about the plans of an order, as far as they hold there."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    names = [pick.candidate for pick in order.picks]
    picked = tuple(candidates[name] for name in names)
    rules = {pick.candidate: pick for pick in by_rules.picks}
    picks: list[Pick] = []
    dropped: list[DroppedSentence] = []
    refused: list[str] = []
    for rank, candidate in enumerate(picked, start=1):
        written = [pick for pick in answer.picks if pick.candidate == candidate.id]
        own = rules.get(candidate.id) or explain(question, candidate)
        # what is written twice about one plan is not known to be meant either way
        kept = _held(question, candidate, picked, rank, written[0], dropped, refused) if len(written) == 1 else None
        picks.append(kept or own)
    return Salvaged(
        choice=AdvisorChoice(picks=tuple(picks), usage=answer.usage),
        order_kept=order is answer,
        texts=sum(pick.written_by == "llm" for pick in picks),
        dropped=tuple(dropped),
        refused=tuple(refused),
    )


def _held(
    question: AdvisorInput,
    candidate: Candidate,
    picked: Sequence[Candidate],
    rank: int,
    pick: Pick,
    dropped: list[DroppedSentence],
    refused: list[str],
) -> Pick | None:
    """The pick with what holds of it; None where its rationale says nothing any more."""

    def holding(text: str, part: str) -> str:
        kept = []
        for number, sentence in enumerate(sentences(text)):
            problems = sentence_problems(question, candidate, picked, sentence)
            reasons = (*problems, *([LENGTH] if number >= MOST_SENTENCES else []))
            if reasons:
                refused.append(sentence)
                dropped.append(DroppedSentence.model_validate({"rank": rank, "part": part, "reasons": reasons}))
            else:
                kept.append(sentence)
        return " ".join(kept)

    rationale = holding(pick.rationale, "rationale")
    risks = tuple(filter(None, (holding(risk, "risk") for risk in pick.risks)))
    if not any(char.isalpha() for char in rationale):
        return None
    known = {entry.id for entry in (*question.diagnosis.evidence, *candidate.evidence)}
    chunks = {note.citation.chunk_id for note in question.notes} - foreign_citations(question, candidate)
    evidence = tuple(name for name in pick.evidence if name in known)
    return Pick(
        candidate=candidate.id,
        rationale=rationale,
        risks=risks,
        evidence=evidence or tuple(entry.id for entry in candidate.evidence),
        citations=tuple(name for name in pick.citations if name in chunks),
        written_by="llm",
    )
