"""Which operator of an XLA program takes whose result, as far as the profile holds the text of its operators.

    %slice.4 = bf16[8,128]{1,0} dynamic-slice(bf16[8,1024]{1,0} %all-gather.3, s32[] %constant.1), metadata={...}

Only operators that ran are there: tuples, parameters and bitcasts are not, so a missing edge proves nothing.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from traces.xplane.hlo_text import group_size, result_bytes
from traces.xplane.profile import DeviceProfile, Op

_LONGEST: Final = 16_384
_DEFINED: Final = re.compile(r"%?([\w.\-]{1,300}) = ")
_OPCODE: Final = re.compile(r"(?<=[\s)}\]]) ?([a-z][a-z\d\-]{1,40})\(")
_ATTRIBUTES: Final = re.compile(r"\), [a-z_]\w{0,40}=")
# operators that only move data, which are all a chain between collectives may hold
MOVES: Final = (
    "slice",
    "dynamic-slice",
    "copy",
    "transpose",
    "reshape",
    "bitcast",
    "convert",
    "bitcast-convert",
    "pad",
)
_CALLS: Final = tuple(f" {opcode}(" for opcode in MOVES)
_OPERAND: Final = re.compile(r"%([\w.\-]{1,300})")


@dataclass(frozen=True, slots=True)
class Node:
    """One operator: its text's name and opcode, the names of its operands, its collective ('' for none)."""

    op: Op
    name: str
    opcode: str
    operands: tuple[str, ...]

    @property
    def collective(self) -> str:
        """What it communicates, '' for an operator that does not."""
        return self.op.op_class.collective if self.op.op_class is not None else ""

    @property
    def result(self) -> int | None:
        """Bytes of its result."""
        return result_bytes(self.op.long_name, self.opcode)

    @property
    def group_size(self) -> int | None:
        """Devices of its group."""
        return group_size(self.op.long_name)


Key = tuple[int, str]


@dataclass(slots=True)
class HloGraph:
    """Collectives, and operators that only move data, by (program, name), and how often the window holds each.

    Of two programs with operators of one title the events cannot be told apart: `of_title` counts them.
    """

    ops: tuple[Op, ...]
    nodes: dict[Key, Node] = field(default_factory=dict)
    counts: dict[Key, int] = field(default_factory=dict)
    of_title: Counter[str] = field(default_factory=Counter)

    def operands(self, node: Node) -> list[Node]:
        """The operators whose results it takes, as far as they are there."""
        found = (self.nodes.get((node.op.program, name)) for name in node.operands)
        return [one for one in found if one is not None]

    def users(self, wanted: Iterable[Node]) -> dict[Key, list[Node]]:
        """For each of these all operators of the profile, of whatever kind, that take its result."""
        keys: dict[Key, list[Node]] = {(node.op.program, node.name): [] for node in wanted}
        names = {name for _, name in keys}
        for op in self.ops if names else ():
            if names.isdisjoint(_OPERAND.findall(op.long_name[:_LONGEST])):
                continue
            node = _node(op)
            for name in node.operands if node is not None else ():
                if node is not None and (op.program, name) in keys:
                    keys[op.program, name].append(node)
        return keys

    def start_of(self, node: Node) -> Node:
        """The operator that starts an asynchronous one, of its done; the operator itself of any other."""
        if not node.opcode.endswith("-done"):
            return node
        return next((one for one in self.operands(node) if one.opcode.endswith("-start")), node)

    def count(self, node: Node) -> int:
        """Its occurrences in the window."""
        return self.counts[node.op.program, node.name]


def hlo_graph(profile: DeviceProfile | None) -> HloGraph | None:
    """The graph of the operators of a device whose text names their operands; None where none does."""
    if profile is None:
        return None
    graph = HloGraph(tuple(one.op for one in profile.ops))
    for one in profile.ops:
        graph.of_title[one.op.name] += 1
        if _matters(one.op) and (node := _node(one.op)) is not None:
            graph.nodes[node.op.program, node.name] = node
            graph.counts[node.op.program, node.name] = one.count
    return graph if any(node.operands for node in graph.nodes.values()) else None


def _matters(op: Op) -> bool:
    if op.op_class is not None and op.op_class.collective:
        return True
    text = op.long_name[:_LONGEST]
    return any(call in text for call in _CALLS)


def _node(op: Op) -> Node | None:
    text = op.long_name[:_LONGEST]
    defined = _DEFINED.match(text)
    if defined is None:
        return None
    rest = text[defined.end() - 1 :]
    called = _OPCODE.search(rest)
    if called is None:
        return None
    inside = rest[called.end() :]
    attributes = _ATTRIBUTES.search(inside)
    operands = _OPERAND.findall(inside[: attributes.start()] if attributes is not None else inside)
    return Node(op, defined[1], called[1], tuple(dict.fromkeys(operands)))
