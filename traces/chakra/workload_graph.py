"""The JSON form of a Chakra trace: an object whose `workload_graph` is the list of nodes.

Keys are spelled in several ways (Id, NodeType, ctrlDeps, data_deps, is_cpu_op): case and underscores do not count. A
duration is called runtime, in microseconds; start times are not part of this form, and are read where they are written
as protobuf's own JSON mapping would (startTimeMicros). The keys are those that src/feeder/json_node.cpp of
https://github.com/mlcommons/chakra reads.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from projector.errors import TraceTooLarge
from traces.chakra.graph import NO_TRANSFER, Node, NodeType, Transfer, collective_of, node_type
from traces.execution_trace.node_texts import LARGEST_NODE_BYTES, NodeTexts

GRAPH_KEY: Final = "workload_graph"

_NS_PER_US: Final = 1_000
_LARGEST: Final = 2**63 - 1

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def nodes_of(texts: NodeTexts) -> Iterator[Node | None]:
    """The nodes; None for one that cannot be decoded."""
    for text in texts:
        yield None if len(text) > LARGEST_NODE_BYTES else _node(text, texts.content.file)


def _node(text: bytes, file: str) -> Node | None:
    try:
        written = {key.replace("_", "").lower(): value for key, value in _decode(text).items()}
    except msgspec.DecodeError:
        return None
    except RecursionError as fault:
        raise TraceTooLarge(f"a node of {file} is nested too deeply", hint="limit max_depth") from fault
    name = written.get("name")
    kind = _type(written.get("nodetype", written.get("type")))
    parents = written.get("ctrldeps")
    on_host = written.get("iscpuop")
    return Node(
        id=_whole(written.get("id")) or 0,
        name=name if isinstance(name, str) else "",
        type=kind,
        start_ns=_ns(written.get("starttimemicros")),
        duration_ns=_ns(written.get("runtime", written.get("durationmicros"))),
        on_host=on_host if isinstance(on_host, bool) else None,
        parent=_whole(parents[0] if isinstance(parents, list) and parents else parents),
        stream=_first(written, "stream", "tid"),
        thread=_whole(written.get("tid")),
        transfer=_transfer(written) if kind > NodeType.METADATA else NO_TRANSFER,
    )


def _type(value: Any) -> NodeType:
    """A number, or the name the schema has for it (COMM_COLL_NODE)."""
    if isinstance(value, str):
        return NodeType.__members__.get(value.removesuffix("_NODE"), NodeType.INVALID)
    number = _whole(value)
    return node_type(-1 if number is None else number)


def _transfer(written: dict[str, Any]) -> Transfer:
    group, dims = written.get("pgname"), written.get("involveddim")
    return Transfer(
        collective=collective_of(_whole(written.get("commtype"))),
        size_bytes=_first(written, "commsize", "tensorsize"),
        source=_whole(written.get("commsrc")),
        destination=_whole(written.get("commdst")),
        group=str(group) if isinstance(group, str | int) else "",
        group_size=_whole(written.get("pgsize")) or None,
        involved_dims=tuple(map(bool, dims)) if isinstance(dims, list) else (),
    )


def _first(written: dict[str, Any], *keys: str) -> int | None:
    return next((number for key in keys if (number := _whole(written.get(key))) is not None), None)


def _whole(value: Any) -> int | None:
    """A whole number from 0 on; protobuf's JSON mapping writes 64-bit ones as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if type(value) is int and 0 <= value <= _LARGEST else None


def _ns(micros: Any) -> int | None:
    number = _whole(micros)
    return None if number is None else number * _NS_PER_US
