"""Convolutions, forward and backward, of any number of spatial dimensions; transposed, grouped and depthwise ones too.

Symbols: N batch, C input channels, K output channels, g groups, X the input's and Y the output's spatial positions,
k the kernel's taps (product of its sizes).

    forward     FLOP = 2 N Y K (C / g) k           weights [K, C/g, ...]
    transposed  FLOP = 2 N X C (K / g) k           weights [C, K/g, ...]
    backward    the forward FLOP once for the input's gradient and once for the weights'

    Y = floor((X + 2 padding - dilation (size - 1) - 1) / stride) + 1                        for each dimension
    Y = (X - 1) stride - 2 padding + dilation (size - 1) + output padding + 1                transposed

Taps that fall into the padding are counted, as every other tool does. A Winograd or FFT algorithm needs fewer
operations than these; the rate is then that of the direct convolution it replaces, and may exceed a peak.
"""

from dataclasses import dataclass
from math import prod

from traces.work.call import Call, Shape, Work
from traces.work.element_types import Format, product_format


@dataclass(frozen=True, slots=True)
class Window:
    """How a kernel moves: literals of one entry stand for all dimensions."""

    stride: Shape
    padding: Shape
    dilation: Shape
    groups: int
    transposed: bool = False
    output_padding: Shape = (0,)


def convolution(call: Call) -> Work | None:
    """aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)."""
    return _forward(call, _window(call, 3, 4, 5, groups=8, transposed=6, output_padding=7))


def backend_convolution(call: Call) -> Work | None:
    """aten::cudnn_convolution(input, weight, padding, stride, dilation, groups, ...)."""
    return _forward(call, _window(call, 3, 2, 4, groups=5))


def backend_convolution_with_bias(call: Call) -> Work | None:
    """aten::miopen_convolution(input, weight, bias, padding, stride, dilation, groups, ...)."""
    return _forward(call, _window(call, 4, 3, 5, groups=6))


def depthwise_convolution(call: Call) -> Work | None:
    """aten::_conv_depthwise2d(input, weight, kernel_size, bias, stride, padding, dilation)."""
    weight = call.matrix(1)
    given = call.matrix(0)
    stride, padding, dilation = (call.integers(index) for index in (4, 5, 6))
    if weight is None or given is None or not stride or not padding or not dilation:
        return None
    return _forward(call, Window(stride, padding, dilation, groups=given[-len(weight) + 1]))


def convolution_backward(call: Call) -> Work | None:
    """aten::convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
    output_padding, groups, output_mask).

    bytes: grad_output and what a wanted gradient needs (weight for the input's, input for the weights') read once, the
    wanted gradients written once. Left out: the bias's gradient, a sum over grad_output.
    """
    window = _window(call, 4, 5, 6, groups=9, transposed=7, output_padding=8)
    wanted = call.flags(10)
    if window is None or wanted is None or len(wanted) != 3:
        return None
    forward = _flop(call.matrix(1), call.matrix(2), window)
    kind = _format(call, 1, 2)
    if forward is None or kind is None:
        return None
    of_input, of_weight = call.optional_bytes(1), call.optional_bytes(2)
    gradients = wanted[0] + wanted[1]
    moved = call.optional_bytes(0) + gradients * (of_input + of_weight)
    return Work(forward * gradients, moved, kind)


def backward_of_input(call: Call) -> Work | None:
    """aten::cudnn_convolution_backward_input(input_size, grad_output [N, K, Y], weight [K, C/g, ...], ...).

    FLOP = 2 N Y K (C / g) k, which grad_output and weight give without the literals older profilers left out.
    bytes: grad_output and weight once; the input's gradient where its size is stated.
    """
    grad, weight, kind = call.matrix(1), call.matrix(2), _format(call, 1, 2)
    element = call.element(1)
    if grad is None or weight is None or kind is None or element is None or len(grad) != len(weight):
        return None
    size = call.integers(0)
    written = prod(size) * element.size_bytes if size else 0
    assumed = "" if size else "the gradient written is not counted: its size is not stated"
    return Work(2 * prod(grad) * prod(weight[1:]), call.optional_bytes(1, 2) + written, kind, assumed)


