"""Chakra protobuf to nodes, a batch of messages at a time: fields of the whole batch are read as columns."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np

from projector.errors import CorruptTrace
from traces.chakra.frames import Frames
from traces.chakra.graph import ANNOTATION_SCOPE, NO_TRANSFER, Node, NodeType, Transfer, collective_of, node_type
from traces.content import Content
from traces.execution_trace.nodes import Operands
from traces.execution_trace.operands import op_inputs
from traces.trace import Ints
from traces.xplane.wire import DELIMITED, VARINT, Fields, WireFault, one_varint, read_fields

_BATCH: Final = 16_384
_NS_PER_US: Final = 1_000

# fields of Node
_ID, _NAME, _TYPE, _CTRL_DEPS, _START, _DURATION, _INPUTS, _ATTRIBUTE = 1, 2, 3, 4, 6, 7, 8, 10
# fields of IOInfo
_VALUES, _SHAPES, _TYPES = 1, 2, 3
# fields of AttributeProto: the name, and the values that are read (int32, int64, uint32, uint64 and bool are varints)
_ATTRIBUTE_NAME: Final = 1
_WHOLE: Final = frozenset({7, 9, 11, 13, 27})
_ZIGZAG: Final = frozenset({15, 17})
_FIXED: Final = frozenset({19, 21, 23, 25})
_BOOLS, _TEXT = 28, 29
_QUOTED: Final = re.compile(r"'([^']{0,1000})'|\"([^\"]{0,1000})\"")

Value = int | str | tuple[bool, ...]


_list = msgspec.json.Decoder(list[Any]).decode


def nodes_of(content: Content, frames: Frames) -> Iterator[Node]:
    """The nodes behind the first message, which is the metadata. Raises `CorruptTrace` for what is no message."""
    for first in range(1, len(frames.starts), _BATCH):
        starts, ends = frames.starts[first : first + _BATCH], frames.ends[first : first + _BATCH]
        try:
            yield from _batch(content.data, starts, ends)
        except WireFault as fault:
            raise CorruptTrace(
                f"{content.file} is no whole Chakra trace: {fault}", hint="copy the file again"
            ) from fault


def _batch(data: bytes | bytearray, starts: Ints, ends: Ints) -> Iterator[Node]:
    count = len(starts)
    fields = read_fields(data, starts, ends)
    names = _texts(data, fields.of(_NAME, DELIMITED))
    ids, types, start_us, duration_us = (
        fields.last_word(number, count).tolist() for number in (_ID, _TYPE, _START, _DURATION)
    )
    parents = _first_dependencies(data, fields)
    attributes = _attributes(data, fields, count)
    kinds = [node_type(value) for value in types]
    with_inputs = [
        kind == NodeType.METADATA or (kind == NodeType.COMP and start > 0)
        for kind, start in zip(kinds, start_us, strict=True)
    ]
    operands = _operands(data, fields, with_inputs)
    for index in range(count):
        named, given = attributes[index], operands.get(index)
        yield Node(
            id=ids[index],
            name=names.get(index, ""),
            type=kinds[index],
            start_ns=_ns(start_us[index]),
            duration_ns=_ns(duration_us[index]),
            on_host=None if (on_host := _whole(named, "is_cpu_op")) is None else bool(on_host),
            parent=parents.get(index),
            stream=_whole(named, "stream", "tid"),
            thread=_whole(named, "tid"),
            annotation=_whole(named, "scope") == ANNOTATION_SCOPE,
            transfer=_transfer(named) if kinds[index] > NodeType.METADATA else NO_TRANSFER,
            inputs=op_inputs(given) if given is not None and kinds[index] == NodeType.COMP else None,
            groups="".join(given.values) if given is not None and kinds[index] == NodeType.METADATA else "",
        )


def _texts(data: bytes | bytearray, fields: Fields) -> dict[int, str]:
    """Payloads of one field by message; the last one of a message counts."""
    rows = zip(fields.owner.tolist(), fields.start.tolist(), fields.end.tolist(), strict=True)
    return {owner: bytes(data[start:end]).decode("utf-8", "replace") for owner, start, end in rows}


def _ns(micros: int) -> int | None:
    """Nanoseconds; None for zero, which the format does not write. 2**63 and more come as negative values."""
    return micros * _NS_PER_US if micros else None


def _first_dependencies(data: bytes | bytearray, fields: Fields) -> dict[int, int]:
    """First control dependency of each node: the one that launched or called it."""
    found: dict[int, int] = {}
    alone = fields.of(_CTRL_DEPS, VARINT)
    for owner, value in zip(alone.owner.tolist(), alone.signed.tolist(), strict=True):
        found.setdefault(owner, value)
    packed = fields.of(_CTRL_DEPS, DELIMITED)
    for owner, start, end in zip(packed.owner.tolist(), packed.start.tolist(), packed.end.tolist(), strict=True):
        if end > start and owner not in found:
            found[owner] = one_varint(data, start, end)[0]
    return found


def _attributes(data: bytes | bytearray, fields: Fields, count: int) -> list[dict[str, Value]]:
    found: list[dict[str, Value]] = [{} for _ in range(count)]
    messages = fields.of(_ATTRIBUTE, DELIMITED)
    inner = read_fields(data, messages.start, messages.end)
    names = _texts(data, inner.of(_ATTRIBUTE_NAME, DELIMITED))
    owners = messages.owner.tolist()
    rows = zip(*(column.tolist() for column in _columns(inner)), strict=True)
    for message, number, wire, word, start, end in rows:
        name = names.get(message)
        if name is None or number == _ATTRIBUTE_NAME:
            continue
        value = _value(data, number, wire, word, start, end)
        if value is not None:
            found[owners[message]][name] = value
    return found


def _columns(fields: Fields) -> tuple[Any, ...]:
    return fields.owner, fields.number, fields.wire, fields.signed, fields.start, fields.end


def _value(data: bytes | bytearray, number: int, wire: int, word: int, start: int, end: int) -> Value | None:
    if wire == DELIMITED:
        if number == _TEXT:
            return bytes(data[start:end]).decode("utf-8", "replace")
        return _bools(data, start, end) if number == _BOOLS else None
    if number in _WHOLE or number in _FIXED:
        return word
    return (word >> 1) ^ -(word & 1) if number in _ZIGZAG and word >= 0 else None


def _bools(data: bytes | bytearray, start: int, end: int) -> tuple[bool, ...] | None:
    """A BoolList: its field 1, packed or one by one."""
    values: list[bool] = []
    fields = read_fields(data, np.array([start]), np.array([end]))
    for wire, word, at, until in zip(
        fields.wire.tolist(), fields.word.tolist(), fields.start.tolist(), fields.end.tolist(), strict=True
    ):
        if wire == VARINT:
            values.append(bool(word))
        while wire == DELIMITED and at < until:
            value, at = one_varint(data, at, until)
            values.append(bool(value))
    return tuple(values)


def _whole(named: dict[str, Value], *names: str) -> int | None:
    """The first of some attributes that is a whole number of 0 or more."""
    for name in names:
        value = named.get(name)
        if isinstance(value, int) and value >= 0:
            return value
    return None


def _text(named: dict[str, Value], name: str) -> str:
    value = named.get(name, "")
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _transfer(named: dict[str, Value]) -> Transfer:
    dims = named.get("involved_dim")
    return Transfer(
        collective=collective_of(_whole(named, "comm_type")),
        size_bytes=_whole(named, "comm_size", "tensor_size"),
        source=_whole(named, "comm_src"),
        destination=_whole(named, "comm_dst"),
        group=_text(named, "pg_name"),
        group_description=_text(named, "pg_desc"),
        group_size=_whole(named, "pg_size") or None,
        involved_dims=dims if isinstance(dims, tuple) else (),
    )


def _operands(data: bytes | bytearray, fields: Fields, wanted: list[bool]) -> dict[int, Operands]:
    """Inputs of the wanted nodes: three texts, lists as Python prints them. The values stay one text."""
    messages = fields.of(_INPUTS, DELIMITED)
    messages = messages.where(np.array(wanted, dtype=np.bool_)[messages.owner])
    inner = read_fields(data, messages.start, messages.end)
    values, shapes, types = (_texts(data, inner.of(number, DELIMITED)) for number in (_VALUES, _SHAPES, _TYPES))
    return {
        owner: Operands(
            values=[values.get(message, "")],
            shapes=_shapes(shapes.get(message, "")),
            types=[first or second for first, second in _QUOTED.findall(types.get(message, ""))],
        )
        for message, owner in enumerate(messages.owner.tolist())
    }


def _shapes(text: str) -> list[Any]:
    try:
        return _list(text) if text else []
    except (msgspec.DecodeError, RecursionError):
        return []
