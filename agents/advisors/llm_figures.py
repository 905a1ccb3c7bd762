"""Numbers in a model's prose: each must be a figure of the data about that plan, with the unit it has there.

Stricter than the check every advisor passes: the unit counts, and so does what is said with the number. A percentage
that is called faster, slower, better or worse must be a projected change of the plan, not any share of the diagnosis.
Numbers inside names ("fp8") pass where our own catalogue has the name; numbers spelled as words never do. Numbers of
notes, of kernel names and of other plans are no figures.
"""

import re
from collections.abc import Iterator

from agents.advisors.llm_units import (
    AS_IT_IS,
    BOUND,
    CLAUSE,
    DIGIT_WORD,
    EMPTY_STEMS,
    FROM_TO,
    LINKED,
    MACHINES,
    MEASURED_IN,
    NUMBER,
    OUTCOME,
    RATE,
    ROOM,
    SCALE,
    SHARED_OVER,
    SIGNED_CHANGE,
    SPELLED,
    TIME,
    UNITS,
    WINDOW,
    Unit,
)
from agents.advisors.protocol import AdvisorInput, Candidate
from agents.advisors.validate import sourced
from agents.findings import Evidence
from agents.gains import objective_change
from projector.specs.plan import ParallelismPlan
from projector.units import bytes_to_gb, s_to_ms


def figure_problems(question: AdvisorInput, candidate: Candidate, text: str) -> list[str]:
    """Numbers of one sentence about a candidate that its data does not hold, as sentences for a repair."""
    names = frozenset(_names(question, candidate))
    found = [f"the quantity {match.group(0)!r} is written as a word" for match in SPELLED.finditer(text)]
    if BOUND.search(text):
        found.append("a bound is given where the data has the figure itself")
    found += _order_problems(question, candidate, text)
    sizes = {candidate.projection.chips, *(getattr(candidate.plan, axis) for axis in SHARED_OVER)}
    if any(int(match.group(1)) not in sizes for match in MACHINES.finditer(text)):
        found.append("a number of chips is neither that of the cluster nor a degree of this plan")
    for clause in CLAUSE.split(text):
        if SIGNED_CHANGE.search(clause):
            found.append("a sign and a word of direction stand together")
        for number, unit, sign in _numbers(clause, names):
            kind: Unit = "outcome_percent" if unit == "percent" and OUTCOME.search(clause) else unit
            figures = tuple(_figures(question, candidate, kind, clause, text))
            if not number:
                found.append("a name with digits does not stand in the data of this plan")
            elif not sourced(number, figures):
                found.append(f"the number {number} is no figure ({kind.replace('_', ' ')}) of this plan")
            elif sign and not sourced(number, [figure for figure in figures if (figure < 0) == (sign == "-")]):
                found.append(f"the number {sign}{number} has the other sign in the data of this plan")
    return found


def _order_problems(question: AdvisorInput, candidate: Candidate, text: str) -> Iterator[str]:
    """A change of time or memory told from its end to its start."""
    for match in FROM_TO.finditer(text):
        unit = UNITS.get(match.group(3).lower(), "other")
        before, after = _now(question, unit), _then(candidate, unit)
        if not (sourced(match.group(1), before) and sourced(match.group(2), after)):
            yield f"it does not go from {match.group(1)} to {match.group(2)} {match.group(3)}"


