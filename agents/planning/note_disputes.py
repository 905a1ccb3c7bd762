"""Notes that contradict one another about a plan: one's inequality holds at its numbers, the other's does not."""

from collections.abc import Sequence
from itertools import combinations

from agents.advisors.protocol import Candidate, Note
from agents.findings import Citation


def disputed(candidate: Candidate, notes: Sequence[Note]) -> dict[str, tuple[str, ...]]:
    """chunk id -> ids of the notes that say the opposite of this plan.

    Two notes contradict one another about a plan if both were evaluated at its numbers, one holds and the other does
    not, and both are about a lever that the plan changes.
    """
    by_chunk = {note.citation.chunk_id: note for note in notes}
    found: dict[str, set[str]] = {}
    for one, other in combinations(candidate.standings, 2):
        if one.holds == other.holds or not {one.chunk_id, other.chunk_id} <= by_chunk.keys():
            continue
        mine, theirs = by_chunk[one.chunk_id], by_chunk[other.chunk_id]
        if {*mine.levers} & {*theirs.levers} & {*candidate.levers}:
            found.setdefault(one.chunk_id, set()).add(theirs.citation.note_id)
            found.setdefault(other.chunk_id, set()).add(mine.citation.note_id)
    return {chunk: tuple(sorted(ids)) for chunk, ids in found.items()}


def cited(chunk_ids: Sequence[str], candidate: Candidate, notes: Sequence[Note]) -> tuple[Citation, ...]:
    """The citations of a plan, each with the notes that contradict it about this plan."""
    by_chunk = {note.citation.chunk_id: note.citation for note in notes}
    against = disputed(candidate, notes)
    return tuple(
        by_chunk[chunk].model_copy(update={"contradicts": against[chunk]}) if chunk in against else by_chunk[chunk]
        for chunk in chunk_ids
    )
