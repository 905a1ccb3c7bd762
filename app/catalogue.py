"""The catalogue as answers, the same for the service and the command line."""

from typing import TypeVar

from app.errors import NotFound
from app.schemas_catalogue import ChipList, LeverList, ModelAnswer, ModelList, ObjectiveEntry, ObjectiveList
from projector.catalog import architecture, chip
from projector.catalog_rows import ChipRow, chip_rows, model_rows
from projector.errors import UnknownName
from projector.levers import LEVERS, Lever, find_lever
from projector.names import normalise
from projector.refused_models import refused_model, refused_models
from projector.specs.objective import DEFAULT_OBJECTIVE, OBJECTIVES, named_objective

T = TypeVar("T")


def chip_list() -> ChipList:
    """Every chip, by id."""
    return ChipList(chips=chip_rows())


def chip_row(name: str) -> ChipRow:
    """The chip of this id or alias. UnknownName with the nearest ones."""
    chip_id = chip(name).id
    return next(row for row in chip_rows() if row.id == chip_id)


def model_list() -> ModelList:
    """Every model that is modelled, and every one that is refused with its reason, by name."""
    return ModelList(models=model_rows(), refused=refused_models())


def model_answer(name: str) -> ModelAnswer:
    """The model of this name or hub id, or why it is refused. UnknownName with the nearest ones of both kinds."""
    refused = refused_model(name)
    try:
        if refused is not None:
            return ModelAnswer(name=refused.name, modelled=False, model=None, refused=refused)
        known = architecture(name).name
    except UnknownName as error:
        names = [row.name for row in model_rows()] + [model.name for model in refused_models()]
        raise UnknownName("model", name, names) from error
    row = next(row for row in model_rows() if row.name == known)
    return ModelAnswer(name=known, modelled=True, model=row, refused=None)


def lever_list() -> LeverList:
    """Every lever, largest expected impact first."""
    return LeverList(levers=LEVERS)


def lever(name: str) -> Lever:
    """The lever of this name. UnknownName with the nearest ones."""
    return find_lever(normalise(name).replace("-", "_"))


def objective_list() -> ObjectiveList:
    """Every objective, with the phases it is the default of."""
    return ObjectiveList(objectives=tuple(_entry(objective.name) for objective in OBJECTIVES))


def objective(name: str) -> ObjectiveEntry:
    """The objective of this name. UnknownName with the nearest ones."""
    return _entry(named_objective(normalise(name).replace("-", "_")).name)


def not_found(error: UnknownName) -> NotFound:
    """An unknown name that stood in a path: 404 instead of 422, with the same nearest names."""
    return NotFound(error.message, hint=error.hint, nearest=error.nearest)


def _entry(name: str) -> ObjectiveEntry:
    objective = next(entry for entry in OBJECTIVES if entry.name == name)
    default_of = tuple(phase for phase in objective.phases if DEFAULT_OBJECTIVE[phase] == name)
    return ObjectiveEntry(**objective.model_dump(), default_of=default_of)
