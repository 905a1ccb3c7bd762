"""What a legality rule is: one small function over columns that says where it is broken, and by which numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Rejection
from projector.specs.plan import ParallelismPlan, Phase
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

Comparison = Literal[">", "<", "does not divide", "!="]
BOTH: tuple[Phase, ...] = ("training", "serving")


@dataclass(frozen=True)
class Setting:
    """What a plan is judged against. A model or chip that is None is unknown: its rules do not apply."""

    workload: WorkloadSpec
    architecture: ModelArchitecture | None
    cluster: ClusterSpec
    hardware: HardwareProfile | None

    @property
    def model(self) -> ModelArchitecture:
        """The architecture, for rules that declared they need one."""
        assert self.architecture is not None
        return self.architecture

    @property
    def chip(self) -> HardwareProfile:
        """The hardware, for rules that declared they need it."""
        assert self.hardware is not None
        return self.hardware

    @property
    def devices(self) -> int:
        """Devices of the cluster: chips times devices a chip (1 where the chip is unknown)."""
        return self.cluster.chips * (1 if self.hardware is None else self.hardware.devices_per_chip)


@dataclass(frozen=True)
class Breach:
    """Where a rule is broken, shape [n], with the value found and the limit it was held against, each [n]."""

    broken: NDArray[np.bool_]
    value: NDArray[Any]
    limit: NDArray[Any]

    def then(self, other: "Breach") -> "Breach":
        """This breach, and the other one where this rule is kept."""
        mine = self.broken
        return Breach(
            mine | other.broken, np.where(mine, self.value, other.value), np.where(mine, self.limit, other.limit)
        )


def breach(plans: PlanBatch, broken: ArrayLike, value: ArrayLike, limit: ArrayLike) -> Breach:
    """A Breach whose three columns are broadcast to the batch."""
    shape = (len(plans),)
    return Breach(
        np.broadcast_to(np.asarray(broken, dtype=bool), shape),
        np.broadcast_to(np.asarray(value), shape),
        np.broadcast_to(np.asarray(limit), shape),
    )


def does_not_divide(plans: PlanBatch, value: ArrayLike, limit: ArrayLike) -> Breach:
    """Broken where `value` does not divide `limit`."""
    return breach(plans, np.asarray(limit) % np.asarray(value) != 0, value, limit)


@dataclass(frozen=True)
class Rule:
    """One rule. `find` returns None where the rule has nothing to hold on to (an unknown size)."""

    name: str
    quantity: str
    comparison: Comparison
    find: Callable[[PlanBatch, Setting], Breach | None]
    phases: tuple[Phase, ...] = BOTH
    needs_model: bool = False
    needs_chip: bool = False
    name_quantity: Callable[[ParallelismPlan, Setting], str] | None = None

    def applies(self, setting: Setting) -> bool:
        """Whether the phase is the rule's, and what the rule needs is known."""
        return (
            setting.workload.phase in self.phases
            and not (self.needs_model and setting.architecture is None)
            and not (self.needs_chip and setting.hardware is None)
        )

    def reject(self, plan: ParallelismPlan, setting: Setting, found: Breach, index: int) -> Rejection:
        """The breach of one plan as a value whose text is derived."""
        quantity = self.quantity if self.name_quantity is None else self.name_quantity(plan, setting)
        return Rejection(
            rule=self.name,
            quantity=quantity,
            value=float(found.value[index]),
            limit=float(found.limit[index]),
            comparison=self.comparison,
        )
