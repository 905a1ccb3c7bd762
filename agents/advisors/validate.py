"""Checks an advisor's answer before anyone reads it: ids exist, plans are distinct, every number has a source.

Directions ("slower", "less") are not read here: titles and changes are composed from the numbers (`planning.titles`).
"""

import re
from collections.abc import Iterable, Iterator

from agents.advisors.protocol import AdvisorChoice, AdvisorInput, Candidate, Pick
from agents.gains import objective_change
from projector.units import KILO, bytes_to_gb, s_to_ms

# a number that is not part of a name such as h100-sxm, gpt-oss-120b or v5.0.1
NUMBER = re.compile(r"(?<![\w.-])[-+]?(\d+(?:\.\d+)?)(?!\w|\.\d|-[a-zA-Z])")


def problems_of(question: AdvisorInput, choice: AdvisorChoice) -> tuple[str, ...]:
    """Every rule the answer breaks, as sentences an advisor can act on; () when it may be shown."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    found = list(selection_problems(question, choice))
    for pick in choice.picks:
        if pick.candidate in candidates:
            found += _pick_problems(question, candidates[pick.candidate], pick)
    return tuple(found)


def selection_problems(question: AdvisorInput, choice: AdvisorChoice) -> tuple[str, ...]:
    """Rules that the picked ids break: how many, which, each once, distinct layouts."""
    candidates = {candidate.id: candidate for candidate in question.candidates}
    found = []
    if len(choice.picks) != question.wanted:
        found.append(f"{len(choice.picks)} candidates were picked, {question.wanted} are wanted")
    names = [pick.candidate for pick in choice.picks]
    found += [f"candidate {name!r} is not on the list" for name in names if name not in candidates]
    found += [f"candidate {name} is picked twice" for name in sorted({name for name in names if names.count(name) > 1})]
    picked = [candidates[name] for name in names if name in candidates]
    found += _layout_problems(question, picked)
    return tuple(found)


def _layout_problems(question: AdvisorInput, picked: list[Candidate]) -> list[str]:
    """Distinct layouts are required as far as the list holds them."""
    available = len({candidate.plan.layout for candidate in question.candidates if not candidate.keeps})
    required = min(question.wanted - any(candidate.keeps for candidate in picked), available)
    layouts = len({candidate.plan.layout for candidate in picked if not candidate.keeps})
    return [f"{layouts} distinct layouts are picked, {required} are available"] if layouts < required else []


def _pick_problems(question: AdvisorInput, candidate: Candidate, pick: Pick) -> list[str]:
    known = {entry.id for entry in (*question.diagnosis.evidence, *candidate.evidence)}
    chunks = {note.citation.chunk_id for note in question.notes}
    found = [f"{candidate.id}: evidence {name!r} does not exist" for name in pick.evidence if name not in known]
    found += [f"{candidate.id}: citation {name!r} does not exist" for name in pick.citations if name not in chunks]
    if not pick.evidence:
        found.append(f"{candidate.id}: no evidence is named")
    if not pick.rationale.strip():
        found.append(f"{candidate.id}: the rationale is empty")
    for text in (pick.rationale, *pick.risks):
        found += [
            f"{candidate.id}: the number {number} has no source" for number in unsourced(question, candidate, text)
        ]
    return found


def unsourced(question: AdvisorInput, candidate: Candidate, text: str) -> tuple[str, ...]:
    """Numbers of a text about a candidate that are no figure of the data in whatever unit."""
    allowed = tuple(_figures(question, candidate))
    return tuple(number for number in _numbers(text) if not sourced(number, allowed))


def _numbers(text: str) -> Iterator[str]:
    return (match.group(1) for match in NUMBER.finditer(text))


def sourced(number: str, allowed: Iterable[float]) -> bool:
    """Whether some figure, rounded to as many digits as are shown, is this number."""
    decimals = len(number.partition(".")[2])
    shown, half = float(number), 0.5 * 10**-decimals
    return any(abs(abs(figure) - shown) <= half * (1 + 1e-6) for figure in allowed)


def _figures(question: AdvisorInput, candidate: Candidate) -> Iterator[float]:
    """Every figure prose about this candidate may use: of the diagnosis, the reference, and its own projection."""
    for entry in (*question.diagnosis.evidence, *candidate.evidence):
        if entry.value is not None:
            yield from (entry.value, entry.value * 100)
    for frac in candidate.expected.model_dump().values():
        if isinstance(frac, float):
            yield frac * 100
    gains = [candidate.gain_frac, *(taken.gain_frac for taken in candidate.steps)]
    if candidate.keeps:
        gains += [other.gain_frac for other in question.candidates]
    for gain in gains:
        if gain is not None:
            yield from (gain * 100, objective_change(gain, question.objective.direction) * 100)
    too_large = (taken.too_large_without_bytes for taken in candidate.steps)
    yield from (bytes_to_gb(needed) for needed in too_large if needed is not None)
    for step_s in (candidate.step_time_s, question.reference_step_time_s):
        yield from (step_s, s_to_ms(step_s), s_to_ms(step_s) * KILO)
    for memory in (candidate.projection.memory, question.reference.memory):
        if memory is not None:
            used = memory.total_bytes / memory.capacity_bytes
            yield from (bytes_to_gb(memory.total_bytes), bytes_to_gb(memory.capacity_bytes), used * 100)
    yield from (float(value) for value in candidate.plan.model_dump().values() if isinstance(value, int))
    for text in _composed_texts(question, candidate):
        yield from (float(number) for number in _numbers(text))


def _composed_texts(question: AdvisorInput, candidate: Candidate) -> Iterator[str]:
    """Texts our own code composed from figures, and passages of notes: their numbers may be repeated."""
    if candidate.keeps:
        yield from (other.title for other in question.candidates)
    yield from (candidate.title, question.reference_label, question.diagnosis.summary, *question.diagnosis.limits)
    yield from (entry.claim for entry in (*question.diagnosis.evidence, *candidate.evidence))
    yield from (text for change in candidate.changes for text in (change.before, change.after, change.why))
    yield from (lever.mechanism for lever in question.levers)
    yield from (text for note in question.notes for text in (note.citation.title, note.citation.quote))
