"""Numbers in a model's prose: each must be a figure of the data about that plan, with the unit it has there.

Stricter than the check every advisor passes: the unit counts, and so does what is said with the number. A percentage
that is called faster, slower, better or worse must be a projected change of the plan, not any share of the diagnosis.
Numbers inside names ("fp8") pass where our own catalogue has the name; numbers spelled as words never do. Numbers of
notes, of kernel names and of other plans are no figures.
"""

import re
from collections.abc import Iterator
from typing import Literal, get_args

from agents.advisors.protocol import AdvisorInput, Candidate
from agents.advisors.validate import sourced
from agents.findings import Evidence
from agents.gains import objective_change
from projector.specs.plan import ParallelismPlan
from projector.units import KILO, bytes_to_gb, s_to_ms

Unit = Literal["percent", "outcome_percent", "ratio", "ms", "s", "us", "gb", "plain", "other"]

UNITS: dict[str, Unit] = {
    **dict.fromkeys(("%", "percent", "pct"), "percent"),
    **dict.fromkeys(("x", "×", "times"), "ratio"),
    **dict.fromkeys(("ms", "milliseconds", "millisecond"), "ms"),
    **dict.fromkeys(("s", "sec", "seconds", "second"), "s"),
    **dict.fromkeys(("us", "µs", "μs", "microseconds"), "us"),
    **dict.fromkeys(("gb", "gigabytes"), "gb"),
    **dict.fromkeys(("gib", "tb", "tib", "mb", "mib", "kb", "k", "m", "b", "h", "hours", "minutes", "days"), "other"),
}
MEASURED_IN = ("fraction", "", "ms", "s", "GB")  # units of evidence that have a kind of their own, and none
CLAUSE = re.compile(r"(?<=[.;:!?])\s+|,\s+|\s+(?:but|while|whereas|although)\s+")
OUTCOME = re.compile(
    r"^by\b|\b(?:faster|slower|quicker|better|worse|speed-?ups?|gain\w*|improv\w*|worsen\w*)\b", re.IGNORECASE
)
SPELLED = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety|hundreds?|thousands?|millions?|billions?|half|halv\w+|doubl\w+|twice|thrice|tripl\w+|quadrupl\w+|(?:two|three|four|five|six|eight|ten|many|several)-?fold"
    r"|thirds?|quarters?|fifths?|tenths?)\b",
    re.IGNORECASE,
)
DIGIT_WORD = re.compile(r"\S*\d\S*")
NUMBER = re.compile(r"([-+~≈]?)(\d+(?:\.\d+)?)([^\d.]*)")
LINKED = re.compile(r"^[\s,]*(?:of|to|and|or|than|instead of|from|against|versus)\s+$")


def figure_problems(question: AdvisorInput, candidate: Candidate, text: str) -> list[str]:
    """Numbers of one text about a candidate that its data does not hold, as sentences for a repair."""
    units: tuple[Unit, ...] = get_args(Unit)
    figures = {unit: tuple(_figures(question, candidate, unit)) for unit in units}
    names = frozenset(_names(question, candidate))
    found = [f"the quantity {match.group(0)!r} is written as a word" for match in SPELLED.finditer(text)]
    for clause in CLAUSE.split(text):
        percent: Unit = "outcome_percent" if OUTCOME.search(clause) else "percent"
        for number, unit in _numbers(clause, names):
            kind: Unit = percent if unit == "percent" else unit
            if not number:
                found.append("a name with digits does not stand in the data of this plan")
            elif not sourced(number, figures[kind]):
                found.append(f"the number {number} is no figure ({kind.replace('_', ' ')}) of this plan")
    return found


def _numbers(clause: str, names: frozenset[str]) -> Iterator[tuple[str, Unit]]:
    """(number, unit) as written, last first; ("", "other") for a word with digits that is neither a number nor known.

    A number without a unit takes that of the number it is linked to ("40.0 of 80.0 GB").
    """
    later: tuple[int, Unit] | None = None
    for match in reversed(list(DIGIT_WORD.finditer(clause))):
        word = match.group(0).strip(".,;:!?()[]\"'“”‘’`*")
        if word.lower() in names:
            continue
        parts = re.split(r"->|→|–|—|/|=|(?<=\d)-(?=\d)", word)
        parsed = [NUMBER.fullmatch(part) for part in parts if any(char.isdigit() for char in part)]
        if any(part is None for part in parsed):
            yield "", "other"
            continue
        unit = _unit_after(clause[match.end() :])
        if unit == "plain" and later is not None and LINKED.match(clause[match.end() : later[0]]):
            unit = later[1]
        for part in parsed:
            assert part is not None
            yield part.group(2), _own_unit(part.group(3), unit)
        later = (match.start(), _own_unit(parsed[-1].group(3) if parsed[-1] else "", unit))


