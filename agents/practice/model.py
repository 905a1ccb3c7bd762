"""PracticeModel: the fitted weights that ship with the product, one set for what is known of a job, with provenance."""

import json
from functools import cache
from pathlib import Path

import numpy as np
from pydantic import Field

from agents.practice.choice import Column
from agents.practice.features import NAMES
from agents.practice.votes import VOTE_NAMES
from projector.specs.record import Record

WEIGHTS_FILE = Path(__file__).parent / "weights.json"


class Calibration(Record):
    """P(adopted) of a pick from its share s: 1 / (1 + exp(-(intercept + slope ln(s / (1 - s))))).

    cases: picks it was fitted on, out of fold; ece: expected calibration error, out of fold again.
    """

    intercept: float
    slope: float
    cases: int = Field(ge=1)
    ece: float = Field(ge=0, le=1)

    def chance(self, share: float) -> float:
        """The calibrated probability."""
        odds = np.log(max(share, 1e-6) / max(1 - share, 1e-6))
        return float(1 / (1 + np.exp(-(self.intercept + self.slope * odds))))


class WeightSet(Record):
    """Weights by the name of a figure, for jobs whose framework is named or not, with history or without."""

    framework_named: bool
    with_past: bool
    weights: dict[str, float]
    workloads: int = Field(ge=0)
    groups: int = Field(ge=0)
    calibration: Calibration | None = None

    @property
    def column(self) -> Column:
        """In the order of the figures, shape [features]."""
        names = (*NAMES, *VOTE_NAMES) if self.with_past else NAMES
        return np.array([self.weights[name] for name in names])


class PracticeModel(Record):
    """Weight sets, and what they rest on."""

    command: str = Field(description="what fits and writes them")
    data: str = Field(description="what they were fitted on")
    prior: str = Field(description="where the weight of projected speed comes from, and what the others are drawn to")
    groups: tuple[str, ...] = Field((), description="(family | chip) groups it has seen; for evaluation alone")
    sets: tuple[WeightSet, ...]

    def of(self, *, framework_named: bool, with_past: bool) -> WeightSet:
        """The set of a situation."""
        known = {(one.framework_named, one.with_past): one for one in self.sets}
        return known[framework_named, with_past]


@cache
def shipped_model() -> PracticeModel:
    """The weights that ship with the product."""
    return PracticeModel.model_validate(json.loads(WEIGHTS_FILE.read_text(encoding="utf-8")))
