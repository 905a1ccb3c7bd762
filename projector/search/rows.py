"""Rows: plans in the making, as columns that branch field by field and are filtered as early as possible."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Rows = dict[str, NDArray[Any]]
Form = Mapping[str, ArrayLike]


def length(rows: Rows) -> int:
    """How many rows there are."""
    return len(next(iter(rows.values())))


def keep(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    """The rows a mask selects."""
    return {field: column[mask] for field, column in rows.items()}


def branch(rows: Rows, forms: Sequence[Form]) -> Rows:
    """Every row once per form, keeping equal branches of a row once.

    A form gives one or more columns, one value for all rows or one a row (shape [n]); all forms give the same ones.
    """
    count, fields = length(rows), tuple(forms[0])
    stacked = {
        field: np.stack([np.broadcast_to(np.asarray(form[field]), (count,)) for form in forms], axis=1)
        for field in fields
    }
    fresh = np.ones((count, len(forms)), dtype=bool)
    for later in range(1, len(forms)):
        for earlier in range(later):
            same = np.ones(count, dtype=bool)
            for column in stacked.values():
                same &= column[:, later] == column[:, earlier]
            fresh[:, later] &= ~same
    chosen = fresh.ravel()
    grown = {field: np.repeat(column, len(forms))[chosen] for field, column in rows.items()}
    return grown | {field: column.ravel()[chosen] for field, column in stacked.items()}


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, one after the other; the parts have the same fields."""
    return {field: np.concatenate([part[field] for part in parts]) for field in parts[0]}
