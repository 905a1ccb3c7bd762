"""One recorded operator call, its inputs read by position, and what a formula says of it."""

import re
from dataclasses import dataclass
from math import prod
from typing import Final

from traces.trace import OpInputs
from traces.work.element_types import Element, Format, element_of

Shape = tuple[int, ...]

_INTEGERS: Final = re.compile(r"[\[(]\s{0,9}(?:-?\d{1,19}\s{0,9}(?:,\s{0,9}-?\d{1,19}\s{0,9}){0,63},?)?\s{0,9}[\])]")
_INTEGER: Final = re.compile(r"-?\d{1,19}")
_LONGEST_LITERAL: Final = 2048


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one call: floating-point operations (None: not countable) and the bytes it cannot avoid to move.

    A multiplication and an addition are two FLOP. Bytes: every input read once and every output written once, as if
    nothing were read twice or kept in a cache between operators. `assumed` says what the shapes leave open.
    """

    flop: int | None
    moved_bytes: int
    format: Format
    assumed: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """Name and inputs of a call; every accessor answers None for an input that is absent or of another kind.

    `kernel` is the name of the costliest kernel it launched: for lists of tensors the profiler writes no types, the
    kernel's template arguments do.
    """

    name: str
    inputs: OpInputs
    kernel: str = ""

    def element(self, index: int) -> Element | None:
        """Element type of a tensor input."""
        types = self.inputs.types
        return element_of(types[index]) if 0 <= index < len(types) else None

    def shape(self, index: int) -> Shape | None:
        """Sizes of a tensor input; () for a tensor of one element."""
        if self.element(index) is None or index >= len(self.inputs.dims):
            return None
        return self.inputs.dims[index]

    def matrix(self, index: int) -> Shape | None:
        """Sizes of a tensor of two or more dimensions."""
        shape = self.shape(index)
        return shape if shape is not None and len(shape) >= 2 else None

    def elements(self, index: int) -> int | None:
        """Distinct elements of a tensor input: a dimension of stride 0 repeats its elements and counts once."""
        shape = self.shape(index)
        if shape is None:
            return None
        strides = self.inputs.strides[index] if index < len(self.inputs.strides) else ()
        if len(strides) != len(shape):
            return prod(shape)
        return prod(size if stride or not size else 1 for size, stride in zip(shape, strides, strict=True))

    def bytes_of(self, index: int) -> int | None:
        """Bytes of the distinct elements of a tensor input."""
        element, elements = self.element(index), self.elements(index)
        return None if element is None or elements is None else elements * element.size_bytes

    def optional_bytes(self, *indexes: int) -> int:
        """Bytes of those of the inputs that are tensors."""
        return sum(self.bytes_of(index) or 0 for index in indexes)

    @property
    def tensors(self) -> tuple[int, ...]:
        """Positions of the tensor inputs."""
        return tuple(index for index in range(len(self.inputs.dims)) if self.element(index) is not None)

    def tensor_list(self, index: int) -> tuple[Shape, ...] | None:
        """Shapes of an input that is a list of tensors; None where the profiler left them out."""
        lists = self.inputs.lists
        return (lists[index] or None) if 0 <= index < len(lists) else None

    def _literal(self, index: int) -> str:
        values = self.inputs.values
        return values[index] if 0 <= index < len(values) and len(values[index]) <= _LONGEST_LITERAL else ""

    def integers(self, index: int) -> tuple[int, ...] | None:
        """A literal list of integers."""
        text = self._literal(index).strip()
        return tuple(map(int, _INTEGER.findall(text))) if _INTEGERS.fullmatch(text) else None

    def integer(self, index: int) -> int | None:
        """A literal integer."""
        text = self._literal(index).strip()
        return int(text) if _INTEGER.fullmatch(text) else None

    def flag(self, index: int) -> bool | None:
        """A literal truth value."""
        return {"true": True, "false": False}.get(self._literal(index).strip().lower())

    def flags(self, index: int) -> tuple[bool, ...] | None:
        """A literal list of truth values."""
        words = [word.strip().lower() for word in self._literal(index).strip("[]() ").split(",")]
        return tuple(word == "true" for word in words) if set(words) <= {"true", "false"} else None
