"""Columns: arrays with one entry a plan, and the dtypes behind them.

Every formula of the projector maps columns to columns, so one plan and a million take the same path.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
Switch = NDArray[np.bool_]

# Bytes an element occupies. fp4 and nvfp4 carry one 8-bit scale a block of 16 values, (4 + 8/16) / 8; mxfp8 one of 32
# (OCP Microscaling Formats, 1.0); the scales of fp8 are one a tensor.
DTYPE_BYTES: Mapping[str, float] = {
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "mxfp8": 1.03125, "int8": 1.0, "fp4": 0.5625, "nvfp4": 0.5625,
}  # fmt: skip
# Scales of blocks lie along the sums of a product, so each operand is cast once for each of its two products.
BLOCK_SCALED = ("mxfp8", "nvfp4")


def switched(on: Switch) -> Column:
    """1.0 where on, 0.0 elsewhere."""
    return on.astype(np.float64)


def lookup(names: NDArray[Any], table: Mapping[str, float]) -> Column:
    """table[name] for every name, shape [n]. KeyError for a name the table lacks.

    Names are compared once for each that occurs, not for each in the table: comparing text is what costs.
    """
    if len(names) == 0:
        return np.zeros(0)
    found = np.full(len(names), table[str(names[0])])
    if names.strides == (0,):
        return found
    left = names != names[0]
    while left.any():
        name = names[left.argmax()]
        here = names == name
        found = np.where(here, table[str(name)], found)
        left &= ~here
    return found


def largest_divisor_at_most(number: Column, limit: Column) -> Column:
    """The largest divisor of `number` that does not pass `limit` (at least 1), element by element."""
    numbers = number.astype(np.int64)
    limits = np.clip(limit, 1.0, number).astype(np.int64)
    base = int(numbers.max()) + 1
    distinct, inverse = np.unique(numbers * base + limits, return_inverse=True)
    found = [_largest_divisor(*divmod(int(pair), base)) for pair in distinct]
    return np.array(found, dtype=np.float64)[inverse]


def _largest_divisor(number: int, limit: int) -> int:
    return next(divisor for divisor in range(limit, 0, -1) if number % divisor == 0)
