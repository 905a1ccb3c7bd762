"""Mixture-of-experts operators: grouped products and fused experts.

Which experts a token goes to is a tensor the profiler does not write. Rows are taken to spread evenly, the way routers
are trained to: of E experts, T tokens that choose k each read the weights of

    E (1 - (1 - k / E) ** T)

on average. A router that sends its tokens to few experts reads less; the result says that this was assumed.
"""

from math import ceil
from typing import Final

from traces.work.call import Call, Work
from traces.work.element_types import Element, Format, product_format

_MOST_TOKENS: Final = 2**31


def experts_read(experts: int, tokens: int, chosen: int) -> int:
    """Experts whose weights are read on average, by the formula above, rounded up; all but certain from T k >> E on."""
    if chosen >= experts or experts <= 0 or not 0 <= tokens <= _MOST_TOKENS:
        return max(experts, 0)
    return min(ceil(experts * (1 - (1 - chosen / experts) ** tokens)), experts)


def fused_experts(call: Call) -> Work | None:
    """fused experts(x [T, h], w1 [E, m, h], w2 [E, h, i], weights [T, k], ...): two products a chosen expert.

        FLOP  = 2 T k (m h + i h)             m = 2 i with a gate, m = i without
        bytes = 2 T h |x| + experts read * (m h + h i) |w|

    Weights whose rows hold h / 2 numbers are 4-bit, two a byte. Left out: the activation between the products, routing,
    scales, rows padded to a block.
    """
    x, w1, w2, chosen = (call.shape(index) for index in range(4))
    given, weight = call.element(0), call.element(1)
    if x is None or w1 is None or w2 is None or chosen is None or given is None or weight is None:
        return None
    if (len(x), len(w1), len(w2), len(chosen)) != (2, 3, 3, 2) or chosen[0] != x[0] or w1[0] != w2[0]:
        return None
    (tokens, hidden), (experts, middle, row), (_, out, half_width) = x, w1, w2
    numbers_an_element = hidden // row if row and hidden % row == 0 else 0
    width = half_width * numbers_an_element
    if numbers_an_element not in (1, 2) or out != hidden or middle not in (width, 2 * width):
        return None
    number_format = _experts_format(given, weight, numbers_an_element)
    if number_format is None:
        return None
    read = experts_read(experts, tokens, chosen[1])
    flop = 2 * tokens * chosen[1] * (middle + width) * hidden
    moved = 2 * tokens * hidden * given.size_bytes + read * (middle * row + hidden * half_width) * weight.size_bytes
    return Work(flop, moved, number_format, _even_spread(read, experts))


def grouped_mm(call: Call) -> Work | None:
    """aten::_grouped_mm(A [T, K], B [E, K, N], offsets): FLOP = 2 T K N, each row with the matrix of its group.

    bytes: A once, B of the experts read once, the result once. Rows beyond the last offset are counted: the offsets are
    a tensor. A and B of two dimensions (the weights' gradient): FLOP = 2 T M N, the result is [E, M, N].
    """
    return _grouped(call, 0, 1, 2)


def scaled_grouped_mm(call: Call) -> Work | None:
    """aten::_scaled_grouped_mm(A, B, scale A, scale B, offsets, ...): as `grouped_mm`, the result 16-bit."""
    return _grouped(call, 0, 1, 4)


def _grouped(call: Call, left: int, right: int, offsets: int) -> Work | None:
    a, b, bounds = call.shape(left), call.shape(right), call.shape(offsets)
    left_type, right_type = call.element(left), call.element(right)
    if not a or not b or not bounds or left_type is None or right_type is None:
        return None
    number_format = product_format(left_type, right_type)
    size = left_type.size_bytes if left_type.size_bytes > 1 else 2
    if number_format is None or len(a) != 2:
        return None
    if len(b) == 2 and a[1] == b[0]:
        result = bounds[0] * a[0] * b[1]
        return Work(2 * a[0] * a[1] * b[1], call.optional_bytes(left, right) + result * size, number_format)
    if len(b) != 3 or b[1] != a[1]:
        return None
    read = experts_read(b[0], a[0], 1)
    moved = call.optional_bytes(left) + read * b[1] * b[2] * right_type.size_bytes + a[0] * b[2] * size
    return Work(2 * a[0] * a[1] * b[2] * left_type.values, moved, number_format, _even_spread(read, b[0]))


def _experts_format(given: Element, weight: Element, numbers_an_element: int) -> Format | None:
    """fp8 weights multiply activations that the operator narrows to fp8; any others are widened to the activations'."""
    if numbers_an_element == 2:
        return product_format(given, Element(weight.size_bytes, "fp4", 2))
    return "fp8" if weight.format == "fp8" else product_format(given, weight)


def _even_spread(read: int, experts: int) -> str:
    return f"rows spread evenly over the experts: the weights of {read} of {experts} are read"
