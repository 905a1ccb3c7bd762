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
DEFAULTS: Mapping[str, Column] = {
    name: np.asarray(field.default) for name, field in ParallelismPlan.model_fields.items()
}


@dataclass(frozen=True)
class PlanBatch:
    """Columns of shape [n]: int64 for degrees and counts, float64 for shares, bool for switches, str for choices.

    Read a column as an attribute: `batch.tp`. `batch[i]` is the i-th plan as a record. Columns are never written to: a
    field that no plan of a search varies is one value seen n times (a view without stride), so that fields cost
    neither time nor memory where they are not used.
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
        return cls({field: np.broadcast_to(columns.get(field, DEFAULTS[field]), (length,)) for field in FIELDS})

    @classmethod
    def concat(cls, batches: Sequence["PlanBatch"]) -> "PlanBatch":
        """The batches one after the other."""
        return cls({field: _joined([batch.columns[field] for batch in batches]) for field in FIELDS})

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
        length = int(np.count_nonzero(index)) if index.dtype == np.bool_ else len(index)
        same = length <= len(self)
        return PlanBatch(
            {
                field: column[:length] if same and is_one_value(column) else column[index]
                for field, column in self.columns.items()
            }
        )

    @cached_property
    def devices(self) -> NDArray[np.int64]:
        """Devices a plan occupies, shape [n]."""
        return self.dp * self.cp * self.tp * self.pp + self.prefill_devices

    @cached_property
    def replicas(self) -> NDArray[np.int64]:
        """Independent engines of a serving plan, shape [n]."""
        return self.dp // self.attention_dp

    @cached_property
    def prefill_devices(self) -> NDArray[np.int64]:
        """Devices of the prefill pool, shape [n]; 0 where the same engines prefill and decode."""
        return self.prefill_replicas * self.prefill_attention_dp * self.prefill_tp * self.prefill_pp


def is_one_value(column: Column) -> bool:
    """Whether a column is one value seen many times; one that merely happens to hold equal values is not."""
    return column.strides == (0,)


def _joined(columns: Sequence[Column]) -> Column:
    """One after the other; one value still where every column is the same one."""
    filled = [column for column in columns if len(column)]
    if filled and all(is_one_value(column) and column[0] == filled[0][0] for column in filled):
        return np.broadcast_to(filled[0][:1], (sum(map(len, filled)),))
    return np.concatenate(columns)
