"""PlanBatch: many plans of one phase as columns, one NumPy array a plan field."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.specs.plan import ParallelismPlan

FIELDS: tuple[str, ...] = tuple(ParallelismPlan.model_fields)
Column = NDArray[Any]


@dataclass(frozen=True)
class PlanBatch:
    """Columns of shape [n]: int64 for degrees and counts, float64 for shares, bool for switches, str for choices.

    Read a column as an attribute: `batch.tp`. `batch[i]` is the i-th plan as a record.
    """

    columns: Mapping[str, Column]

    @classmethod
    def from_plans(cls, plans: Sequence[ParallelismPlan]) -> "PlanBatch":
        """Columns of the given plans, in their order."""
        return cls({field: np.array([getattr(plan, field) for plan in plans]) for field in FIELDS})

    @classmethod
    def from_columns(cls, length: int, **columns: Column | int | bool | str) -> "PlanBatch":
        """Columns given by name (an array of shape [length] or one value for all); the rest take defaults."""
        unknown = set(columns) - set(FIELDS)
        assert not unknown, f"no plan field {sorted(unknown)}"
        filled = {}
        for field in FIELDS:
            value = columns.get(field, ParallelismPlan.model_fields[field].default)
            filled[field] = np.broadcast_to(np.asarray(value), (length,)).copy()
        return cls(filled)

    @classmethod
    def concat(cls, batches: Sequence["PlanBatch"]) -> "PlanBatch":
        """The batches one after the other."""
        return cls({field: np.concatenate([batch.columns[field] for batch in batches]) for field in FIELDS})

    def __getattr__(self, name: str) -> Column:
        try:
            column: Column = self.__dict__["columns"][name]
            return column
        except KeyError:
            raise AttributeError(name) from None

    def __len__(self) -> int:
        return len(self.columns["dp"])

    def __getitem__(self, index: int) -> ParallelismPlan:
        return ParallelismPlan.model_validate({field: self.columns[field][index].item() for field in FIELDS})

    def __iter__(self) -> Iterator[ParallelismPlan]:
        return (self[i] for i in range(len(self)))

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> "PlanBatch":
        """The rows an index array or a mask selects."""
        return PlanBatch({field: column[index] for field, column in self.columns.items()})

    @cached_property
    def devices(self) -> NDArray[np.int64]:
        """Devices a plan occupies, shape [n]."""
        return self.dp * self.cp * self.tp * self.pp + self.prefill_devices

    @cached_property
    def prefill_devices(self) -> NDArray[np.int64]:
        """Devices of the prefill pool, shape [n]; 0 where the same engines prefill and decode."""
        return self.prefill_replicas * self.prefill_attention_dp * self.prefill_tp * self.prefill_pp
