"""GET /v1/catalog/...: chips, models, levers and objectives, each figure with where it comes from."""

from collections.abc import Callable
from typing import TypeVar

from fastapi import APIRouter, Depends

from app import catalogue
from app.routes.documented import problems, refuse_query
from app.schemas_catalogue import ChipList, LeverList, ModelAnswer, ModelList, ObjectiveEntry, ObjectiveList
from projector.catalog_rows import ChipRow
from projector.errors import UnknownName
from projector.levers import Lever

WRONG_QUERY = {"status_422": "A query parameter that nobody knows"}
LISTED = problems(**WRONG_QUERY)
ENTRY = problems(status_404="No such name; the nearest known ones are in `nearest`", **WRONG_QUERY)

router = APIRouter(prefix="/v1/catalog", tags=["catalogue"], dependencies=[Depends(refuse_query)])
T = TypeVar("T")


@router.get("/chips", responses=LISTED)
def get_chips() -> ChipList:
    """Every chip, by id: datasheet figures with unit, source, date and whether somebody re-read them."""
    return catalogue.chip_list()


@router.get("/chips/{chip_id}", responses=ENTRY)
def get_chip(chip_id: str) -> ChipRow:
    """One chip, by id or alias in any case."""
    return _in_path(catalogue.chip_row, chip_id)


@router.get("/models", responses=LISTED)
def get_models() -> ModelList:
    """Every model, by name, and every model that is refused, with the reason."""
    return catalogue.model_list()


@router.get("/models/{name:path}", responses=ENTRY)
def get_model(name: str) -> ModelAnswer:
    """One model, by name or hub id (owner/name) in any case; a refused one is answered with its reason."""
    return _in_path(catalogue.model_answer, name)


@router.get("/levers", responses=LISTED)
def get_levers() -> LeverList:
    """Every change a proposal can make to a plan, largest expected impact first."""
    return catalogue.lever_list()


@router.get("/levers/{name}", responses=ENTRY)
def get_lever(name: str) -> Lever:
    """One lever."""
    return _in_path(catalogue.lever, name)


@router.get("/objectives", responses=LISTED)
def get_objectives() -> ObjectiveList:
    """Every figure that can be optimised, with unit, direction and the phases it means something in."""
    return catalogue.objective_list()


@router.get("/objectives/{name}", responses=ENTRY)
def get_objective(name: str) -> ObjectiveEntry:
    """One objective."""
    return _in_path(catalogue.objective, name)


def _in_path(look_up: Callable[[str], T], name: str) -> T:
    try:
        return look_up(name)
    except UnknownName as error:
        raise catalogue.not_found(error) from error
