"""LayoutTable: of every layout (tp, pp, cp, ep) of a training job the best plan that passes the gates, as columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import ProjectionBatch
from projector.cost.memory import chance_to_fit
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

Column = NDArray[np.float64]
DEGREES = ("tp", "pp", "cp", "ep")


@dataclass(frozen=True)
class Setting:
    """What every layout of a table has in common. devices: the ranks that a layout spans."""

    workload: WorkloadSpec
    architecture: ModelArchitecture
    hardware: HardwareProfile
    devices: int

    @property
    def domain(self) -> int:
        """Devices that one fast domain joins: of NVLink, of a whole slice on a torus."""
        return min(self.hardware.intra.max_domain_chips * self.hardware.devices_per_chip, self.devices)


@dataclass(frozen=True)
class LayoutTable:
    """Columns of shape [n], in the order of the search; n may be 0.

    rows            of the projected batch: the best plan of each layout
    value           the objective times the chance to fit, more is better; good: the objective alone
    fill_frac       projected peak over the capacity
    bubble_frac, exposed_frac   of the step: pipeline bubble, communication that nothing hides
    """

    setting: Setting
    rows: NDArray[np.intp]
    plans: PlanBatch
    value: Column
    good: Column
    fill_frac: Column
    bubble_frac: Column
    exposed_frac: Column

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def degrees(self) -> NDArray[np.int64]:
        """(tp, pp, cp, ep) of each layout, shape [n, 4]."""
        return np.stack([self.plans.columns[name] for name in DEGREES], axis=1).astype(np.int64)


def layout_table(projected: ProjectionBatch, good: Column, passing: NDArray[np.bool_], setting: Setting) -> LayoutTable:
    """The best plan of each layout by what it yields in expectation: the objective times the chance to fit.

    good: the objective, more is better; passing: plans that pass every gate; both of shape [plans].
    """
    plans = projected.batch
    value = good * chance_to_fit(projected.memory, setting.hardware)
    rows = np.flatnonzero(passing & (good > 0))
    degrees = np.stack([plans.columns[name][rows] for name in DEGREES], axis=1)
    _, group = np.unique(degrees, axis=0, return_inverse=True)
    group = group.ravel()
    # the first row of each group in this order is its best plan, ties going to the earlier row
    order = np.lexsort((rows, -value[rows], group))
    best = np.sort(rows[order[np.unique(group[order], return_index=True)[1]]])
    step_s = projected.step_time_s[best]
    return LayoutTable(
        setting=setting,
        rows=best,
        plans=plans.take(best),
        value=value[best],
        good=good[best],
        fill_frac=projected.memory_bytes[best] / projected.memory.capacity_bytes,
        bubble_frac=projected.breakdown.bubble_s[best] / step_s,
        exposed_frac=projected.breakdown.exposed_communication_s[best] / step_s,
    )
