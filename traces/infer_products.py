"""Weight products of the forward pass: which widths a model's layers read and write."""

from collections import Counter, defaultdict
from math import prod
from typing import Final, NamedTuple

import numpy as np

from traces.facts import Facts, OpCall, any_case
from traces.grouping import places_by
from traces.linking import NONE, enclosing
from traces.rules.rule import LONGEST_NAME
from traces.trace import Ints

# Name, and where its two operands stand among the inputs. None: the first two inputs of two or more dimensions.
_PRODUCTS: Final = (
    (any_case(r"^aten::(?:linear|mm|addmm|_scaled_mm)$"), None),
    (any_case(r"gemm_a\d{1,2}w\d{1,2}|unquantized_gemm|^LinearWithGradAccumulation|fp8_scaled_mm"), None),
    (any_case(r"^_C::cutlass_scaled_mm"), (1, 2)),
    (any_case(r"^_Linear$"), (1, 0)),
)
_LINEAR: Final = any_case(r"^aten::linear$")


class Product(NamedTuple):
    """One weight product: tokens x width_in times width_in x width_out."""

    tokens: int
    width_in: int
    width_out: int


class Products(NamedTuple):
    """Products by how often they ran, and one call of each to show."""

    counts: Counter[Product]
    examples: dict[Product, OpCall]


def is_weight_product(operator: str) -> bool:
    """Whether an operator of that name multiplies by a weight."""
    return any(pattern.search(operator, 0, LONGEST_NAME) for pattern, _ in _PRODUCTS)


def products(facts: Facts) -> Products:
    """Every forward product once, as it ran on this rank.

    An engine's own operator calls aten::linear or is called by it, and that calls aten::mm: the innermost counts. Of a
    DTensor the outer ones show the sizes of the whole, the innermost those of this rank's part.
    """
    found = _calls(facts)
    innermost = _innermost(facts, np.array([call.row for call, _ in found], dtype=np.int64))
    counts: Counter[Product] = Counter()
    examples: dict[Product, OpCall] = {}
    for call, product in found:
        if call.row in innermost:
            counts[product] += 1
            examples.setdefault(product, call)
    return Products(counts, examples)


def split_ways(facts: Facts) -> tuple[int, str] | None:
    """How many ways a DTensor's products are split: its linear layers state whole widths, their products a rank's part.

    None where no layer shows it, or layers differ.
    """
    by_row = {call.row: (call, product) for call, product in _calls(facts)}
    rows = np.array(sorted(by_row), dtype=np.int64)
    inner = _innermost(facts, rows)
    ratios: dict[int, list[str]] = defaultdict(list)
    for row, outer in _outermost(facts, rows).items():
        call, whole = by_row[outer]
        part = by_row[row][1]
        if row not in inner or row == outer or not _LINEAR.search(call.name):
            continue
        wide, narrow = whole.width_in * whole.width_out, part.width_in * part.width_out
        one_kept = whole.width_in == part.width_in or whole.width_out == part.width_out
        if narrow < wide and wide % narrow == 0 and one_kept:
            text = f"aten::linear {whole.width_in} to {whole.width_out} runs as {part.width_in} to {part.width_out}"
            ratios[wide // narrow].append(text)
    if len(ratios) != 1:
        return None
    ((ways, texts),) = ratios.items()
    return ways, f"{texts[0]} on this rank, {len(texts):,} products so"


def _calls(facts: Facts) -> list[tuple[OpCall, Product]]:
    return [(call, product) for call in facts.forward_calls if (product := _product(call)) is not None]


def _product(call: OpCall) -> Product | None:
    """Widths of one call; the weight is the two-dimensional operand one side of which is the width of the other."""
    places = next((places for pattern, places in _PRODUCTS if pattern.search(call.name, 0, LONGEST_NAME)), ())
    dims = call.inputs.dims
    if places is None:
        operands = [shape for shape in dims if len(shape) >= 2][:2]
    else:
        operands = [dims[place] for place in places if place < len(dims)]
    if len(operands) != 2 or len(operands[1]) != 2 or len(operands[0]) < 2 or not all(map(prod, operands)):
        return None
    width = operands[0][-1]
    first, second = operands[1]
    if width not in (first, second):
        return None
    return Product(prod(operands[0][:-1]), width, second if first == width else first)


def _innermost(facts: Facts, rows: Ints) -> set[int]:
    """Rows around which no other of them is: products that call no product."""
    around = set(_parents(facts, rows).values())
    return set(rows.tolist()) - around


def _outermost(facts: Facts, rows: Ints) -> dict[int, int]:
    """For each row the outermost of the rows around it; itself where there is none."""
    parents = _parents(facts, rows)
    outermost: dict[int, int] = {}
    for row in rows.tolist():  # ascending, so that what is around a row comes before it
        outermost[row] = outermost[parents[row]] if row in parents else row
    return outermost


def _parents(facts: Facts, rows: Ints) -> dict[int, int]:
    """Row -> the innermost other row around it on its thread."""
    trace = facts.trace
    found: dict[int, int] = {}
    for _, places in places_by(trace.thread[rows]):
        mine = rows[places]
        starts = trace.start_ns[mine]
        parent = enclosing(starts, starts + trace.duration_ns[mine])
        nested = parent != NONE
        found.update(zip(mine[nested].tolist(), mine[parent[nested]].tolist(), strict=True))
    return found
