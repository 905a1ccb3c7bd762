"""Directions in a model's prose: "less tensor parallelism" must not be said of a plan in which it grows.

Read are the common forms in English: a word of direction beside the name of an axis ("reduces the tensor
parallelism", "tp is raised"), degrees ("tp from 8 to 4"), and step time and memory called less or more. A clause that
denies ("not faster") is not read. What is put in other words is not caught: the reader has titles and changes composed
from the numbers beside it.
"""

import re
from collections.abc import Iterator
from typing import Literal

from agents.advisors.protocol import Candidate

Direction = Literal["less", "more"]

AXES = {
    "tp": r"tensor[- ]parallelism|tp",
    "pp": r"pipeline[- ]parallelism|pipeline stages|pp",
    "dp": r"data[- ]parallelism|dp",
    "cp": r"context[- ]parallelism|cp",
    "ep": r"expert[- ]parallelism|ep",
    "fsdp": r"fsdp",
    "micro_batch": r"micro[- _]batch(?: size)?",
    "replicas": r"replicas",
}
# behind the name of an axis: something of the axis is meant, or another axis ("tensor parallelism inside experts")
NOT_THE_AXIS = (
    r"(?![-\s]+(?:communication|traffic|collective|group|exchange|overhead|cost|time|all-|inside|within|of|for|bubble))"
)
LESS = r"less|fewer|lower\w*|reduc\w+|decreas\w+|shrink\w*|smaller|cut(?:s|ting)?|drop(?:s|ped|ping)?|narrow\w*"
MORE = r"more|higher|increas\w+|rais\w+|grow\w*|larger|greater|expand\w*|widen\w*|add(?:s|ed|ing)?"
FILLER = r"(?:\s+(?:the|its|in|of|degree|level|amount|use|size))*\s+"
DENIAL = re.compile(r"\b(not|no|never|without|neither|nor|cannot|avoid\w*|rather than|instead of)\b|n't", re.IGNORECASE)
CLAUSE = re.compile(r"[.;:!?,]\s+|\s+(?:but|while|whereas|although)\s+", re.IGNORECASE)

NOT_THE_SIZE = r"(?![- ](?:bandwidth|traffic|access|bound|read|move))"
STEP = {
    "less": r"\bfaster\b|\bquicker\b|\bshort\w* (?:the )?step|\b(?:reduc\w+|lower\w*|less) (?:the )?step time",
    "more": r"\bslower\b|\blong\w* (?:the )?step|\b(?:increas\w+|rais\w+|higher) (?:the )?step time",
}
MEMORY = {
    "less": rf"\b(?:{LESS}|sav\w+|free\w*)(?:\s+(?:the|its))?\s+memory\b{NOT_THE_SIZE}",
    "more": rf"\b(?:{MORE})(?:\s+(?:the|its))?\s+memory\b{NOT_THE_SIZE}",
}


def direction_problems(candidate: Candidate, text: str) -> list[str]:
    """What a text about a candidate says the wrong way round, as sentences for a repair."""
    found: list[str] = []
    for clause in CLAUSE.split(text):
        found += _degree_problems(candidate, clause)
        if not DENIAL.search(clause):
            found += _axis_problems(candidate, clause)
            found += _outcome_problems("step time", STEP, candidate.expected.step_time_direction, clause)
            found += _outcome_problems("memory", MEMORY, candidate.expected.memory_direction, clause)
    return found


def _axis_problems(candidate: Candidate, clause: str) -> Iterator[str]:
    for axis, names in AXES.items():
        actual = _actual(candidate, axis)
        for said in _said_of(names, clause):
            if said != actual:
                what = "it does not change" if actual is None else f"there is {actual} of it"
                yield f"{said} {axis} is claimed, in this plan {what}"


def _said_of(names: str, clause: str) -> list[Direction]:
    """Directions a clause gives an axis, before its name or behind it."""
    sides: tuple[tuple[Direction, str], ...] = (("less", LESS), ("more", MORE))
    return [
        direction
        for direction, words in sides
        if re.search(rf"\b(?:{words}){FILLER}(?:{names})\b{NOT_THE_AXIS}", clause, re.IGNORECASE)
        or re.search(rf"\b(?:{names})\s+(?:is|gets|becomes|are)\s+(?:{words})\b", clause, re.IGNORECASE)
    ]


def _degree_problems(candidate: Candidate, clause: str) -> Iterator[str]:
    """Degrees given as from and to that are not those of the plan."""
    changed = {change.field: (change.before, change.after) for change in candidate.changes}
    for axis, names in AXES.items():
        pattern = rf"\b(?:{names})\s+(?:\w+\s+)?(?:from\s+)?\(?(\d+)\s*(?:to|->|→)\s*(\d+)"
        for match in re.finditer(pattern, clause, re.IGNORECASE):
            if changed.get(axis) != match.groups():
                yield f"{axis} does not change from {match.group(1)} to {match.group(2)} in this plan"


def _actual(candidate: Candidate, axis: str) -> Direction | None:
    for change in candidate.changes:
        if change.field == axis and change.before.isdigit() and change.after.isdigit():
            return "more" if int(change.after) > int(change.before) else "less"
    return None


def _outcome_problems(name: str, words: dict[str, str], actual: str, clause: str) -> Iterator[str]:
    for said, pattern in words.items():
        if said != actual and re.search(pattern, clause, re.IGNORECASE):
            yield f"{said} {name} is claimed, its projected direction is: {actual}"
