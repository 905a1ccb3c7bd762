"""Reductions, softmax and scans: one operation an input element stated (softmax five), bytes decide."""

from collections.abc import Callable
from math import prod
from typing import Final

from traces.work.call import Call, Shape, Work

INDEX_BYTES: Final = 8
_SOFTMAX: Final = 5


def reduction(dimensions: int = 1, *, result_bytes: int | None = None) -> Callable[[Call], Work | None]:
    """y = reduce(x, dims): FLOP = n, bytes = n |x| + m |y|.

    m is x's size without the dimensions in the literal list at `dimensions`; without such a list, or with an empty one,
    x is reduced to one element. |y| is |x| unless `result_bytes` says otherwise. A split over blocks writes and reads
    partial results besides.
    """

    def formula(call: Call) -> Work | None:
        return _reduced(call, call.integers(dimensions) or (), result_bytes)

    return formula


def reduction_along(dimension: int = 1, *, result_bytes: int | None = None) -> Callable[[Call], Work | None]:
    """The same over one dimension, a literal number; without it x is reduced to one element. Indices take 8 bytes."""

    def formula(call: Call) -> Work | None:
        number = call.integer(dimension)
        return _reduced(call, () if number is None else (number,), result_bytes)

    return formula


def extreme(call: Call) -> Work | None:
    """aten::max(x, dim), aten::min: values and indices written; without a dimension one value; see `reduction`."""
    element, dimension = call.element(0), call.integer(1)
    if element is None or call.element(1) is not None:
        return None
    if dimension is None:
        return _reduced(call, (), None)
    return _reduced(call, (dimension,), element.size_bytes + INDEX_BYTES)


def softmax(call: Call) -> Work | None:
    """aten::_softmax(x), aten::_log_softmax(x): FLOP = 5 n (maximum, difference, exponential, sum, quotient),
    bytes = x read and a result of its size written."""
    return _mapped(call, reads=(0,), flop=_SOFTMAX)


def softmax_backward(call: Call) -> Work | None:
    """aten::_softmax_backward_data(grad, y, ...): FLOP = 4 n, bytes = both read, the gradient written."""
    return _mapped(call, reads=(0, 1), flop=_SOFTMAX - 1)


def scan(call: Call) -> Work | None:
    """aten::cumsum(x, dim) and the like: FLOP = n, bytes = x read and a result of its size written."""
    return _mapped(call, reads=(0,), flop=1)


def sort(call: Call) -> Work | None:
    """aten::sort(x): bytes = x read, values and indices written. FLOP unknown.

    Radix sorts pass over the keys several times; this is the least.
    """
    elements, read = call.elements(0), call.bytes_of(0)
    return None if elements is None or read is None else Work(None, 2 * read + INDEX_BYTES * elements, "vector")


def _mapped(call: Call, *, reads: tuple[int, ...], flop: int) -> Work | None:
    elements, written = call.elements(reads[-1]), call.bytes_of(reads[-1])
    moved = [call.bytes_of(index) for index in reads]
    if elements is None or written is None or None in moved:
        return None
    return Work(flop * elements, sum(one or 0 for one in moved) + written, "vector")


def _reduced(call: Call, dimensions: Shape, result_bytes: int | None) -> Work | None:
    shape, element, read = call.shape(0), call.element(0), call.bytes_of(0)
    if shape is None or element is None or read is None:
        return None
    gone = {one % len(shape) for one in dimensions} if shape else set()
    kept = prod(size for index, size in enumerate(shape) if index not in gone) if dimensions else 1
    return Work(prod(shape), read + kept * (result_bytes or element.size_bytes), "vector")
