"""What retrieved notes say of each plan: the inequality of a note, evaluated at the plan's own numbers.

A note takes a stand on a plan if
  - it was retrieved for this job (its phase, hardware and cause or lever fit), is near enough and not stale,
  - its front matter says that its inequality decides about plans (`decides: plan`),
  - the plan changes one of its levers, and
  - every variable of the inequality is known for the plan (`note_symbols`).
Stands never outweigh a gate or a gain the projector sees: they order plans that are projected alike (`ranking`).
"""

from collections.abc import Iterable, Mapping, Sequence

from agents.advisors.protocol import Candidate, Note, Standing
from agents.advisors.ranking import PREFERENCE_FRAC
from agents.findings import Evidence
from agents.planning.citations import Retrieved
from agents.planning.job import Job
from agents.planning.note_symbols import values_for
from agents.planning.reference import Reference
from agents.planning.scores import Scores
from agents.wording import quoted
from knowledge_base.rule import NoteRule
from projector.errors import InvalidDescription
from projector.levers import changed_levers
from projector.specs.bottleneck import Cause
from projector.specs.plan import ParallelismPlan

# cosine of query and passage; below it a passage shares the words of sharding and not the subject
LEAST_SIMILARITY = 0.35
MOST_LAYOUTS = 100
STATEMENT_CHARACTERS = 200


def with_standings(
    candidates: Sequence[Candidate], notes: Sequence[Note], rules: Mapping[str, NoteRule], job: Job, cause: Cause
) -> tuple[Candidate, ...]:
    """The candidates with what notes say of them, each as evidence as well. rules: by note id."""
    deciding = deciding_rules(notes, rules)
    return tuple(_judged(candidate, deciding, job, cause) for candidate in candidates)


def stand_on(rule: NoteRule, plan: ParallelismPlan, job: Job) -> tuple[bool, str] | None:
    """(whether the rule holds for the plan, both sides in numbers); None where it says nothing about it."""
    values = values_for(rule, plan, job)
    if values is None:
        return None
    try:
        known, holds = rule.values_at(values), rule.holds_at(values)
    except InvalidDescription:
        return None
    sides = ", ".join(f"{name} = {known[name]:.4g}" for name in rule.sides)
    return holds, f"{rule.inequality}, with {sides}"


def noted_rows(
    scores: Scores, layouts: Sequence[int], retrieved: Retrieved, job: Job, reference: Reference
) -> list[int]:
    """For each note that decides, the best layout it holds for, if that is at most 5 % below the best of all.

    layouts: rows of the scored batch, the best first. What a note adds must pass every gate, as these have.
    """
    if not layouts:
        return []
    least = scores.good[layouts[0]] / (1 + PREFERENCE_FRAC)
    plans = {row: scores.batch[row] for row in layouts[:MOST_LAYOUTS] if scores.good[row] >= least}
    levers = {row: {lever.name for lever in changed_levers(reference.plan, plan)} for row, plan in plans.items()}
    found = []
    for note, rule in deciding_rules(retrieved.notes, retrieved.rules):
        for row, plan in plans.items():
            stand = stand_on(rule, plan, job) if levers[row].intersection(note.levers) else None
            if stand is not None and stand[0]:
                found.append(row)
                break
    return sorted(set(found))


def deciding_rules(notes: Iterable[Note], rules: Mapping[str, NoteRule]) -> list[tuple[Note, NoteRule]]:
    """Notes that are near enough, up to date and decide about plans, with their rules, each note once."""
    found = [(note, rules.get(note.citation.note_id)) for note in _one_a_note(notes)]
    return [
        (note, rule) for note, rule in found if rule is not None and rule.decides == "plan" and not note.citation.stale
    ]


def _one_a_note(notes: Iterable[Note]) -> list[Note]:
    """The nearest passage of each note that is near enough."""
    found: dict[str, Note] = {}
    for note in notes:
        if note.citation.similarity >= LEAST_SIMILARITY:
            found.setdefault(note.citation.note_id, note)
    return list(found.values())


def _judged(candidate: Candidate, deciding: Iterable[tuple[Note, NoteRule]], job: Job, cause: Cause) -> Candidate:
    standings = []
    for note, rule in deciding:
        if not set(note.levers).intersection(candidate.levers):
            continue
        stand = stand_on(rule, candidate.plan, job)
        if stand is None:
            continue
        holds, statement = stand
        standings.append(
            Standing(
                chunk_id=note.citation.chunk_id,
                title=quoted(note.citation.title),
                holds=holds,
                relieves=cause in note.causes,
                statement=quoted(statement, STATEMENT_CHARACTERS),
            )
        )
    evidence = tuple(_evidence(candidate.id, place, one) for place, one in enumerate(standings, start=1))
    update = {"standings": tuple(standings), "evidence": (*candidate.evidence, *evidence)}
    return candidate.model_copy(update=update)


def _evidence(name: str, place: int, standing: Standing) -> Evidence:
    verb = "holds for" if standing.holds else "speaks against"
    claim = f"The note '{standing.title}' {verb} this plan: {standing.statement}."
    ref = f"note.{standing.chunk_id}"
    return Evidence(id=f"ev-{name}-note-{place}", claim=claim, source="modelled", ref=ref)