def _own_unit(suffix: str, following: Unit) -> Unit:
    """Unit of a number from what is attached to it ("40GB", "8-way"), else from the word behind it."""
    suffix = suffix.lower().strip(".,;:!?)\"'")
    if not suffix:
        return following
    return UNITS.get(suffix.lstrip("-"), "plain" if suffix in ("-way", "-stage", "-chip", "-device") else "other")


def _unit_after(rest: str) -> Unit:
    word = re.match(r"\s*([%×]|[A-Za-zµμ/]+)", rest)
    return UNITS.get(word.group(1).lower(), "plain") if word else "plain"


def _figures(question: AdvisorInput, candidate: Candidate, unit: Unit) -> Iterator[float]:
    evidence = (*question.diagnosis.evidence, *candidate.evidence)
    if unit == "percent":
        yield from (entry.value * 100 for entry in evidence if entry.value is not None and entry.unit == "fraction")
        yield from _other_percent(candidate)
    if unit in ("percent", "outcome_percent"):
        yield from _changes_percent(question, candidate)
    elif unit == "ratio":
        yield 1 + candidate.gain_frac
        yield question.reference_step_time_s / candidate.step_time_s
    elif unit in ("ms", "s", "us"):
        scale = {"s": 1.0, "ms": KILO, "us": KILO * KILO}[unit]
        steps_s = (candidate.step_time_s, question.reference_step_time_s)
        yield from (step_s * scale for step_s in (*steps_s, *_evidence_s(evidence)))
    elif unit == "gb":
        yield from _gigabytes(question, candidate)
        yield from (entry.value for entry in evidence if entry.value is not None and entry.unit == "GB")
    elif unit == "plain":
        for plan in (candidate.plan, question.reference.plan):
            yield from (float(value) for value in _degrees(plan))
        yield float(candidate.projection.chips)
        yield from (float(number) for number in re.findall(r"\d+", candidate.title))
        yield from (entry.value for entry in evidence if entry.value is not None and entry.unit not in MEASURED_IN)


def _changes_percent(question: AdvisorInput, candidate: Candidate) -> Iterator[float]:
    """Projected changes of the step time and of the objective, as a whole and by each step."""
    for frac in (candidate.expected.step_time_frac, candidate.expected.objective_frac):
        if frac is not None:
            yield frac * 100
    for gain in (candidate.gain_frac, *(step.gain_frac for step in candidate.steps)):
        if gain is not None:
            yield from (gain * 100, objective_change(gain, question.objective.direction) * 100)


def _other_percent(candidate: Candidate) -> Iterator[float]:
    """Projected changes of anything else, and how full the memory is."""
    expected, memory = candidate.expected, candidate.projection.memory
    for frac in (expected.memory_frac, expected.exposed_communication_frac, expected.idle_frac):
        if frac is not None:
            yield frac * 100
    if memory is not None:
        yield memory.total_bytes / memory.capacity_bytes * 100


def _evidence_s(evidence: tuple[Evidence, ...]) -> Iterator[float]:
    for entry in evidence:
        if entry.value is not None and entry.unit in ("s", "ms"):
            yield entry.value / (s_to_ms(1.0) if entry.unit == "ms" else 1.0)


def _gigabytes(question: AdvisorInput, candidate: Candidate) -> Iterator[float]:
    for memory in (candidate.projection.memory, question.reference.memory):
        if memory is not None:
            yield from (bytes_to_gb(memory.total_bytes), bytes_to_gb(memory.capacity_bytes))
    too_large = (step.too_large_without_bytes for step in candidate.steps)
    yield from (bytes_to_gb(needed) for needed in too_large if needed is not None)


def _degrees(plan: ParallelismPlan) -> Iterator[int]:
    return (value for value in plan.model_dump().values() if isinstance(value, int) and not isinstance(value, bool))


def _names(question: AdvisorInput, candidate: Candidate) -> Iterator[str]:
    """Words with digits that our own catalogue and plans use: chips, dtypes, schedules. Never a bare number."""
    yield candidate.projection.chip.lower()
    for plan in (candidate.plan, question.reference.plan):
        yield from (value.lower() for value in plan.model_dump().values() if isinstance(value, str))
