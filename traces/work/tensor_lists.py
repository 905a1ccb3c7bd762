"""Operators over lists of tensors: foreach and fused optimizer steps, concatenation.

The profiler writes the shapes of a list of at most 30 tensors and no element types; the type is read from the template
arguments of the kernel. Where either is missing the work is unknown.
"""

import re
from collections.abc import Callable
from math import prod
from typing import Final

from traces.work.call import Call, Work

_LONGEST_NAME: Final = 2048
_TYPE: Final = re.compile(r"\b(BFloat16|Half|__half|float|double)\b|OpaqueType<([1248])u?l?>")
_SIZES: Final = {"BFloat16": 2, "Half": 2, "__half": 2, "float": 4, "double": 8}


def foreach(*, writes: int, reads: int | None = None, flop: int = 1) -> Callable[[Call], Work | None]:
    """A foreach operator on lists of n elements in all: FLOP = flop n, bytes = (reads + writes) n |x|.

    `reads` counts the lists that are read, self among them; None: all that are handed over.
    """

    def formula(call: Call) -> Work | None:
        shapes, size = call.tensor_list(0), _element_bytes(call.kernel)
        if shapes is None or size is None:
            return None
        elements = sum(map(prod, shapes))
        read = call.inputs.types.count("TensorList") if reads is None else reads
        return Work(flop * elements, (read + writes) * elements * size, "vector")

    return formula


def concatenate(call: Call) -> Work | None:
    """aten::cat(tensors, dim): every tensor read once, the result written; no arithmetic."""
    shapes, size = call.tensor_list(0), _element_bytes(call.kernel)
    return None if shapes is None or size is None else Work(0, 2 * size * sum(map(prod, shapes)), "vector")


def _element_bytes(kernel: str) -> int | None:
    """Bytes of the first element type a kernel's template names, which is that of its tensors; None without one.

    Types named later are those it computes in.
    """
    found = _TYPE.search(kernel, 0, _LONGEST_NAME)
    if found is None:
        return None
    return int(found[2]) if found[2] else _SIZES[found[1]]
