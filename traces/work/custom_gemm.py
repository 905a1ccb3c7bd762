"""Matrix products of serving libraries: vLLM, SGLang, aiter, Marlin. Operands stand where each library puts them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from traces.work.call import Call, Work
from traces.work.element_types import Element, Format
from traces.work.gemm import product_work

_SIXTEEN_BIT: Final = Element(2)


def operands(
    left: int, right: int, *, scales: tuple[int, ...] = (), out: int | None = None, run_in: Format | None = None
) -> Callable[[Call], Work | None]:
    """A formula for a library's product: `product_work` of the inputs at these positions, scales read besides.

    The result has the type of the input at `out` where the library is handed it, else A's; an 8-bit or 4-bit A gives a
    16-bit result, as such products do. `run_in`: the format of a product that narrows its activations itself.
    """

    def formula(call: Call) -> Work | None:
        left_type = call.element(left)
        result = call.element(out) if out is not None else None
        assumed = ""
        if result is None and left_type is not None and left_type.size_bytes == 1:
            result, assumed = _SIXTEEN_BIT, "the result of an 8-bit product is taken as 16-bit"
        work = product_work(call, left, right, out=result, also=call.optional_bytes(*scales), assumed=assumed)
        return work if work is None or run_in is None else replace(work, format=run_in)

    return formula


def packed_weights(call: Call) -> Work | None:
    """A [M, K] times weights packed into integers, sizes M, N, K handed over as literals (Marlin).

        FLOP  = 2 M N K
        bytes = every tensor input once + M N |A|

    The literals are found as three in a row of which the first and last are A's sizes. Products run in A's format: the
    weights are widened first. Left out: the workspace, which is an input and thus counted although it is scratch.
    """
    a, element = call.matrix(0), call.element(0)
    if a is None or element is None or element.format is None:
        return None
    numbers = [call.integer(index) for index in range(len(call.inputs.values))]
    for rows, columns, inner in zip(numbers, numbers[1:], numbers[2:], strict=False):
        if rows == a[-2] and inner == a[-1] and columns is not None:
            moved = call.optional_bytes(*call.tensors) + rows * columns * element.size_bytes
            return Work(2 * rows * columns * inner, moved, element.format)
    return None


def group_scaled(call: Call) -> Work | None:
    """awq_gemm(A [M, K], packed weights, scales [groups, N], zeros, ...): FLOP = 2 M N K, bytes as `packed_weights`."""
    a, element, scales = call.matrix(0), call.element(0), call.matrix(2)
    if a is None or element is None or element.format is None or scales is None:
        return None
    rows, inner, columns = a[-2], a[-1], scales[-1]
    moved = call.optional_bytes(*call.tensors) + rows * columns * element.size_bytes
    return Work(2 * rows * columns * inner, moved, element.format)
