"""Short ways to write a PyTorch execution trace of any schema generation in a test."""

import json
from collections.abc import Sequence
from typing import Any

from traces.content import Content, Limits
from traces.execution_trace.read import read_execution_trace
from traces.execution_trace.record import ExecutionTrace

Node = dict[str, Any]
Operand = tuple[str, Any, Any]
"""(type, shape, value), as the observer writes them."""

LIMITS = Limits()


def tensor(shape: Sequence[int], kind: str = "float", *, id: int = 4) -> Operand:
    return f"Tensor({kind})", list(shape), [id, id + 1, 0, 1, 4, "cuda:0"]


def tensors(*shapes: Sequence[int], kind: str = "float") -> Operand:
    inner = ",".join(f"Tensor({kind})" for _ in shapes)
    return f"GenericList[{inner}]", [list(shape) for shape in shapes], [[4, 5, 0, 1, 4, "cuda:0"] for _ in shapes]


def number(value: int) -> Operand:
    return "Int", [], value


def text(value: str) -> Operand:
    return "String", [], value


def integers(*values: int) -> Operand:
    return f"GenericList[{','.join('Int' for _ in values)}]", [[] for _ in values], list(values)


def node(
    record_id: int,
    name: str,
    *inputs: Operand,
    outputs: Sequence[Operand] = (),
    parent: int = 2,
    strides: Sequence[Any] | None = None,
    attributes: dict[str, Any] | None = None,
    **more: Any,
) -> Node:
    """A call as schemas from 1.0.2 on write it; with strides as from 1.1.1 on."""
    named = {"rf_id": record_id, "seq_id": -1, "scope": 0, "tid": 1, "op_schema": "", **(attributes or {})}
    return {
        "id": 100 + record_id,
        "name": name,
        "ctrl_deps": parent,
        "inputs": {**_operands(inputs), **({} if strides is None else {"strides": strides})},
        "outputs": _operands(outputs),
        "attrs": [{"name": key, "type": _type(value), "value": value} for key, value in named.items()],
        **more,
    }


def old_node(record_id: int, name: str, *inputs: Operand, outputs: Sequence[Operand] = ()) -> Node:
    """The same as schema 1.0.1 writes it."""
    given, returned = _operands(inputs), _operands(outputs)
    return {
        "name": name,
        "id": 100 + record_id,
        "rf_id": record_id,
        "parent": 2,
        "fw_parent": 0,
        "seq_id": -1,
        "scope": 0,
        "tid": 1,
        "fw_tid": 0,
        "op_schema": "",
        "inputs": given["values"],
        "input_shapes": given["shapes"],
        "input_types": given["types"],
        "outputs": returned["values"],
        "output_shapes": returned["shapes"],
        "output_types": returned["types"],
    }


def groups_node(*groups: dict[str, Any]) -> Node:
    return node(1, "## process_group:init ##", text(json.dumps(groups)))


def document(*nodes: Node, schema: str = "1.1.1-chakra.0.0.4", pid: int | None = 77) -> bytes:
    """A file, laid out as the observer does."""
    process = "" if pid is None else f' "pid": {pid},'
    listed = ",\n    ".join(json.dumps(one) for one in nodes)
    head = f'{{\n  "schema": "{schema}",{process} "time": "2026-01-01 00:00:00", "start_ts": 5,\n  "nodes": [\n    '
    return (head + listed + '\n  ],\n  "finish_ts": 9\n}').encode()


def read(data: bytes, limits: Limits = LIMITS) -> ExecutionTrace:
    return read_execution_trace(Content("et.json", data), limits)


def trace_of_nodes(*nodes: Node, **outer: Any) -> ExecutionTrace:
    return read(document(*nodes, **outer))


def _operands(operands: Sequence[Operand]) -> dict[str, list[Any]]:
    return {
        "values": [value for _, _, value in operands],
        "shapes": [shape for _, shape, _ in operands],
        "types": [kind for kind, _, _ in operands],
    }


def _type(value: Any) -> str:
    return "string" if isinstance(value, str) else "uint64"
