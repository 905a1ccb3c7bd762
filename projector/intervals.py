"""Intervals of training steps: 10th and 90th percentile of measured over projected time, by what is poorly known.

Conformal and out of fold: each percentile is taken over published runs whose own (family, chip) group was left out of
the fit of every constant (`shardwise eval accuracy --folds` prints them anew, class by class). Communication that
nothing hides is known less well than arithmetic, experts less well than dense layers, layers with a state least.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import IntervalRule
from projector.breakdown_columns import BreakdownColumns
from projector.graph.columns import Column
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile


@dataclass(frozen=True)
class Class:
    """Factors on the projected step 80 % of `runs` measured within; exposed_frac: from so much of it communication."""

    model: str
    exposed_frac: float
    low_factor: float
    high_factor: float
    runs: int

    @property
    def name(self) -> str:
        """The class as a reader of tables sees it."""
        return f"{self.model}, {100 * self.exposed_frac:.0f} % or more exposed" if self.exposed_frac else self.model


CLASSES: tuple[Class, ...] = (
    Class("dense", 0.0, 0.92, 1.10, 290),
    Class("dense", 0.05, 0.92, 1.19, 115),
    Class("dense", 0.1, 0.90, 1.28, 55),
    Class("experts", 0.0, 0.87, 1.24, 108),
    Class("experts", 0.2, 0.70, 1.24, 19),
    Class("recurrent", 0.0, 1.0, 1.84, 36),
)
# How much longer the logarithms are where no published run is of the chip: root mean square of the errors with a run's
# own source left out over that with its own group left out.
NO_RUN_OF_THE_CHIP = 1.2


def training_interval(breakdown: BreakdownColumns, model: ModelArchitecture, hardware: HardwareProfile) -> IntervalRule:
    """The interval of every plan's step, columns of shape [n]."""
    place = classes(breakdown, model)
    low, high = (np.array([getattr(one, end) for one in CLASSES])[place] for end in ("low_factor", "high_factor"))
    runs = sum(one.runs for one in CLASSES if one.model == kind(model))
    seen = any(hardware.calibration.fitted.values())
    widening = 1.0 if seen else NO_RUN_OF_THE_CHIP
    known = "" if seen else f"; widened by {NO_RUN_OF_THE_CHIP:g}, as none of them is of {hardware.id}"
    return IntervalRule(
        low_factor=low**widening,
        high_factor=high**widening,
        basis=f"80 % of {runs} published runs ({kind(model)}) measured within such factors of a projection fitted "
        f"without their own model and chip{known}",
    )


def kind(model: ModelArchitecture) -> str:
    """dense, experts or recurrent: which classes a model belongs to."""
    if model.recurrence is not None:
        return "recurrent"
    return "experts" if model.is_moe else "dense"


def classes(breakdown: BreakdownColumns, model: ModelArchitecture) -> NDArray[np.intp]:
    """The place in CLASSES of every plan, shape [n]."""
    exposed_frac: Column = breakdown.exposed_communication_s / np.maximum(breakdown.total_s, 1e-30)
    place = np.zeros(len(exposed_frac), dtype=np.intp)
    for number, one in enumerate(CLASSES):
        if one.model == kind(model):
            place[exposed_frac >= one.exposed_frac] = number
    return place
