"""The precision a row prints as a dtype of the vocabulary: inputs of matrix products, not optimizer state."""

from typing import cast, get_args

from agents.evaluation.refusal import Refused
from projector.specs.plan import ComputeDtype, Dtype

# what a printed class may be called in the vocabulary, the most specific name first
DTYPES: dict[str, tuple[str, ...]] = {
    "fp32": ("fp32",),
    "bf16": ("bf16",),
    "fp16": ("fp16",),
    "fp8": ("fp8",),
    "mxfp8": ("mxfp8",),
    # either of two, at one rate
    "mxfp8-or-blockwise": ("fp8",),
    "nvfp4": ("nvfp4",),
    "fp4": ("fp4",),
    "int8": ("int8",),
    # 16 bit, which of the two is not said; both run at one rate
    "mixed": ("bf16",),
}
ASSUMED: ComputeDtype = "bf16"


def dtype_of(precision: str | None) -> tuple[ComputeDtype, bool]:
    """(dtype, whether it is assumed). Refused for a class of no known meaning."""
    if precision is None or precision == "none":
        return ASSUMED, True
    names = DTYPES.get(precision.lower(), ())
    found = next((name for name in names if name in get_args(ComputeDtype)), None)
    if found is None:
        raise Refused(f"precision {precision!r} is no dtype the projector knows")
    return cast(ComputeDtype, found), False


def stored_dtype(dtype: ComputeDtype) -> Dtype:
    """What weights are stored in where matrix products run in `dtype`: the width without the form of its scales."""
    narrow: dict[str, Dtype] = {"nvfp4": "fp4", "mxfp8": "fp8"}
    return narrow.get(dtype) or cast(Dtype, dtype)
