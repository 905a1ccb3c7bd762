"""Elementwise operators, copies and fills: one operation an element stated, bytes decide.

    FLOP  = n                         0 for copies and fills
    bytes = every tensor input once + n |y|

n is the size of the result, the inputs' shapes broadcast; an input that repeats along a dimension (size 1, or stride 0)
is read once. |y| is the widest input's element, one byte for comparisons. Transcendental functions count as one.
"""

from collections.abc import Callable
from math import prod

from traces.work.call import Call, Shape, Work
from traces.work.gemm import broadcast


def elementwise(operands: int) -> Callable[[Call], Work | None]:
    """A new result from the first `operands` inputs, e.g. aten::mul(a, b): the equations of this module.

    A tensor after them is the result's own (out=) and not read.
    """

    def formula(call: Call) -> Work | None:
        read = _read(call, operands)
        shape, size = _result(call, read)
        return None if shape is None else _work(call, read, prod(shape), prod(shape) * size)

    return formula


def comparison(call: Call) -> Work | None:
    """A truth value an element, e.g. aten::eq(a, b)."""
    read = _read(call, 2)
    shape, _ = _result(call, read)
    return None if shape is None else _work(call, read, prod(shape), prod(shape))


def dropout(call: Call) -> Work | None:
    """aten::native_dropout(x, p, train): x read, the result and a mask of one byte an element written."""
    moved, elements = call.bytes_of(0), call.elements(0)
    return None if moved is None or elements is None else Work(elements, 2 * moved + elements, "vector")


def in_place(call: Call) -> Work | None:
    """self = f(self, others), e.g. aten::mul_(a, b): the first input is read and written."""
    written, elements = call.bytes_of(0), call.elements(0)
    return None if written is None or elements is None else _work(call, call.tensors, elements, written)


def copy(call: Call) -> Work | None:
    """aten::copy_(destination, source): the source read, the destination written; no arithmetic."""
    written, read = call.bytes_of(0), call.bytes_of(1)
    return None if written is None or read is None else Work(0, written + read, "vector")


def fill(call: Call) -> Work | None:
    """aten::fill_(self, value), aten::zero_(self): self written."""
    written = call.bytes_of(0)
    return None if written is None else Work(0, written, "vector")


def gated(given: int) -> Callable[[Call], Work | None]:
    """f(a) * b of an input [..., 2 d] that holds a and b: bytes = 2 d |x| read and d |x| written; 2 FLOP a result."""

    def formula(call: Call) -> Work | None:
        elements, read = call.elements(given), call.bytes_of(given)
        return None if elements is None or read is None else Work(elements, read + read // 2, "vector")

    return formula


def rotary(query: int, key: int, *tables: int) -> Callable[[Call], Work | None]:
    """Rotary embedding in place: query and key read and written, 3 FLOP an element.

    Of the table of cosines and sines each token reads one row, of the positions one entry: small beside the heads.
    """

    def formula(call: Call) -> Work | None:
        moved = [call.bytes_of(index) for index in (query, key)]
        elements = [call.elements(index) for index in (query, key)]
        if moved[0] is None or elements[0] is None:
            return None
        whole, count = sum(one or 0 for one in moved), sum(one or 0 for one in elements)
        return Work(3 * count, 2 * whole + call.optional_bytes(*tables), "vector")

    return formula


def converted(given: int, result: int, *small: int) -> Callable[[Call], Work | None]:
    """A tensor written in another type, with scales: bytes = both and `small` once; 1 FLOP an element."""

    def formula(call: Call) -> Work | None:
        elements, read, written = call.elements(given), call.bytes_of(given), call.bytes_of(result)
        if elements is None or read is None or written is None:
            return None
        return Work(elements, read + written + call.optional_bytes(*small), "vector")

    return formula


def cache_write(key: int, value: int, cache: int, slots: int) -> Callable[[Call], Work | None]:
    """New keys and values written to a paged cache: both read, both written in the cache's type, the slots read.

    Rows of `slots` decide how many: engines pad keys and values to a captured batch. No arithmetic.
    """

    def formula(call: Call) -> Work | None:
        rows, places = call.shape(key), call.elements(slots)
        stored, key_bytes, value_bytes = call.element(cache), call.bytes_of(key), call.bytes_of(value)
        count = call.elements(key), call.elements(value)
        if not rows or not rows[0] or places is None or stored is None or key_bytes is None or value_bytes is None:
            return None
        kept = min(places, rows[0]) / rows[0]
        written = ((count[0] or 0) + (count[1] or 0)) * stored.size_bytes
        return Work(0, int((key_bytes + value_bytes + written) * kept) + call.optional_bytes(slots), "vector")

    return formula


def fused(call: Call) -> Work | None:
    """A kernel a compiler fused from pointwise operators and reductions: bytes = every tensor argument once.

    Which arguments are read, written or both is not recorded; one that is both counts once. FLOP are unknown.
    """
    tensors = call.tensors
    return Work(None, call.optional_bytes(*tensors), "vector") if tensors else None


def _read(call: Call, operands: int) -> tuple[int, ...]:
    return tuple(index for index in call.tensors if index < operands)


def _result(call: Call, read: tuple[int, ...]) -> tuple[Shape | None, int]:
    """(shape of the result, bytes of its element); a tensor of one element never widens a larger one's type."""
    shape: Shape | None = () if read else None
    for index in read:
        shape = None if shape is None else broadcast(shape, call.inputs.dims[index])
    wide = [index for index in read if call.inputs.dims[index]] or read
    elements = [call.element(index) for index in wide]
    return shape, max((one.size_bytes for one in elements if one is not None), default=0)


def _work(call: Call, read: tuple[int, ...], elements: int, written: int) -> Work:
    return Work(elements, call.optional_bytes(*read) + written, "vector")