def _numbers(clause: str, names: frozenset[str]) -> Iterator[tuple[str, Unit, str]]:
    """(number, unit, sign) as written, last first; an empty number for a word with digits that is no number nor known.

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
            yield "", "other", ""
            continue
        unit = _unit_after(clause[match.end() :])
        if unit == "plain" and later is not None and LINKED.match(clause[match.end() : later[0]]):
            unit = later[1]
        for part in parsed:
            assert part is not None
            yield part.group(2), _own_unit(part.group(3), unit), part.group(1) if part.group(1) in ("+", "-") else ""
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


def _figures(question: AdvisorInput, candidate: Candidate, unit: Unit, clause: str, sentence: str) -> Iterator[float]:
    """Figures that a number of this unit may be, where it is said.

    Evidence must be spoken of: its claim and the sentence share a word. Figures of what runs now need a word that says
    so. A share that is called a change must be a projected change.
    """
    evidence = tuple(
        entry for entry in (*question.diagnosis.evidence, *candidate.evidence) if _is_meant(entry, sentence)
    )
    values = [(entry.value, entry.unit) for entry in evidence if entry.value is not None]
    if unit == "percent":
        yield from (value * 100 for value, measured_in in values if measured_in == "fraction")
        yield from _other_percent(candidate, sentence)
    if unit in ("percent", "outcome_percent"):
        yield from _changes_percent(question, candidate, clause)
    elif unit == "ratio":
        yield 1 + candidate.gain_frac
        yield question.reference_step_time_s / candidate.step_time_s
    elif unit in ("ms", "s", "us", "gb"):
        if not (WINDOW.search(clause) and unit != "gb"):
            yield from _then(candidate, unit)
        if AS_IT_IS.search(sentence):
            yield from _now(question, unit)
        if unit == "gb":
            yield from (value for value, measured_in in values if measured_in == "GB")
            if ROOM.search(sentence):
                yield from _capacities(question, candidate)
        else:
            yield from (value * SCALE[unit] for value in _evidence_s(evidence))
    elif unit == "plain":
        for plan in (candidate.plan, question.reference.plan):
            yield from (float(value) for value in _degrees(plan))
        yield float(candidate.projection.chips)
        yield from (float(number) for number in re.findall(r"\d+", candidate.title))
        yield from (value for value, measured_in in values if measured_in not in MEASURED_IN)


def _is_meant(entry: Evidence, sentence: str) -> bool:
    """Whether a sentence and a claim share a word that carries meaning."""
    claim = {stem for text in (entry.claim, entry.id.removeprefix("ev-").replace("-", " ")) for stem in _stems(text)}
    return not claim.isdisjoint(_stems(sentence))


def _stems(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]{3,}", text.lower())} - EMPTY_STEMS


def _changes_percent(question: AdvisorInput, candidate: Candidate, clause: str) -> Iterator[float]:
    """Projected changes of the step time and of the objective, as a whole and by each step.

    Of the step time alone where the clause speaks of time.
    """
    step_time = candidate.expected.step_time_frac
    if step_time is not None and not RATE.search(clause):
        yield step_time * 100
    if TIME.search(clause) and not RATE.search(clause):
        return
    if candidate.expected.objective_frac is not None:
        yield candidate.expected.objective_frac * 100
    for gain in (candidate.gain_frac, *(step.gain_frac for step in candidate.steps)):
        if gain is not None:
            yield from (gain * 100, objective_change(gain, question.objective.direction) * 100)


def _other_percent(candidate: Candidate, sentence: str) -> Iterator[float]:
    """Projected changes of anything else, and how full the memory is, where the sentence speaks of it."""
    expected, memory = candidate.expected, candidate.projection.memory
    changes = (
        (r"memory|hbm", expected.memory_frac),
        (r"communicat|collective|exposed|traffic|network", expected.exposed_communication_frac),
        (r"idle|wait", expected.idle_frac),
    )
    for topic, frac in changes:
        if frac is not None and re.search(topic, sentence, re.IGNORECASE):
            yield frac * 100
    if memory is not None and re.search(r"memory|hbm|full|chip", sentence, re.IGNORECASE):
        yield memory.total_bytes / memory.capacity_bytes * 100


def _then(candidate: Candidate, unit: Unit) -> tuple[float, ...]:
    """Step time or memory of the plan in this unit."""
    if unit == "gb":
        memory = candidate.projection.memory
        too_large = (step.too_large_without_bytes for step in candidate.steps)
        needed = [bytes_to_gb(size) for size in too_large if size is not None]
        return (*([bytes_to_gb(memory.total_bytes)] if memory is not None else []), *needed)
    return (candidate.step_time_s * SCALE[unit],) if unit in SCALE else ()


def _now(question: AdvisorInput, unit: Unit) -> tuple[float, ...]:
    """Step time or memory of what the plan is compared with in this unit."""
    if unit == "gb":
        memory = question.reference.memory
        return (bytes_to_gb(memory.total_bytes),) if memory is not None else ()
    return (question.reference_step_time_s * SCALE[unit],) if unit in SCALE else ()


def _capacities(question: AdvisorInput, candidate: Candidate) -> Iterator[float]:
    for memory in (candidate.projection.memory, question.reference.memory):
        if memory is not None:
            yield bytes_to_gb(memory.capacity_bytes)


def _evidence_s(evidence: tuple[Evidence, ...]) -> Iterator[float]:
    for entry in evidence:
        if entry.value is not None and entry.unit in ("s", "ms"):
            yield entry.value / (s_to_ms(1.0) if entry.unit == "ms" else 1.0)


def _degrees(plan: ParallelismPlan) -> Iterator[int]:
    return (value for value in plan.model_dump().values() if isinstance(value, int) and not isinstance(value, bool))


def _names(question: AdvisorInput, candidate: Candidate) -> Iterator[str]:
    """Words with digits that our own catalogue and plans use: chips, dtypes, schedules. Never a bare number."""
    yield candidate.projection.chip.lower()
    for plan in (candidate.plan, question.reference.plan):
        yield from (value.lower() for value in plan.model_dump().values() if isinstance(value, str))
