"""Inputs of an operator in the spelling of the profiler, so that a joined trace reads like one with recorded shapes.

execution trace                        profiler (`OpInputs`)
Tensor(float)       shape              float        dims, strides
GenericList[Tensor(float),...]         TensorList   lists
Int, Bool           5, true            Scalar       "5", "True"
Double              0.100000           Scalar       "": six decimals are written, and 1e-8 becomes 0.000000
GenericList[Int,...], GenericList[]    ScalarList   "[4, 65]"; "" where a Double is in it
None, String, Device, Object, Tuple    ""           ""
"""

from typing import Any, Final

from traces.execution_trace.nodes import Operands
from traces.trace import OpInputs

Shape = tuple[int, ...]

_TENSOR: Final = "Tensor("
_LIST: Final = "GenericList["
_NO_TENSOR: Final = "nullptr (uninitialized)"
_MOST_NESTED: Final = 4
_LARGEST_SIZE: Final = 2**48
_LISTED: Final = frozenset({"", "Int", "Bool", "Double"})


def op_inputs(operands: Operands) -> OpInputs | None:
    """The inputs of one operator; None where it has none."""
    count = len(operands.types)
    if not count:
        return None
    types = [kind if isinstance(kind, str) else "" for kind in operands.types]
    shapes, values, strides = (_padded(one, count) for one in (operands.shapes, operands.values, operands.strides))
    lists = tuple(_shapes(shape) if _is_tensor_list(kind) else () for kind, shape in zip(types, shapes, strict=True))
    return OpInputs(
        dims=tuple(shape_of(shape) if _is_tensor(kind) else () for kind, shape in zip(types, shapes, strict=True)),
        types=tuple(_spelled(kind) for kind in types),
        values=tuple(_value(kind, value) for kind, value in zip(types, values, strict=True)),
        strides=tuple(shape_of(stride) if _is_tensor(kind) else () for kind, stride in zip(types, strides, strict=True))
        if operands.strides
        else (),
        lists=lists if any(lists) else (),
    )


def tensors_of(operands: Operands) -> tuple[tuple[str, Shape | None], ...]:
    """(element type, shape) of every tensor among the operands, those of lists, and of lists of lists, too.

    The shape is None where it is of no machine.
    """
    found: list[tuple[str, Shape | None]] = []
    for kind, shape in zip(operands.types, operands.shapes, strict=False):
        if isinstance(kind, str) and _TENSOR in kind:
            element = element_type(kind[kind.index(_TENSOR) :])
            found.extend((element, one) for one in _all_shapes(shape, _MOST_NESTED))
    return tuple(found)


def element_type(kind: str) -> str:
    """The element type inside "Tensor(c10::BFloat16)"."""
    inside = kind.removeprefix(_TENSOR).partition(")")[0]
    return "" if kind.startswith(_TENSOR + _NO_TENSOR) else inside


def shape_of(shape: Any) -> Shape:
    """A shape (or strides), or () for what is none or no machine can hold."""
    return (_believed(shape) or ()) if _is_shape(shape) else ()


def _is_tensor(kind: str) -> bool:
    return kind.startswith(_TENSOR)


def _is_tensor_list(kind: str) -> bool:
    return kind.startswith(_LIST + _TENSOR)


def _shapes(shapes: Any) -> tuple[Shape, ...]:
    return tuple(shape_of(shape) for shape in shapes) if isinstance(shapes, list) else ()


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(type(size) is int for size in shape)


def _believed(shape: list[int]) -> Shape | None:
    return tuple(shape) if all(-_LARGEST_SIZE < size < _LARGEST_SIZE for size in shape) else None


def _all_shapes(nested: Any, depth: int) -> tuple[Shape | None, ...]:
    """Shapes in a list of shapes, or of lists of shapes."""
    if not isinstance(nested, list) or not depth:
        return ()
    if _is_shape(nested):
        return (_believed(nested),)
    return tuple(shape for one in nested for shape in _all_shapes(one, depth - 1))


def _padded(entries: list[Any], count: int) -> list[Any]:
    return entries[:count] + [None] * (count - len(entries))


def _spelled(kind: str) -> str:
    if _is_tensor(kind):
        return element_type(kind)
    if kind in ("Int", "Bool", "Double"):
        return "Scalar"
    if kind.startswith(_LIST):
        if _is_tensor_list(kind):
            return "TensorList"
        return "ScalarList" if _elements(kind) <= _LISTED else ""
    return ""


def _value(kind: str, value: Any) -> str:
    if kind in ("Int", "Bool"):
        return str(value) if isinstance(value, int) else ""
    if kind.startswith(_LIST) and _elements(kind) <= _LISTED - {"Double"}:
        return str(value) if isinstance(value, list) and all(isinstance(one, int) for one in value) else ""
    return ""


def _elements(kind: str) -> set[str]:
    return set(kind[len(_LIST) : -1].split(","))
