"""What the HLO text of a collective states: its group size and its result. The text is data; only two shapes are read.

%all-reduce.1 = bf16[8,128]{1,0} all-reduce(...), replica_groups={{0,1},{2,3}}
%all-gather.2 = (f32[4]{0}, f32[8]{0}) all-gather-start(...), replica_groups=[2,4]<=[8]
"""

import re
from math import prod
from typing import Final

_LONGEST: Final = 100_000
_LARGEST_BUFFER: Final = 2**48
_LISTED: Final = re.compile(r"replica_groups=\{\{([\d,]{1,20000})\}")
_IOTA: Final = re.compile(r"replica_groups=\[(\d{1,9}),(\d{1,9})\]<=")
_RESULT: Final = re.compile(r"^%?[^\s=]{1,300} = (\(?)(pred|[subf]\d{1,2}\w{0,8}|bf16)\[([\d,]{0,200})\]")
_ARRAY: Final = re.compile(r"\b(pred|bf16|[subfc]\d{1,3}\w{0,8})\[([\d,]{0,200})\]")
_WIDTH: Final = re.compile(r"(\d{1,3})")
_DTYPES: Final = {
    "bf16": "bfloat16", "f16": "half", "f32": "float", "f64": "double", "s8": "int8", "u8": "uint8", "s32": "int",
    "u32": "int", "s64": "long", "u64": "long", "s16": "short", "u16": "short", "pred": "bool",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz",
}  # fmt: skip


def group_size(text: str) -> int | None:
    """Devices in the first replica group; None where the text does not say."""
    text = text[:_LONGEST]
    listed = _LISTED.search(text)
    if listed is not None:
        return listed[1].count(",") + 1
    iota = _IOTA.search(text)
    return int(iota[2]) if iota is not None and int(iota[2]) > 0 else None


def message_elements(text: str) -> tuple[str, int | None]:
    """Element type (as `traces.collectives` spells it) and elements of a single result; ("", None) for anything else.

    A reduce-scatter's result is the part of one device, so its message is larger; several results are not added up.
    """
    match = _RESULT.match(text[:_LONGEST])
    if match is None or match[1] or "reduce-scatter" in text[: match.end() + 40] or match[2] not in _DTYPES:
        return "", None
    sizes = [int(size) for size in match[3].split(",") if size]
    elements = prod(sizes)
    return (_DTYPES[match[2]], elements) if elements < 2**62 else ("", None)


def result_bytes(text: str, opcode: str) -> int | None:
    """Bytes of all arrays of an operator's result, "(bf16[8,128]{1,0}, token[])" for one.

    None where it has none, or more than any device holds.
    """
    _, equals, rest = text[:_LONGEST].partition(" = ")
    result, called, _ = rest.partition(f" {opcode}(")
    if not equals or not called:
        return None
    total = 0
    for dtype, shape in _ARRAY.findall(result):
        width = _WIDTH.search(dtype)
        bits = 8 if dtype == "pred" else int(width[1]) if width else 0
        total += -(-prod(int(size) for size in shape.split(",") if size) * bits // 8)
    return total if 0 < total < _LARGEST_BUFFER else None
