"""A tiny protobuf encoder, enough for Chakra files: field numbers as in schema/protobuf/et_def.proto."""

from collections.abc import Sequence

from traces.content import Content, Limits
from traces.readers import chakra
from traces.trace import Trace

LIMITS = Limits()
METADATA, MEM_LOAD, MEM_STORE, COMP, SEND, RECV, COLL = range(1, 8)
ALL_REDUCE, REDUCE, ALL_GATHER = range(3)

Value = int | bool | str | Sequence[bool]


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def whole(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def delimited(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def attribute(name: str, value: Value) -> bytes:
    """An AttributeProto, of the type the converter uses for such a value."""
    if isinstance(value, bool):
        written = whole(27, value)
    elif isinstance(value, int):
        written = whole(9, value)
    elif isinstance(value, str):
        written = delimited(29, value.encode())
    else:
        written = delimited(28, delimited(1, bytes(value)))
    return delimited(1, name.encode()) + written


def operands(values: str = "[]", shapes: str = "[]", types: str = "[]") -> bytes:
    return b"".join(delimited(at, one.encode()) for at, one in enumerate((values, shapes, types), start=1))


def node(
    id: int,
    name: str,
    kind: int,
    *,
    start: int = 0,
    duration: int = 0,
    parents: Sequence[int] = (),
    packed: bool = True,
    inputs: bytes = b"",
    **attributes: Value,
) -> bytes:
    """A Node; proto3 writes no zero and no empty list."""
    deps = b"".join(map(varint, parents))
    listed = delimited(4, deps) if packed and parents else b"".join(whole(4, parent) for parent in parents)
    return b"".join(
        (
            whole(1, id) if id else b"",
            delimited(2, name.encode()),
            whole(3, kind),
            listed,
            whole(6, start) if start else b"",
            whole(7, duration) if duration else b"",
            delimited(8, inputs) if inputs else b"",
            *(delimited(10, attribute(key, value)) for key, value in attributes.items()),
        )
    )


def framed(*messages: bytes) -> bytes:
    return b"".join(varint(len(message)) + message for message in messages)


def et(*nodes: bytes, version: str = "0.0.4") -> bytes:
    """A file: the metadata, then the nodes."""
    return framed(delimited(1, version.encode()), *nodes)


def read(data: bytes, file: str = "job.et", limits: Limits = LIMITS) -> Trace:
    (trace,) = chakra.read(Content(file, data), limits)
    return trace


def warned(trace: Trace, part: str) -> bool:
    return any(part in warning for warning in trace.warnings)
