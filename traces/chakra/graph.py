"""One node of a Chakra execution trace.

Schema: schema/protobuf/et_def.proto of https://github.com/mlcommons/chakra (MIT) at 21585d8; attribute names as written
by src/converter/pytorch_converter.py, src/converter/text_converter.py and read by src/feeder/et_feeder_node.cpp there.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from traces.trace import CollectiveArgs, OpInputs


class NodeType(IntEnum):
    """What a node does."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


COLLECTIVES: Final = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "all_to_all",
    "reduce_scatter",
    "reduce_scatter_block",
    "barrier",
)
"""Names by the value of CollectiveCommType."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Attributes of a node that moves data. None and "" where not stated.

    size_bytes      what one rank puts in: the converter sums the tensors the operator is given
    involved_dims   for each dimension of the network whether the collective spans it
    """

    collective: str = ""
    size_bytes: int | None = None
    source: int | None = None
    destination: int | None = None
    group: str = ""
    group_description: str = ""
    group_size: int | None = None
    involved_dims: tuple[bool, ...] = ()


NO_TRANSFER: Final = Transfer()
ANNOTATION_SCOPE: Final = 7
"""RecordScope of a user's mark in PyTorch, which the converter passes on."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node. None: not stated.

    start_ns, duration_ns   exact; the protobuf form writes a start or a duration of zero as none
    on_host     True for an operator of the CPU
    parent      id of the node that launched or called this one
    stream      of a device node; thread of a host node
    annotation  a mark of the user, no operator
    transfer    of a node that moves data; collective: its arguments where the file has them in full
    groups      text that lists the process groups, of a metadata node
    """

    id: int
    name: str
    type: NodeType
    start_ns: int | None = None
    duration_ns: int | None = None
    on_host: bool | None = None
    parent: int | None = None
    stream: int | None = None
    thread: int | None = None
    annotation: bool = False
    transfer: Transfer = NO_TRANSFER
    collective: CollectiveArgs | None = None
    inputs: OpInputs | None = None
    groups: str = ""


def node_type(value: int) -> NodeType:
    """The type of a number; INVALID for one the schema does not have."""
    return NodeType(value) if 0 <= value <= max(NodeType) else NodeType.INVALID


def collective_of(comm_type: int | None) -> str:
    """Name of a collective by the number the schema gives it."""
    return COLLECTIVES[comm_type] if comm_type is not None and 0 <= comm_type < len(COLLECTIVES) else ""
