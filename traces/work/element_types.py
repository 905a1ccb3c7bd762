"""Element types as profilers spell them: bytes of an element, and the number format a product of them runs in."""

from dataclasses import dataclass
from typing import Final, Literal

Format = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4", "vector", "unknown"]
"""Format of a product, `vector` for arithmetic that uses no matrix unit, `unknown` where types are not stated."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element type. `values` is the numbers one element holds; `format` is None for what no matrix unit takes."""

    size_bytes: int
    format: Format | None = None
    values: int = 1


_ELEMENTS: Final = {
    "double": Element(8, "fp64"),
    "float": Element(4, "fp32"),
    "half": Element(2, "fp16"),
    "bfloat16": Element(2, "bf16"),
    "float8_e4m3fn": Element(1, "fp8"),
    "float8_e5m2": Element(1, "fp8"),
    "float8_e4m3fnuz": Element(1, "fp8"),
    "float8_e5m2fnuz": Element(1, "fp8"),
    "float8_e8m0fnu": Element(1),
    "float4_e2m1fn_x2": Element(1, "fp4", values=2),
    "signed char": Element(1, "int8"),
    "char": Element(1, "int8"),
    "unsigned char": Element(1),
    "bool": Element(1),
    "short": Element(2),
    "short int": Element(2),
    "unsigned short": Element(2),
    "int": Element(4),
    "unsigned int": Element(4),
    "long": Element(8),
    "long int": Element(8),
    "long long": Element(8),
    "unsigned long": Element(8),
    "complex<half>": Element(4),
    "complex<float>": Element(8),
    "complex<double>": Element(16),
}
_BY_NUMBER: Final = {
    0: "unsigned char", 1: "signed char", 2: "short", 3: "int", 4: "long", 5: "half", 6: "float", 7: "double",
    8: "complex<half>", 9: "complex<float>", 10: "complex<double>", 11: "bool", 15: "bfloat16", 23: "float8_e5m2",
    24: "float8_e4m3fn", 25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz", 44: "float8_e8m0fnu", 45: "float4_e2m1fn_x2",
}  # fmt: skip
_WIDEST_FIRST: Final[tuple[Format, ...]] = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")


def element_of(type_name: str) -> Element | None:
    """The element type a profiler's name stands for ("c10::BFloat16", "Float"); None for lists, scalars and others."""
    return _ELEMENTS.get(type_name.lower().removeprefix("c10::"))


def element_of_number(scalar_type: int | None) -> Element | None:
    """The element type of a literal `dtype` argument (the framework's numbering); None for numbers without one here."""
    name = None if scalar_type is None else _BY_NUMBER.get(scalar_type)
    return None if name is None else _ELEMENTS[name]


def product_format(left: Element, right: Element) -> Format | None:
    """Format two factors are multiplied in: the wider one's, since a narrower factor is widened first.

    4-bit or 8-bit weights under 16-bit activations run at the 16-bit rate. Weights packed into integers have no format
    of their own, the other factor's decides. None where neither has one.
    """
    formats = [one.format for one in (left, right) if one.format is not None]
    return min(formats, key=_WIDEST_FIRST.index) if formats else None
