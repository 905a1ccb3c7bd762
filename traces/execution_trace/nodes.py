"""One node of a PyTorch execution trace, of any schema generation.

  1.0.1          parent, rf_id and scope stand in the node; inputs, input_shapes, input_types are lists
  1.0.2 on       ctrl_deps is the parent; inputs holds values, shapes and types; the rest are attributes by name
  1.1.0 on       record_param_comms states its collective as attributes (collective_name, in_msg_nelems, pg_name ...)
  1.1.1 on       inputs holds strides as well
What decides is which keys are there, not the schema's version. A trace linker (Chakra) adds ts, inclusive_dur, cat,
stream and pg_name to the nodes.

Written by torch/csrc/profiler/standalone/execution_trace_observer.cpp of https://github.com/pytorch/pytorch
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from traces.trace import ABSENT

Scalar = int | float | str | bool | None

_BARE_NUMBER: Final = re.compile(rb"(?<=[\[, ])-?(?:inf|nan)(?=[\], ])")
_LARGEST_ID: Final = 2**63 - 1


class Attribute(Struct, gc=False):
    """A named value of a node."""

    name: str = ""
    value: Scalar = None


class Operands(Struct, gc=False):
    """Inputs or outputs of a node, one entry each."""

    values: list[Any] = []
    shapes: list[Any] = []
    types: list[Any] = []
    strides: list[Any] = []


class _Node(Struct, gc=False):
    """A node as written."""

    id: int
    name: str
    ctrl_deps: int | None = None
    parent: int | None = None
    rf_id: int = 0
    scope: int = 0
    tid: int = 0
    inputs: Raw = Raw()
    input_shapes: list[Any] = []
    input_types: list[Any] = []
    outputs: Raw = Raw()
    output_shapes: list[Any] = []
    output_types: list[Any] = []
    attrs: list[Attribute] = []
    ts: Raw = Raw()
    inclusive_dur: Raw = Raw()
    cat: str | None = None
    stream: int | None = None
    pg_name: str | int | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """What a trace linker added to a node: decimal microseconds as written, b"" where absent, and the device's part."""

    start: bytes
    duration: bytes
    category: str
    stream: int | None
    group: str


@dataclass(frozen=True, slots=True)
class Node:
    """One operator call. record_id is 0 for nodes that are no call (processes and threads)."""

    id: int
    name: str
    parent: int
    record_id: int
    scope: int
    thread: int
    inputs: Operands
    outputs: Operands
    attributes: tuple[Attribute, ...]
    timing: Timing

    def text(self, name: str) -> str:
        """An attribute as text; "" where it is absent or none."""
        value = self._attribute(name)
        return value if isinstance(value, str) else "" if value is None else str(value)

    def count(self, name: str) -> int | None:
        """An attribute as a number that is at least 0; None where it is absent or none."""
        value = self._attribute(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_ID else None

    def _attribute(self, name: str) -> Scalar:
        return next((attribute.value for attribute in self.attributes if attribute.name == name), None)


_strict = msgspec.json.Decoder(_Node).decode
_operands = msgspec.json.Decoder(Operands).decode
_list = msgspec.json.Decoder(list[Any]).decode


def node_of(text: bytes) -> Node:
    """Decode one node. Raises `msgspec.DecodeError` (`ValidationError` for a value of an unexpected type)."""
    try:
        return _decoded(text)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        mended = _BARE_NUMBER.sub(b"null", text)  # numbers without a JSON spelling were written bare before 2024
        if mended == text:
            raise
        return _decoded(mended)


def _decoded(text: bytes) -> Node:
    written = _strict(text)
    inputs = _read_operands(written.inputs, written.input_shapes, written.input_types)
    outputs = _read_operands(written.outputs, written.output_shapes, written.output_types)
    parent = written.parent if written.ctrl_deps is None else written.ctrl_deps
    record_id, scope, thread = written.rf_id, written.scope, written.tid
    for attribute in written.attrs:
        if isinstance(attribute.value, int):
            if attribute.name == "rf_id":
                record_id = attribute.value
            elif attribute.name == "scope":
                scope = attribute.value
            elif attribute.name == "tid":
                thread = attribute.value
    return Node(
        id=written.id,
        name=written.name,
        parent=ABSENT if parent is None else parent,
        record_id=record_id if 0 <= record_id <= _LARGEST_ID else 0,
        scope=scope,
        thread=thread,
        inputs=inputs,
        outputs=outputs,
        attributes=tuple(written.attrs),
        timing=Timing(
            start=bytes(written.ts),
            duration=bytes(written.inclusive_dur),
            category=written.cat or "",
            stream=written.stream,
            group="" if written.pg_name is None else str(written.pg_name),
        ),
    )


def _read_operands(raw: Raw, shapes: list[Any], types: list[Any]) -> Operands:
    text = bytes(raw)
    if text.startswith(b"{"):
        return _operands(text)
    return Operands(_list(text) if text else [], shapes, types)
