"""What retrieved notes changed about the choice: the ranking with them beside the ranking without them."""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.advisors.protocol import AdvisorInput, Candidate, Standing
from agents.advisors.ranking import rank


@dataclass(frozen=True)
class Move:
    """How one pick came to its place.

    moved: without notes another plan would stand there, and this one below it or nowhere. holding, against: notes that
    hold for it and that speak against it. overtaken: notes that speak against the plan it stands in for.
    """

    moved: bool
    holding: tuple[Standing, ...]
    against: tuple[Standing, ...]
    overtaken: tuple[Standing, ...]

    @property
    def cited(self) -> tuple[str, ...]:
        """Passages to cite: what moved it first, then what speaks against it all the same."""
        return tuple(standing.chunk_id for standing in (*self.holding, *self.overtaken, *self.against))


def moves_of(question: AdvisorInput) -> Mapping[str, Move]:
    """For each picked candidate, by its id."""
    plain = tuple(candidate.model_copy(update={"standings": ()}) for candidate in question.candidates)
    before = [candidate.id for candidate in rank(question.model_copy(update={"candidates": plain}))]
    by_id = {candidate.id: candidate for candidate in question.candidates}
    found = {}
    for place, candidate in enumerate(rank(question)):
        rose = candidate.id not in before[: place + 1]
        found[candidate.id] = _move(candidate, by_id[before[place]] if rose else None)
    return found


def sentences_of(move: Move) -> list[str]:
    """Why notes put the plan where it is, and what notes say of it where they changed nothing."""
    holding = [f"The note '{one.title}' holds for it ({one.statement})." for one in move.holding]
    against = [f"The note '{one.title}' speaks against it ({one.statement})." for one in move.against]
    if not move.moved:
        return [*holding, *against]
    lead = (
        "Notes put it before a plan that the projection cannot tell apart from it, or that is only a little better and "
        "does not relieve the cause."
    )
    overtaken = [f"The note '{one.title}' speaks against the plan that would stand here." for one in move.overtaken]
    return [lead, *holding, *overtaken, *against]


def standing_move(candidate: Candidate) -> Move:
    """Of a candidate that notes moved nowhere: what they say of it."""
    return _move(candidate, None)


def _move(candidate: Candidate, instead_of: Candidate | None) -> Move:
    """instead_of: the plan that would stand there without notes, where this one would not stand there or above."""
    other = instead_of.standings if instead_of is not None else ()
    return Move(
        moved=instead_of is not None,
        holding=tuple(one for one in candidate.standings if one.holds),
        against=tuple(one for one in candidate.standings if not one.holds),
        overtaken=tuple(one for one in other if not one.holds),
    )
