"""Directions in a model's prose: "less tensor parallelism" must not be said of a plan in which it grows.

Read are the common forms in English: a word of direction beside the name of an axis ("reduces the tensor
parallelism", "tp is raised"), degrees ("tp from 8 to 4", "tp of 4"), and step time, memory and the objective called
less or more, better or worse. A denial right before the word ("not slower") turns it round. What is put in other words
is not caught: the reader has titles and changes composed from the numbers beside it.
"""

import re
from collections.abc import Iterator
from typing import Literal

from agents.advisors.llm_adoption import adoption_problems
from agents.advisors.protocol import Candidate
from projector.levers import LEVERS

Direction = Literal["less", "more"]

AXES = {
    "tp": r"tensor[- ]parallelism|tp",
    "pp": r"pipeline[- ]parallelism|pipeline stages|pp",
    "dp": r"data[- ]parallelism|dp",
    "cp": r"context[- ]parallelism|cp",
    "ep": r"expert[- ]parallelism|ep",
    "fsdp": r"fsdp",
    "grad_accum": r"gradient[- ]accumulation|accumulation steps",
    "micro_batch": r"micro[- _]batch(?: size)?",
    "replicas": r"replicas",
}
# behind the name of an axis: something of the axis is meant, or another axis ("tensor parallelism inside experts")
NOT_THE_AXIS = (
    r"(?![-\s]+(?:communication|traffic|collective|group|exchange|overhead|cost|time|all-|inside|within|of|for|bubble))"
)
LESS = (
    r"disabl\w+|remov\w+|(?:switch|turn)\w* off|less|fewer|lower\w*|reduc\w+|decreas\w+|shrink\w*|smaller"
    r"|cut(?:s|ting)?|drop(?:s|ped|ping)?|narrow\w*"
)
MORE = (
    r"enabl\w+|introduc\w+|(?:switch|turn)\w* on|more|higher|increas\w+|rais\w+|grow\w*|larger"
    r"|greater|expand\w*|widen\w*|add(?:s|ed|ing)?"
)
FILLER = r"(?:\s+(?:the|its|in|of|degree|level|amount|use|size))*\s+"
DENIAL = re.compile(r"\b(not|no|never|without|neither|nor|cannot|avoid\w*|rather than|instead of)\b|n't", re.IGNORECASE)
OTHER_PLAN = re.compile(r"\bthan (?:the )?(?:\w+ )?(?:first|second|third|others?|rest|both)\b", re.IGNORECASE)
CLAUSE = re.compile(r"[.;:!?,]\s+|\s+(?:but|while|whereas|although)\s+", re.IGNORECASE)

NOT_THE_SIZE = r"(?![- ](?:bandwidth|traffic|access|bound|read|move))"
THE_STEP = r"(?:the |each |a )?(?:projected |whole )?(?:step(?: time)?|iteration|latency)"
STEP = {
    "less": rf"\bfaster\b(?! to adopt)|\bquicker\b(?! to adopt)|\bspeed(?:s|ed)? (?:it |the step )?up\b|\bspeed-?ups?\b"
    rf"|\b(?:short\w*|reduc\w+|lower\w*|less|cut(?:s|ting)?|decreas\w+) {THE_STEP}"
    rf"|\bstep(?: time)? (?:falls|drops|shrinks|decreases|is (?:reduced|shorter|cut))\b",
    "more": rf"\bslower\b|\bslow\w* (?:\w+ ){{0,2}}down\b|\bsteps?(?: time)? (?:\w+ )?longer\b"
    rf"|\bslow(?:s|ed)? (?:it |the step )?down\b|\bslow-?downs?\b"
    rf"|\b(?:long\w*|increas\w+|rais\w+|higher) {THE_STEP}"
    rf"|\bstep(?: time)? (?:grows|rises|increases|is (?:longer|raised))\b",
}
MEMORY = {
    "less": rf"\b(?:{LESS}|sav\w+|free\w*)(?:\s+(?:the|its))?\s+memory\b{NOT_THE_SIZE}"
    r"|\bmemory(?: use| needs?)? (?:falls|drops|shrinks|decreases|is (?:lower|reduced|saved|freed))\b",
    "more": rf"\b(?:{MORE})(?:\s+(?:the|its))?\s+memory\b{NOT_THE_SIZE}"
    r"|\bmemory(?: use| needs?)? (?:grows|rises|increases|is (?:higher|raised|increased))\b",
}
OBJECTIVE = {
    "less": r"\bworse\b|\bworsens?\b|\b(?:lower|less|reduces?|loses?) (?:the )?throughput\b"
    r"|\bthroughput (?:falls|drops|decreases)\b"
    r"|\bregress\w*",
    "more": r"\bbetter\b|\bimprov\w+|\b(?:higher|more|raises?|increases?) (?:the )?throughput\b"
    r"|\bthroughput (?:rises|grows|increases)\b|\bgains?\b",
}
NOT_BEFORE = re.compile(r"\b(?:not|no|never|neither|cannot|n't|without)\s+(?:\w+\s+)?$", re.IGNORECASE)
AS_IT_IS = re.compile(
    r"\b(?:from|current\w*|today|now|before|instead|reference|compared|measured|originally|today's)\b", re.IGNORECASE
)
SAME_FRAC = 0.01
UNCHANGED = r"(?:\w+ )?(?:stays?|remains?|is|keeps?) (?:\w+ )?(?:the same|unchanged|constant|equal|unaffected)\b"
TRAFFIC_OF = {"tp": "tensor", "dp": "data", "ep": "expert", "cp": "context", "pp": "pipeline"}
TURNED_ON = r"(?:enabl\w+|(?:switch|turn)\w* on|introduc\w+|adopts?|activat\w+) (?:the |full |selective )?"


