"""What a kernel's name adds to its operator's work: the matrix unit's mode, and algorithms that need fewer FLOP."""

import re
from dataclasses import replace
from typing import Final

from traces.work.call import Work

_LONGEST_NAME: Final = 2048
# 1688 is the matrix instruction of TF32
_TF32: Final = re.compile(r"tf32|xf32|s1688", re.IGNORECASE)
_FEWER_FLOP: Final = re.compile(r"winograd|fft", re.IGNORECASE)


def as_run(work: Work, kernel: str) -> Work:
    """The work as its costliest kernel says it was run: fp32 products in TF32, convolutions by Winograd or FFT."""
    if work.format == "fp32" and _TF32.search(kernel, 0, _LONGEST_NAME):
        work = replace(work, format="tf32")
    if work.format != "vector" and _FEWER_FLOP.search(kernel, 0, _LONGEST_NAME):
        work = replace(work, assumed="the arithmetic of the direct algorithm is counted, the kernel's needs less")
    return work
