"""Normalisations: layer, RMS, batch and group norm. Bytes decide; the arithmetic is vector arithmetic.

FLOP an element, counted as written: layer, batch and group norm 8 (sum; difference, square, sum; scale; weight, bias),
RMS norm 4 (square, sum, scale, weight), backward 12 and 8. Square roots and divisions a row are left out, as are the
mean and variance a row that are saved for the backward pass. Kernels that read a row twice move more than this.
"""

from collections.abc import Callable
from typing import Final

from traces.work.call import Call, Work

_CENTRED: Final = 8
_RMS: Final = 4
_CENTRED_BACKWARD: Final = 12


def forward(given: int, *small: int) -> Callable[[Call], Work | None]:
    """norm(input, weight, bias, ...) with a new result: bytes = 2 n |x| and the inputs at `small` once."""

    def formula(call: Call) -> Work | None:
        return _work(call, given, passes=2, flop=_CENTRED, small=small)

    return formula


def backward(grad: int, given: int, *small: int) -> Callable[[Call], Work | None]:
    """norm_backward(grad, input, ...): bytes = grad and input read, the input's gradient written, `small` once."""

    def formula(call: Call) -> Work | None:
        moved, elements = call.bytes_of(grad), call.elements(given)
        own = call.bytes_of(given)
        if moved is None or elements is None or own is None:
            return None
        return Work(_CENTRED_BACKWARD * elements, moved + 2 * own + call.optional_bytes(*small), "vector")

    return formula


def rms_norm(given: int, *small: int) -> Callable[[Call], Work | None]:
    """rms_norm(x, weight) with a new or a given result of x's size: bytes = 2 n |x| and the weight once."""

    def formula(call: Call) -> Work | None:
        return _work(call, given, passes=2, flop=_RMS, small=small)

    return formula


def add_rms_norm(given: int, *small: int) -> Callable[[Call], Work | None]:
    """r = r + x, x = norm(r) weight: x and r read, both written. bytes = 4 n |x| and the weight once; 5 FLOP each."""

    def formula(call: Call) -> Work | None:
        return _work(call, given, passes=4, flop=_RMS + 1, small=small)

    return formula


def _work(call: Call, given: int, *, passes: int, flop: int, small: tuple[int, ...]) -> Work | None:
    elements, moved = call.elements(given), call.bytes_of(given)
    if elements is None or moved is None:
        return None
    return Work(flop * elements, passes * moved + call.optional_bytes(*small), "vector")
