"""Look-ups: embedding, index_select, gather and their gradients. Bytes only; each row that is looked up is read once.

A table of V rows of which n are looked up is read for min(n, V) rows: a row looked up twice may come from a cache.
"""

from math import prod

from traces.work.call import Call, Work


def embedding(call: Call) -> Work | None:
    """aten::embedding(weight [V, D], indices [n]): bytes = min(n, V) D |w| + n D |w| + indices."""
    return _rows(call, table=0, indices=1)


def index_select(call: Call) -> Work | None:
    """aten::index_select(x, dim, indices): as `embedding` along dimension 0; unknown along another."""
    return _rows(call, table=0, indices=2) if call.integer(1) == 0 else None


def embedding_backward(call: Call) -> Work | None:
    """aten::embedding_dense_backward(grad [n, D], indices, V, ...): grad and indices read, min(n, V) D rows written.

    The zeros of the other rows are another operator's.
    """
    grad, element, rows = call.shape(0), call.element(0), call.integer(2)
    count = call.elements(1)
    if not grad or element is None or rows is None or count is None:
        return None
    written = min(count, rows) * grad[-1] * element.size_bytes
    return Work(prod(grad), call.optional_bytes(0, 1) + written, "vector")


def gather(call: Call) -> Work | None:
    """aten::gather(x, dim, index, ...): an element read and one written for each index, the index read.

    An index that repeats along a dimension (stride 0) reads another element each time and is itself read once.
    """
    element, shape = call.element(0), call.shape(2)
    if element is None or shape is None:
        return None
    return Work(0, 2 * prod(shape) * element.size_bytes + call.optional_bytes(2), "vector")


def _rows(call: Call, *, table: int, indices: int) -> Work | None:
    shape, element, count = call.shape(table), call.element(table), call.elements(indices)
    if not shape or element is None or count is None:
        return None
    width = prod(shape[1:])
    return Work(0, (min(count, shape[0]) + count) * width * element.size_bytes + call.optional_bytes(indices), "vector")
