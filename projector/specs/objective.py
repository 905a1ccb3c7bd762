"""What is optimised (Objective), what must hold (Slo), and why a plan was refused (Rejection)."""

from collections.abc import Sequence
from typing import Final

from projector.errors import UnknownName
from projector.specs.objective_entry import Direction, Objective
from projector.specs.plan import Phase
from projector.specs.rejection import Rejection
from projector.specs.serving_objectives import SERVING_OBJECTIVES
from projector.specs.slo import Slo
from projector.specs.training_objectives import TRAINING_OBJECTIVES

__all__ = [
    "DEFAULT_OBJECTIVE",
    "OBJECTIVES",
    "Direction",
    "Objective",
    "Rejection",
    "Slo",
    "alias_note",
    "find_objective",
    "named_objective",
]

OBJECTIVES: tuple[Objective, ...] = (*TRAINING_OBJECTIVES, *SERVING_OBJECTIVES)
DEFAULT_OBJECTIVE: Final[dict[Phase, str]] = {
    "training": "tokens_per_s_per_chip",
    "serving": "decode_throughput_tps_per_gpu",
}


def find_objective(name: str, phase: Phase) -> Objective:
    """The objective of this name or alias. UnknownName with the nearest names of the phase where it has none such."""
    entries = [entry for entry in OBJECTIVES if phase in entry.phases]
    return _found(name, entries, f"{phase} objective")


def named_objective(name: str) -> Objective:
    """The objective of this name or alias, of whatever phase. UnknownName with the nearest names."""
    return _found(name, OBJECTIVES, "objective")


def alias_note(asked: str | None, objective: Objective) -> str | None:
    """A sentence that says which objective an alias stands for; None where it was asked by its own name or not."""
    if asked is None or asked == objective.name:
        return None
    return f"objective {asked} is {objective.name}: {objective.meaning}"


def _found(name: str, entries: Sequence[Objective], kind: str) -> Objective:
    by_name = {entry.name: entry for entry in entries}
    by_alias = {alias: entry for entry in entries for alias in entry.aliases}
    found = by_name.get(name) or by_alias.get(name)
    if found is None:
        raise UnknownName(kind, name, (*by_name, *by_alias))
    return found
