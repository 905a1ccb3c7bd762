"""Matrix products of the framework: aten::mm, addmm, bmm, baddbmm, linear, matmul and scaled products."""

from math import prod

from traces.work.call import Call, Shape, Work
from traces.work.element_types import Element, element_of_number, product_format


def product_work(
    call: Call, left: int, right: int, *, out: Element | None = None, also: int = 0, assumed: str = ""
) -> Work | None:
    """Work of C = A B with A at position `left`, B at `right`.

        FLOP  = 2 b M N K
        bytes = b (M K |A| + K N |B| + M N |C|) + also

    A is [..., M, K] and B [K, N] or, as weights are kept, [N, K]: whichever has A's inner size K. With three
    dimensions each, b is the batch. |X| is the bytes of an element of X; C has A's type unless `out` says otherwise.
    Left out: the addition of a bias or of C, rows padded to a tile, partial sums of a split along K.
    """
    a, b = call.matrix(left), call.matrix(right)
    left_type, right_type = call.element(left), call.element(right)
    sizes = None if a is None or b is None else _sizes(a, b)
    if sizes is None or left_type is None or right_type is None:
        return None
    rows, columns, inner = sizes
    number_format = product_format(left_type, right_type)
    inputs = call.optional_bytes(left, right)
    if number_format is None:
        return None
    outputs = rows * columns * (out or left_type).size_bytes
    return Work(2 * rows * columns * inner * left_type.values, inputs + outputs + also, number_format, assumed)


def _sizes(a: Shape, b: Shape) -> tuple[int, int, int] | None:
    """(rows of all batches together, columns, inner size); None where the shapes do not multiply."""
    inner = a[-1]
    if len(b) == 2:
        columns = b[0] if b[1] == inner else b[1]
        return (prod(a[:-1]), columns, inner) if inner in b else None
    if len(a) != len(b) or a[:-2] != b[:-2]:
        return None
    columns = b[-1] if b[-2] == inner else b[-2]
    return (prod(a[:-1]), columns, inner) if inner in b[-2:] else None


def mm(call: Call) -> Work | None:
    """aten::mm(A [M, K], B [K, N]), aten::bmm(A [b, M, K], B [b, K, N]); see `product_work`."""
    return product_work(call, 0, 1)


def addmm(call: Call) -> Work | None:
    """aten::addmm(C, A [M, K], B [K, N]), aten::baddbmm: C or a bias is read besides; see `product_work`."""
    return product_work(call, 1, 2, also=call.optional_bytes(0))


def linear(call: Call) -> Work | None:
    """aten::linear(A [..., K], B [N, K], bias [N]); see `product_work`."""
    return product_work(call, 0, 1, also=call.optional_bytes(2))


def matmul(call: Call) -> Work | None:
    """aten::matmul(A, B) with broadcast batches: FLOP = 2 b M N K, bytes each operand once and the result.

    b is the product of the broadcast batch sizes, M or N is 1 where an operand is a vector.
    """
    a, b = call.shape(0), call.shape(1)
    left_type, right_type = call.element(0), call.element(1)
    if not a or not b or left_type is None or right_type is None:
        return None
    number_format = product_format(left_type, right_type)
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    batch = broadcast(left[:-2], right[:-2])
    if number_format is None or batch is None or left[-1] != right[-2]:
        return None
    outputs = prod(batch) * left[-2] * right[-1]
    moved = call.optional_bytes(0, 1) + outputs * left_type.size_bytes
    return Work(2 * outputs * left[-1], moved, number_format)


def scaled_mm(call: Call) -> Work | None:
    """aten::_scaled_mm(A [M, K], B [K, N], scales, bias, ..., out_dtype): as `product_work`, scales and bias read.

    The result's type is the literal out_dtype (releases differ in its position); without one it is 16-bit.
    """
    positions = range(2, len(call.inputs.values))
    stated = (element_of_number(call.integer(index)) for index in positions if call.element(index) is None)
    out = next((one for one in stated if one is not None), None)
    also = call.optional_bytes(*positions)
    assumed = "" if out is not None else "the result of a scaled product is taken as 16-bit"
    return product_work(call, 0, 1, out=out or Element(2), also=also, assumed=assumed)


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """The common shape of two operands; None where they do not fit."""
    depth = max(len(left), len(right))
    pairs = zip((1,) * (depth - len(left)) + left, (1,) * (depth - len(right)) + right, strict=True)
    sizes = tuple(a if b == 1 else b if a in (1, b) else -1 for a, b in pairs)
    return None if -1 in sizes else sizes
