"""Number format of the matrix products."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from projector.specs.plan import Dtype
from traces.facts import Facts
from traces.grouping import sums_by
from traces.implied_types import Inferred
from traces.infer_products import is_weight_product
from traces.naming import KINDS
from traces.rules.rule import LONGEST_NAME

_NUMBER_FORMATS: Final[tuple[tuple[Dtype, re.Pattern[str]], ...]] = (
    ("fp8", re.compile(r"e4m3|e5m2|fp8|f8f8|F8B?S|float8", re.IGNORECASE)),
    ("bf16", re.compile(r"bf16|bfloat16|\bcijk_\w{0,400}?_(?:BBS|B_BS|BSS|BB)_|bhalf", re.IGNORECASE)),
    ("fp4", re.compile(r"e2m1|fp4", re.IGNORECASE)),
    ("int8", re.compile(r"int8|i8i8|_I8", re.IGNORECASE)),
    ("fp16", re.compile(r"f16f16|half|h16816|hgemm|\bcijk_\w{0,400}?_(?:HHS|H_HS|HSS)_|fp16", re.IGNORECASE)),
    ("fp32", re.compile(r"sgemm|tf32|f32f32|scudnn|s1688|\bcijk_\w{0,400}?_(?:SB|S_B|SS)_|fp32|<float", re.IGNORECASE)),
)
_FOUR_BIT: Final = re.compile(r"e2m1|mxfp4|nvfp4", re.IGNORECASE)
_TYPES: Final[dict[str, Dtype]] = {
    "float": "fp32",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
}


def dtype(facts: Facts) -> Inferred[Dtype] | None:
    """Format of the products, by device time where kernel names tell it, else by the operators' input types.

    What counts is the format the product runs in: fp8 for 8-bit activations with 4-bit weights, bf16 where 4-bit
    weights are widened to bf16.
    """
    times = _time_by_format(facts)
    total = sum(times.values())
    told = Counter({name: time for name, time in times.items() if name is not None})
    if told.total() and 2 * told.total() >= total:
        value, time = told.most_common(1)[0]
        basis = f"names of the kernels of {time / total:.0%} of the time in matrix products"
        return Inferred(value=value, confidence=round(0.5 + 0.45 * time / total, 2), basis=basis)
    types = _input_types(facts)
    if not types:
        return None
    value, count = types.most_common(1)[0]
    return Inferred(value=value, confidence=0.8, basis=f"input type of {count:,} of {types.total():,} products")


def weight_dtype(facts: Facts) -> Inferred[Dtype] | None:
    """Format of the weights where kernel names show 4-bit ones beside wider activations; None where they do not."""
    narrow, total = 0, 0
    for name, time in _products(facts):
        total += time
        narrow += time if _FOUR_BIT.search(name, 0, LONGEST_NAME) else 0
    if not total or 2 * narrow < total:
        return None
    basis = f"names of the kernels of {narrow / total:.0%} of the time in matrix products"
    return Inferred(value="fp4", confidence=round(0.5 + 0.45 * narrow / total, 2), basis=basis)


def _products(facts: Facts) -> Iterator[tuple[str, int]]:
    """(kernel name, device time) of matrix products and experts' kernels."""
    classified, trace = facts.classified, facts.trace
    chosen = np.isin(classified.kind, [KINDS.index("gemm"), KINDS.index("moe")])
    rows = classified.links.rows[chosen]
    ids, sums = sums_by(trace.name_id[rows], trace.duration_ns[rows])
    for name_id, time_ns in zip(ids.tolist(), sums.tolist(), strict=True):
        yield trace.names[name_id], time_ns


def _input_types(facts: Facts) -> Counter[Dtype]:
    """First input types of weight products."""
    trace = facts.trace
    types: Counter[Dtype] = Counter()
    for row, inputs in trace.inputs.items():
        if is_weight_product(trace.name(row)):
            spelled = "".join(inputs.types[:1]).lower().removeprefix("c10::")
            if spelled in _TYPES:
                types[_TYPES[spelled]] += 1
    return types


def _time_by_format(facts: Facts) -> Counter[Dtype | None]:
    """Device time of matrix products and experts by number format; None where the name does not tell."""
    times: Counter[Dtype | None] = Counter()
    for name, time in _products(facts):
        found = next((known for known, pattern in _NUMBER_FORMATS if pattern.search(name, 0, LONGEST_NAME)), None)
        times[found] += time
    return times