def backward_of_weight(call: Call) -> Work | None:
    """aten::cudnn_convolution_backward_weight(weight_size, grad_output [N, K, Y], input, ...).

    FLOP = 2 N Y K (C / g) k with the kernel's size from the literal; bytes: both inputs once, the gradient once.
    """
    grad, size, kind, element = call.matrix(1), call.integers(0), _format(call, 1, 2), call.element(1)
    if grad is None or not size or len(size) != len(grad) or kind is None or element is None:
        return None
    return Work(2 * prod(grad) * prod(size[1:]), call.optional_bytes(1, 2) + prod(size) * element.size_bytes, kind)


def _forward(call: Call, window: Window | None) -> Work | None:
    """bytes: input, weight and bias once, the output once, of the input's type."""
    given, weight = call.matrix(0), call.matrix(1)
    kind, element = _format(call, 0, 1), call.element(0)
    if window is None or given is None or weight is None or kind is None or element is None:
        return None
    flop, output = _flop(given, weight, window), _output(given, weight, window)
    if flop is None or output is None:
        return None
    return Work(flop, call.optional_bytes(0, 1, 2) + prod(output) * element.size_bytes, kind)


def _format(call: Call, left: int, right: int) -> Format | None:
    left_type, right_type = call.element(left), call.element(right)
    return None if left_type is None or right_type is None else product_format(left_type, right_type)


def _window(
    call: Call,
    stride: int,
    padding: int,
    dilation: int,
    *,
    groups: int,
    transposed: int | None = None,
    output_padding: int | None = None,
) -> Window | None:
    """The window from literals at these positions; None where one is not recorded."""
    lists = [call.integers(index) for index in (stride, padding, dilation)]
    count = call.integer(groups)
    is_transposed = False if transposed is None else call.flag(transposed)
    extra = (0,) if output_padding is None else call.integers(output_padding)
    if not all(lists) or count is None or count < 1 or is_transposed is None or not extra:
        return None
    given_stride, given_padding, given_dilation = (one or () for one in lists)
    return Window(given_stride, given_padding, given_dilation, count, is_transposed, extra)


def _flop(given: Shape | None, weight: Shape | None, window: Window) -> int | None:
    if given is None or weight is None:
        return None
    output = _output(given, weight, window)
    if output is None:
        return None
    positions = prod(given) if window.transposed else prod(output)
    return 2 * positions * prod(weight[1:])


def _output(given: Shape, weight: Shape, window: Window) -> Shape | None:
    """Sizes of the output, [N, K, ...]; None where shapes and window do not fit."""
    dimensions = len(weight) - 2
    if len(given) == dimensions + 1:
        given = (1, *given)
    if dimensions < 1 or len(given) != len(weight):
        return None
    lists = [
        _spread(one, dimensions) for one in (window.stride, window.padding, window.dilation, window.output_padding)
    ]
    if any(one is None for one in lists):
        return None
    stride, padding, dilation, extra = (one or () for one in lists)
    channels = weight[1] * window.groups if window.transposed else weight[0]
    expected = weight[0] if window.transposed else weight[1] * window.groups
    if given[1] != expected or min(stride) < 1:
        return None
    sizes = []
    for size, taps, step, pad, spread, more in zip(
        given[2:], weight[2:], stride, padding, dilation, extra, strict=True
    ):
        reach = spread * (taps - 1)
        sizes.append(
            (size - 1) * step - 2 * pad + reach + more + 1
            if window.transposed
            else (size + 2 * pad - reach - 1) // step + 1
        )
    return None if min(sizes) < 1 else (given[0], channels, *sizes)


def _spread(values: Shape, dimensions: int) -> Shape | None:
    if len(values) == 1:
        return values * dimensions
    return values if len(values) == dimensions else None
