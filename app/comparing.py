"""The change of the step time that a plan promised, from its proposals or as a client states it."""

import math
from collections.abc import Sequence

from pydantic import ConfigDict, ValidationError

from agents.findings import Expected, Proposal
from projector.errors import InvalidDescription
from projector.specs.record import Record

_LEAST = -1.0
_MOST = 100.0


class _Promise(Record):
    """The part of a proposal that is read here; a plan document has more keys."""

    model_config = ConfigDict(extra="ignore")
    rank: int
    expected: Expected


class _PlanDocument(Record):
    model_config = ConfigDict(extra="ignore")
    proposals: tuple[_Promise, ...]


def checked_change(frac: float) -> float:
    """A promised change of the step time as a fraction; InvalidDescription where none can be so."""
    if not math.isfinite(frac) or not _LEAST < frac <= _MOST:
        raise InvalidDescription(
            f"a step time cannot change by {frac:g} of itself", hint="-0.2 means a fifth less, 0.1 a tenth more"
        )
    return frac


def promised_in(document: bytes, proposal: int) -> float:
    """Promised change of one proposal of the answer `shardwise plan --json` wrote; InvalidDescription."""
    try:
        plan = _PlanDocument.model_validate_json(document)
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidDescription(
            f"this is no plan: {where}: {first['msg']}" if where else f"this is no plan: {first['msg']}",
            hint="give the output of shardwise plan --json",
        ) from fault
    return promised_by(plan.proposals, proposal)


def promised_by(proposals: Sequence[Proposal | _Promise], proposal: int) -> float:
    """Promised change of the step time of the proposal of that rank; InvalidDescription where it promises none."""
    found = next((one for one in proposals if one.rank == proposal), None)
    if found is None:
        ranks = ", ".join(str(one.rank) for one in proposals) or "none"
        raise InvalidDescription(f"the plan has no proposal {proposal}", hint=f"it has: {ranks}")
    frac = found.expected.step_time_frac
    if frac is None:
        raise InvalidDescription(
            f"proposal {proposal} promises no change of the step time: {found.expected.basis}",
            hint="state the promised change itself",
        )
    return checked_change(frac)
