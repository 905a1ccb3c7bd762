"""Short ways to write an operator call in a test."""

from traces.trace import OpInputs
from traces.work.call import Call, Work
from traces.work.table import work_of_call

Input = tuple[list[int], str] | str | None
BF16, FP16, FP32, FP8, INT64 = "c10::BFloat16", "c10::Half", "float", "c10::Float8_e4m3fn", "long int"


def call(name: str, *inputs: Input, strides: dict[int, list[int]] | None = None, kernel: str = "") -> Call:
    """A call: tensors as (sizes, type), literals as text, None where the profiler wrote nothing."""
    dims = tuple(tuple(one[0]) if isinstance(one, tuple) else () for one in inputs)
    types = tuple(one[1] if isinstance(one, tuple) else "Scalar" if one else "" for one in inputs)
    values = tuple(one if isinstance(one, str) else "" for one in inputs)
    steps = tuple(tuple((strides or {}).get(index, ())) for index in range(len(inputs)))
    return Call(name, OpInputs(dims, types, values, steps if strides else ()), kernel)


def list_call(name: str, *lists: list[list[int]], kernel: str = "") -> Call:
    """A call with lists of tensors."""
    shapes = tuple(tuple(tuple(shape) for shape in one) for one in lists)
    return Call(
        name, OpInputs(((),) * len(lists), ("TensorList",) * len(lists), ("",) * len(lists), (), shapes), kernel
    )


def work(name: str, *inputs: Input, strides: dict[int, list[int]] | None = None, kernel: str = "") -> Work | None:
    """What the table says of a call."""
    return work_of_call(call(name, *inputs, strides=strides, kernel=kernel))


def known(name: str, *inputs: Input, strides: dict[int, list[int]] | None = None, kernel: str = "") -> Work:
    """The same, of a call whose work is known."""
    found = work(name, *inputs, strides=strides, kernel=kernel)
    assert found is not None
    return found
