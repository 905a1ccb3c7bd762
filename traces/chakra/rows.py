"""Collects nodes: timed ones as rows of a Trace, all of them in counts.

  COMP on the device                 kernel, or a copy where the name is a profiler's for one
  COMM_COLL, COMM_SEND, COMM_RECV    kernel with collective arguments
  MEM_LOAD, MEM_STORE                copy
  any of them on the host            host operator, or an annotation

A node that does not say where it ran counts as of the device, as in the reference feeder.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from projector.specs.record import MOST_DEVICES
from traces.chakra.graph import Node, NodeType, Transfer
from traces.chrome.exact_time import MAX_NS
from traces.execution_trace.communication import MOST_ELEMENTS, DeclaredGroup, groups_of
from traces.trace import ABSENT, Category, CollectiveArgs, OpInputs

_COMMUNICATION: Final = (NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV)
_MEMORY: Final = (NodeType.MEM_LOAD, NodeType.MEM_STORE)
_PEER: Final = {NodeType.COMM_SEND: "send", NodeType.COMM_RECV: "recv"}
_GIVEN_BY_EACH: Final = ("all_gather", "gather")
_LARGEST: Final = 2**63 - 1
_LARGEST_THREAD: Final = 2**31 - 1


class Row(NamedTuple):
    """One timed node. id and parent are ABSENT where not stated."""

    start_ns: int
    duration_ns: int
    category: int
    name_id: int
    stream: int
    thread: int
    id: int
    parent: int
    size_bytes: int


@dataclass(slots=True)
class Rows:
    """Rows of the timed nodes, and how many nodes there are of each sort.

    broken        nodes that could not be decoded
    untyped       nodes of a type the schema does not have
    untimed       nodes without a start; untimed_on_device of them on the device
    unplaced      rows that do not say whether they ran on the host
    unlasting     rows without a duration
    unsized       rows whose message size needs the size of a group that is not known
    disbelieved   sizes no machine has, which count as not stated
    duration_ns   sum over all nodes
    """

    nodes: int = 0
    broken: int = 0
    untyped: int = 0
    untimed: int = 0
    untimed_on_device: int = 0
    unplaced: int = 0
    unlasting: int = 0
    unsized: int = 0
    disbelieved: int = 0
    duration_ns: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    groups: dict[str, DeclaredGroup] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    communication: dict[int, Node] = field(default_factory=dict)
    inputs: dict[int, OpInputs] = field(default_factory=dict)

    def add(self, node: Node | None) -> None:
        """Count a node (None: one that cannot be decoded); keep it as a row if it has a start and does something."""
        self.nodes += 1
        if node is None:
            self.broken += 1
            return
        on_host = bool(node.on_host)
        self.counts[f"{node.type.name} on {'host' if on_host else 'device'}"] += 1
        if node.type == NodeType.METADATA:
            for group in groups_of([node.groups]):
                self.groups.setdefault(group.config.name, group)
            return
        self.duration_ns += max(node.duration_ns or 0, 0)
        if node.type == NodeType.INVALID:
            self.untyped += 1
        elif node.start_ns is None:
            self.untimed += 1
            self.untimed_on_device += not on_host
        else:
            self._keep(node, node.start_ns, on_host)

    def _keep(self, node: Node, start_ns: int, on_host: bool) -> None:
        if not on_host and node.type in _COMMUNICATION:
            self.communication[len(self.rows)] = node
        if node.inputs is not None:
            self.inputs[len(self.rows)] = node.inputs
        self.unplaced += node.on_host is None
        self.unlasting += node.duration_ns is None
        size_bytes = self._believed(node.transfer.size_bytes, MOST_ELEMENTS) if node.type in _MEMORY else None
        self.rows.append(
            Row(
                start_ns=_known(start_ns, MAX_NS),
                duration_ns=0 if node.duration_ns is None else _known(node.duration_ns, MAX_NS),
                category=_category(node, on_host),
                name_id=self.names.setdefault(node.name, len(self.names)),
                stream=ABSENT if on_host else _known(node.stream, _LARGEST),
                thread=_known(node.thread, _LARGEST_THREAD) if on_host else ABSENT,
                id=_known(node.id, _LARGEST),
                parent=_known(node.parent, _LARGEST),
                size_bytes=_known(size_bytes, _LARGEST),
            )
        )

    def collectives(self) -> dict[int, CollectiveArgs]:
        """Arguments by row, once all groups are known; call it once."""
        return {
            row: node.collective or self._arguments(node.type, node.transfer)
            for row, node in self.communication.items()
        }

    def _arguments(self, kind: NodeType, transfer: Transfer) -> CollectiveArgs:
        """Sizes count bytes. What a rank gives to a gather is a share of the message, which takes the group's size."""
        declared = self.groups.get(transfer.group) if transfer.group else None
        size = self._believed(transfer.group_size, MOST_DEVICES) or (declared.config.size if declared else None)
        stated = self._believed(transfer.size_bytes, MOST_ELEMENTS)
        is_share = kind == NodeType.COMM_COLL and transfer.collective in _GIVEN_BY_EACH
        given = None if is_share and size is None else stated
        self.unsized += given is None and stated is not None
        return CollectiveArgs(
            name=_PEER.get(kind, transfer.collective),
            group=transfer.group,
            group_description=transfer.group_description or _dimensions(transfer.involved_dims),
            group_size=size,
            ranks=declared.config.ranks if declared else (),
            dtype="" if given is None else "Byte",
            in_elements=given,
            out_elements=given * size if is_share and given is not None and size is not None else None,
            source_rank=transfer.source if kind == NodeType.COMM_RECV else None,
            target_rank=transfer.destination if kind == NodeType.COMM_SEND else None,
        )

    def _believed(self, size: int | None, most: int) -> int | None:
        self.disbelieved += size is not None and size > most
        return size if size is not None and size <= most else None


def _category(node: Node, on_host: bool) -> Category:
    if on_host:
        return Category.ANNOTATION if node.annotation else Category.CPU_OP
    if node.type in _MEMORY or node.name.startswith("Memcpy"):
        return Category.MEMCPY
    return Category.MEMSET if node.name.startswith("Memset") else Category.KERNEL


def _known(value: int | None, largest: int) -> int:
    return value if value is not None and 0 <= value <= largest else ABSENT


def _dimensions(involved: tuple[bool, ...]) -> str:
    """In words which dimensions of the network a collective spans."""
    spanned = ", ".join(str(index) for index, is_spanned in enumerate(involved) if is_spanned)
    return f"network dimensions {spanned} of {len(involved)}" if spanned else ""
