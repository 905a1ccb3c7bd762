"""What a language model is told: fixed instructions, and the question as one block of JSON data.

Kernel names, passages of notes and a model's earlier mistakes are foreign text. In the data they are single printable
lines of bounded length, without the marks that chat templates and markup use, inside JSON strings: they can neither end
the block nor pose as a turn of the conversation. What a model does with them all the same is caught by the validation.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agents.advisors.protocol import AdvisorInput, Candidate
from agents.advisors.ranking import rank
from agents.advisors.redaction import Masks
from agents.causes import CAUSE_PHRASE
from agents.gains import objective_change
from agents.wording import duration, gigabytes, quoted, signed_percent

MOST_CANDIDATES = 12
MOST_PROBLEMS = 12
CLAIM_CHARS = 300
QUOTE_CHARS = 400
PROMPTS = Path(__file__).parent / "prompts"
TEMPLATE_MARKS = re.compile(r"\[(/?[A-Z_]{3,})\]")


def shown_candidates(question: AdvisorInput) -> tuple[Candidate, ...]:
    """The candidates a model is shown, in the projector's order: those the rules would pick, and the best others."""
    leading = {candidate.id for candidate in rank(question)}
    others = [candidate for candidate in question.candidates if candidate.id not in leading]
    shown = leading | {candidate.id for candidate in others[: max(0, MOST_CANDIDATES - len(leading))]}
    return tuple(candidate for candidate in question.candidates if candidate.id in shown)


def system_prompt() -> str:
    """The instructions, the same for every question."""
    return _text("system.md")


def user_prompt(
    question: AdvisorInput, candidates: Sequence[Candidate], problems: Sequence[str], masks: Masks | None = None
) -> str:
    """One question with its data; with what was wrong with the last answer, where there was one.

    masks: hides names in every text that was composed or is foreign; None: as `question.hidden` says.
    """
    hide = (masks or Masks(question.hidden)).hidden
    data = json.dumps(_hidden(_data(question, candidates), hide), ensure_ascii=False, separators=(",", ":"))
    text = _text("question.md").replace("{wanted}", str(question.wanted)).replace("{data}", data)
    if not problems:
        return text
    told = [hide(_plain(problem, CLAIM_CHARS)) for problem in problems[:MOST_PROBLEMS]]
    lines = json.dumps(told, ensure_ascii=False)
    return text + _text("repair.md").replace("{problems}", lines)


def _hidden(value: Any, hide: Callable[[str], str]) -> Any:
    """The data with every text masked; keys are our own words."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [_hidden(item, hide) for item in value]
    if isinstance(value, dict):
        return {key: _hidden(item, hide) for key, item in value.items()}
    return value


def _data(question: AdvisorInput, candidates: Sequence[Candidate]) -> dict[str, Any]:
    diagnosis = question.diagnosis
    pulled = {name for candidate in candidates for name in candidate.levers}
    return {
        "phase": question.phase,
        "objective": f"{question.objective.meaning} ({question.objective.direction})",
        "compared_with": _plain(question.reference_label),
        "diagnosis": {
            "source": diagnosis.source,
            "cause": CAUSE_PHRASE[diagnosis.cause],
            "ambiguous": diagnosis.ambiguous,
            "a_change_of_layout_can_relieve_it": question.layout_relieves,
            "summary": _plain(diagnosis.summary, 2 * CLAIM_CHARS),
            "limits": [_plain(limit) for limit in diagnosis.limits],
            "evidence": {entry.id: _plain(entry.claim) for entry in diagnosis.evidence},
        },
        "candidates": [_candidate(question, candidate) for candidate in candidates],
        "levers": {lever.name: _plain(lever.mechanism) for lever in question.levers if lever.name in pulled},
        "notes": [
            {
                "id": note.citation.chunk_id,
                "title": _plain(note.citation.title),
                "about": list(note.levers),
                "passage": _plain(note.citation.quote, QUOTE_CHARS),
                "bear_in_mind": [_plain(caveat) for caveat in note.citation.caveats],
            }
            for note in question.notes
        ],
    }


def _candidate(question: AdvisorInput, candidate: Candidate) -> dict[str, Any]:
    memory, frac = candidate.projection.memory, candidate.expected.step_time_frac
    gain = objective_change(candidate.gain_frac, question.objective.direction)
    return {
        "id": candidate.id,
        "title": _plain(candidate.title),
        "changes": [f"{change.field}: {change.before} to {change.after}" for change in candidate.changes],
        "objective": f"{signed_percent(gain)}, {'better' if gain >= 0 else 'worse'}",
        "step_time": duration(candidate.step_time_s) + (f" ({signed_percent(frac)})" if frac is not None else ""),
        "memory": "unknown"
        if memory is None
        else f"{gigabytes(memory.total_bytes)} of {gigabytes(memory.capacity_bytes)}",
        "levers_that_relieve_the_cause": list(candidate.relieving),
        "levers": list(candidate.levers),
        "effort": candidate.effort,
        "notes_that_hold_for_it": [standing.chunk_id for standing in candidate.standings if standing.holds],
        "notes_against_it": [standing.chunk_id for standing in candidate.standings if not standing.holds],
        "keeps_the_current_plan": candidate.keeps,
    }


def _plain(text: str, limit: int = CLAIM_CHARS) -> str:
    """Foreign or composed text as one short line, without marks that a chat template or markup takes for its own."""
    line = quoted(text, limit).replace("<", "‹").replace(">", "›")
    return TEMPLATE_MARKS.sub(r"(\1)", line)


@cache
def _text(name: str) -> str:
    return (PROMPTS / name).read_text(encoding="utf-8")