def direction_problems(candidate: Candidate, text: str) -> list[str]:
    """What a text about a candidate says the wrong way round, as sentences for a repair."""
    found = list(adoption_problems(candidate, text))
    for clause in CLAUSE.split(text):
        found += _degree_problems(candidate, clause)
        found += _value_problems(candidate, clause)
        if not DENIAL.search(clause):
            found += _axis_problems(candidate, clause)
        if OTHER_PLAN.search(clause):
            continue  # compared with another proposal: `llm_comparisons` reads that
        found += _outcome_problems("step time", STEP, candidate.expected.step_time_direction, clause)
        found += _outcome_problems("memory", MEMORY, candidate.expected.memory_direction, clause)
        found += _unchanged_problems(candidate, clause)
        found += _lever_problems(candidate, clause)
        found += _traffic_problems(candidate, clause) if not DENIAL.search(clause) else ()
        found += _outcome_problems("objective", OBJECTIVE, _gain_direction(candidate), clause)
    return found


def _unchanged_problems(candidate: Candidate, clause: str) -> Iterator[str]:
    """What is said to stay as it is and does not."""
    outcomes = (
        ("memory", r"memory", candidate.expected.memory_direction),
        ("step time", r"step(?: time)?", candidate.expected.step_time_direction),
        ("throughput", r"(?:throughput|rate)", "same" if _gain_direction(candidate) == "same" else "other"),
    )
    for name, words, actual in outcomes:
        if actual != "same" and re.search(rf"\b{words} {UNCHANGED}", clause, re.IGNORECASE):
            yield f"{name} is said to stay the same, its projected direction is: {actual}"
    fields = {change.field for change in candidate.changes}
    lowered = r"\b(?:precision|dtype) (?:is|gets|becomes|falls|drops|rises)\b|\bquantis\w+ to\b|\bquantiz\w+ to\b"
    if re.search(lowered, clause, re.IGNORECASE) and not any(field.endswith("dtype") for field in fields):
        yield "precision is said to change and does not"


def _traffic_problems(candidate: Candidate, clause: str) -> Iterator[str]:
    """Traffic of an axis said to fall where neither the axis nor exposed communication does."""
    exposed = candidate.expected.exposed_communication_frac
    for axis, word in TRAFFIC_OF.items():
        said = rf"\b(?:{LESS}|avoids?)\s+(?:\w+ )?{word}[- ]parallel(?:ism)?[- ](?:communication|traffic|collectives?)"
        falls = _actual(candidate, axis) == "less" or (exposed is not None and exposed < -SAME_FRAC)
        if not falls and re.search(said, clause, re.IGNORECASE):
            yield f"less {axis} traffic is claimed, and there is none less in this plan"


def _lever_problems(candidate: Candidate, clause: str) -> Iterator[str]:
    """A lever that is said to be switched on and is not pulled."""
    for lever in LEVERS:
        words = lever.name.replace("_", "[- _]")
        if lever.name not in candidate.levers and re.search(rf"\b{TURNED_ON}{words}\b", clause, re.IGNORECASE):
            yield f"{lever.name} is said to be switched on and is not changed"


def _gain_direction(candidate: Candidate) -> str:
    if abs(candidate.gain_frac) <= SAME_FRAC:
        return "same"
    return "more" if candidate.gain_frac > 0 else "less"


def _value_problems(candidate: Candidate, clause: str) -> Iterator[str]:
    """A degree given alone is not that of the plan, and is not said of what runs now."""
    if AS_IT_IS.search(clause):
        return
    for axis, names in AXES.items():
        value = getattr(candidate.plan, axis, None)
        alone = (
            rf"\b(?:{names})\s*(?:=|of|at|is|degree(?: of)?|size(?: of)?)?\s*(\d+)"
            r"(?!\d|\.\d|\s*(?:to|->|→|%|percent|x\b))",
            rf"(\d+)-way (?:{names})\b",
        )
        for match in (match for form in alone for match in re.finditer(form, clause, re.IGNORECASE)):
            if value is not None and int(match.group(1)) != value:
                yield f"{axis} is not {match.group(1)} in this plan"


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
        for match in re.finditer(pattern, clause, re.IGNORECASE):
            denied = NOT_BEFORE.search(clause[: match.start()]) is not None
            if denied == (said == actual):
                yield f"{'not ' if denied else ''}{said} {name} is claimed, its projected direction is: {actual}"
