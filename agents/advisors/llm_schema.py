"""The shape of a language model's answer: a JSON schema built from the ids of one question, and its strict reading.

The schema holds enums, arrays and strings only: ranges of numbers are not enforced by the grammars of local servers,
and a model has no number to give. Evidence of the candidate itself is added by code, as every pick rests on it.
"""

import json
import re
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from agents.advisors.protocol import AdvisorChoice, AdvisorInput, AnswerRefused, Candidate, Pick
from agents.findings import LlmUsage
from projector.specs.record import Record

MOST_ANSWER_CHARS = 50_000
MOST_RATIONALE_CHARS = 1200
MOST_RISK_CHARS = 300
MOST_RISKS = 4
MOST_CITATIONS = 3
FENCED = re.compile(r"^\s*```(?:json)?\s*\n(.*)\n\s*```\s*$", re.DOTALL)

Name = Annotated[str, StringConstraints(max_length=200)]


class LlmPick(Record):
    """One pick as the model writes it."""

    candidate: Name
    evidence: tuple[Name, ...] = Field((), max_length=40)
    citations: tuple[Name, ...] = Field((), max_length=MOST_CITATIONS)
    rationale: Annotated[str, StringConstraints(max_length=MOST_RATIONALE_CHARS)]
    risks: tuple[Annotated[str, StringConstraints(max_length=MOST_RISK_CHARS)], ...] = Field((), max_length=MOST_RISKS)


class LlmAnswer(Record):
    """The whole answer of the model."""

    picks: tuple[LlmPick, ...] = Field(max_length=10)


def response_schema(question: AdvisorInput, candidates: tuple[Candidate, ...]) -> dict[str, Any]:
    """JSON schema of an answer about these candidates. Lists that have nothing to choose from are left out."""
    fields: dict[str, Any] = {"candidate": _one_of([candidate.id for candidate in candidates])}
    evidence = [entry.id for entry in question.diagnosis.evidence]
    if evidence:
        fields["evidence"] = {"type": "array", "items": _one_of(evidence), "minItems": 1, "maxItems": 6}
    chunks = [note.citation.chunk_id for note in question.notes]
    if chunks:
        fields["citations"] = {"type": "array", "items": _one_of(chunks), "maxItems": MOST_CITATIONS}
    fields["rationale"] = {"type": "string"}
    fields["risks"] = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_RISKS}
    picks = {"type": "array", "items": _record(fields), "minItems": question.wanted, "maxItems": question.wanted}
    return _record({"picks": picks})


def read_answer(text: str, question: AdvisorInput, usage: LlmUsage) -> AdvisorChoice:
    """The choice in a model's text; AnswerRefused where it is not JSON or not of the shape. Ids are not checked yet."""
    if len(text) > MOST_ANSWER_CHARS:
        raise AnswerRefused((f"the answer is longer than {MOST_ANSWER_CHARS} characters",), usage=usage)
    fenced = FENCED.match(text)
    try:
        answer = LlmAnswer.model_validate(json.loads(fenced.group(1) if fenced else text))
    except ValidationError as error:
        raise AnswerRefused(tuple(_shape_problems(error)), usage=usage) from error
    except (ValueError, RecursionError) as error:
        raise AnswerRefused(("the answer is not one JSON object",), usage=usage) from error
    own = {candidate.id: [entry.id for entry in candidate.evidence] for candidate in question.candidates}
    return AdvisorChoice(
        picks=tuple(
            Pick(
                candidate=pick.candidate,
                rationale=_line(pick.rationale),
                risks=tuple(filter(None, map(_line, pick.risks))),
                evidence=tuple(dict.fromkeys([*pick.evidence, *own.get(pick.candidate, [])])),
                citations=tuple(dict.fromkeys(pick.citations)),
            )
            for pick in answer.picks
        ),
        usage=usage,
    )


def _line(text: str) -> str:
    """Prose as one line, otherwise as it came: look-alike characters are refused later, not translated."""
    return " ".join(text.split())[: MOST_RATIONALE_CHARS * 4]


def _shape_problems(error: ValidationError) -> list[str]:
    """Where the shape is broken, without the values that were given."""
    entries = error.errors(include_input=False, include_url=False)[:5]
    return [f"{'.'.join(map(str, entry['loc'])) or 'the answer'}: {entry['msg']}" for entry in entries]


def _one_of(names: list[str]) -> dict[str, Any]:
    return {"type": "string", "enum": names}


def _record(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
