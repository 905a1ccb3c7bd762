"""Answers of /v1/catalog and `shardwise catalog`. Figures carry unit, source, date and `unverified`."""

from pydantic import Field

from projector.catalog_rows import ChipRow, ModelRow
from projector.levers import Lever
from projector.refused_models import RefusedModel
from projector.specs.objective import Objective
from projector.specs.plan import Phase
from projector.specs.record import Record


class ChipList(Record):
    """Answer of GET /v1/catalog/chips."""

    chips: tuple[ChipRow, ...]


class ModelList(Record):
    """Answer of GET /v1/catalog/models."""

    models: tuple[ModelRow, ...]
    refused: tuple[RefusedModel, ...] = Field(description="known and not modelled, each with the reason")


class ModelAnswer(Record):
    """Answer of GET /v1/catalog/models/{name}: `model` where it is modelled, `refused` with the reason where not."""

    name: str
    modelled: bool
    model: ModelRow | None
    refused: RefusedModel | None


class LeverList(Record):
    """Answer of GET /v1/catalog/levers, largest expected impact first."""

    levers: tuple[Lever, ...]


class ObjectiveEntry(Objective):
    """One objective, and the phases in which it is taken when a request names none."""

    default_of: tuple[Phase, ...]


class ObjectiveList(Record):
    """Answer of GET /v1/catalog/objectives."""

    objectives: tuple[ObjectiveEntry, ...]
