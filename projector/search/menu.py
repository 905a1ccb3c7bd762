"""Menus: which values of a field the search may try, under the user's constraints."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from projector.errors import InvalidDescription
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

Value = int | bool | str


@dataclass(frozen=True)
class Search:
    """One search: what is planned, on what, within which limits, and where it starts from.

    `base` is the current plan where there is one; its value of a field is on every menu.
    """

    workload: WorkloadSpec
    architecture: ModelArchitecture | None
    cluster: ClusterSpec
    hardware: HardwareProfile | None
    constraints: Constraints
    current: ParallelismPlan | None
    base: ParallelismPlan

    @property
    def devices(self) -> int:
        """Devices of the cluster."""
        return self.cluster.chips * (1 if self.hardware is None else self.hardware.devices_per_chip)

    @property
    def domain_devices(self) -> int | None:
        """Devices of one fast domain of a GPU; None on a torus and for an unknown chip."""
        if self.hardware is None or self.hardware.intra.kind == "torus":
            return None
        return self.hardware.intra.max_domain_chips * self.hardware.devices_per_chip

    def menu(self, field: str, options: Iterable[Value]) -> tuple[Any, ...]:
        """The options a field may take: the fixed value alone where one is fixed; otherwise the options, the base's
        value and the ends of its bounds, without what lies outside them, in this order and each once."""
        fixed, bounds = self.constraints.fixed, self.constraints.bounds.get(field)
        if field in fixed:
            return (fixed[field],)
        values: list[Any] = [*options, getattr(self.base, field)]
        if bounds is not None:
            values += [end for end in (bounds.low, bounds.high) if end is not None and not _objection(field, end)]
            values = [value for value in values if within(value, bounds.low, bounds.high)]
        return tuple(dict.fromkeys(values))

    def unvaried(self, field: str) -> Any:
        """The value of a field that the search does not vary: the fixed one, else the base's."""
        return self.constraints.fixed.get(field, getattr(self.base, field))

    def kept(self, rows: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Rows, shape [n], that keep every constraint on the fields they have."""
        kept = np.ones(len(next(iter(rows.values()))), dtype=bool)
        for field, value in self.constraints.fixed.items():
            if field in rows:
                kept &= rows[field] == value
        for field, bounds in self.constraints.bounds.items():
            if field in rows:
                low = -np.inf if bounds.low is None else bounds.low
                high = np.inf if bounds.high is None else bounds.high
                kept &= (rows[field] >= low) & (rows[field] <= high)
        return kept


def within(value: Any, low: int | None, high: int | None) -> bool:
    """Whether a number lies in inclusive limits, None being open."""
    return (low is None or value >= low) and (high is None or value <= high)


def require_usable(constraints: Constraints, workload: WorkloadSpec) -> None:
    """InvalidDescription where a constraint can never hold: a wrong type, limits of a word, or two at odds."""
    for field, value in constraints.fixed.items():
        if objection := _objection(field, value):
            raise InvalidDescription(f"constraints.fixed.{field} = {value!r}: {objection}")
    if constraints.fixed.get("phase", workload.phase) != workload.phase:
        raise InvalidDescription(f"constraints.fixed.phase contradicts the {workload.phase} workload")
    for field, bounds in constraints.bounds.items():
        default = ParallelismPlan.model_fields[field].default
        if isinstance(default, (bool, str)):
            raise InvalidDescription(f"constraints.bounds.{field}: only numbers can be bounded", hint="use fixed")
        if bounds.high is not None and bounds.high < default and (objection := _objection(field, bounds.high)):
            raise InvalidDescription(f"constraints.bounds.{field}.high = {bounds.high}: {objection}")
        if field in constraints.fixed and not within(constraints.fixed[field], bounds.low, bounds.high):
            raise InvalidDescription(f"constraints on {field}: fixed value {constraints.fixed[field]} out of bounds")


def _objection(field: str, value: Value) -> str:
    """Why a plan field can never have this value; "" where it can."""
    try:
        ParallelismPlan.model_validate({field: value}, strict=True)
    except ValidationError as error:
        # what a value means beside other fields is legality's business; here only the value itself counts
        return next((one["msg"] for one in error.errors() if one["loc"] == (field,)), "")
    return ""
