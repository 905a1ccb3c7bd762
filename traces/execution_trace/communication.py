"""What an execution trace says of communication: arguments of each collective, and the declared process groups.

The collective is a record_param_comms node. From schema 1.1.0 on its attributes state everything. Before, its inputs
do, in this order: tensors (if any), sequence number, group, rank, name, input splits, output splits, and what describes
the group: nothing (1.0.1), its size (1.0.2), its first rank, the stride to the next and its size. They are found by
type. The group is an address in memory, which the list of groups explains (1.0.2), or (name, description). Element
counts are those of the tensors given and returned.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import msgspec

from projector.specs.record import MOST_DEVICES
from traces.execution_trace.nodes import Node, Operands
from traces.execution_trace.operands import tensors_of
from traces.trace import CollectiveArgs, GroupConfig

MOST_ELEMENTS: Final = 2**50
"""Of one message: more than any memory holds."""
COLLECTIVE_NODE: Final = "record_param_comms"

_GROUPS_NODE: Final = "process_group:init"
_GROUP_LIST: Final = re.compile(r"\[\s{0,64}\{")
# marks of a collective library that move no data
_NO_COLLECTIVE: Final = re.compile(r"wait|init|(?:start|end)_?coalesc\w*", re.IGNORECASE)
# collectives that record their caller's rank there; others record a root or a peer
_OF_ALL_RANKS: Final = re.compile(r"_?all_?reduce|_?all_?gather|_?reduce_?scatter|all_?to_?all|barrier", re.IGNORECASE)
_TO_A_PEER: Final = ("send", "recv")
_DEFAULT_GROUP: Final = "default_pg"


@dataclass(frozen=True, slots=True)
class _Written:
    """Inputs of record_param_comms; None and "" where not stated."""

    name: str
    rank: int | None
    group: Any
    sequence: int | None
    splits: tuple[list[Any], ...]
    first_rank: int | None
    stride: int | None
    size: int | None

    @property
    def named_group(self) -> tuple[str, str]:
        """Name and description; the former is "" for an address."""
        if not isinstance(self.group, list):
            return "", ""
        name, description, *_ = [*(one if isinstance(one, str) else "" for one in self.group), "", ""]
        return name, description


@dataclass(frozen=True, slots=True)
class DeclaredGroup:
    """A process group as declared, with its address in memory (schema 1.0.2).

    of_all_ranks: it lists no rank, which the writer does for a group of every rank of the job (`pg_config_info` in
    torch/distributed/distributed_c10d.py).
    """

    config: GroupConfig
    address: int | None
    of_all_ranks: bool


def is_collective(node: Node) -> bool:
    """Whether a node records a collective."""
    return node.name == COLLECTIVE_NODE


def declares_groups(node: Node) -> bool:
    """Whether a node lists the process groups."""
    return _GROUPS_NODE in node.name


def collective_args(node: Node) -> CollectiveArgs | None:
    """Arguments of the collective a node records; None for waits and other marks.

    Sizes no machine has count as not stated.
    """
    written = _written(node.inputs)
    name = node.text("collective_name") or written.name
    if not name or _NO_COLLECTIVE.fullmatch(name):
        return None
    given, returned = tensors_of(node.inputs), tensors_of(node.outputs)
    elements = {_short(kind) for kind, _ in given + returned}
    group, description = written.named_group
    size = _believed(_first(node.count("pg_size"), written.size), MOST_DEVICES)
    first_rank = _first(node.count("global_rank_start"), written.first_rank)
    stride = _first(node.count("global_rank_stride"), written.stride)
    peer = _peer(written.rank, first_rank, stride, size)
    return CollectiveArgs(
        name=name,
        group=node.text("pg_name") or group,
        group_description=node.text("pg_desc") or description,
        group_size=size or None,
        dtype=node.text("dtype") or (elements.pop() if len(elements) == 1 else ""),
        in_elements=_believed(_first(node.count("in_msg_nelems"), _total(given)), MOST_ELEMENTS),
        out_elements=_believed(_first(node.count("out_msg_nelems"), _total(returned)), MOST_ELEMENTS),
        rank_start=first_rank,
        rank_stride=stride,
        sequence=written.sequence,
        source_rank=peer if name == "recv" else None,
        target_rank=peer if name == "send" else None,
        uneven=any(len(set(map(str, one))) > 1 for one in written.splits) if written.splits else None,
    )


def group_address(node: Node) -> int | None:
    """Address of the group a collective names so."""
    return _count(_written(node.inputs).group)


def rank_of(node: Node) -> int | None:
    """Global rank of the process, where a collective of all ranks in the default group records it."""
    written = _written(node.inputs)
    if not _OF_ALL_RANKS.match(written.name) or written.named_group[1] != _DEFAULT_GROUP:
        return None
    return written.rank if written.size and written.rank is not None and written.rank < written.size else None


def groups_of(values: list[Any]) -> tuple[DeclaredGroup, ...]:
    """Process groups that the values of a process_group:init node list as JSON."""
    text = next((value for value in values if isinstance(value, str)), "")
    listed = _GROUP_LIST.search(text)
    try:
        end = text.find("]", text.rfind("}")) + 1
        entries = msgspec.json.decode(text[listed.start() : end].encode()) if listed else []
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return ()
    found = (_group(entry) for entry in entries if isinstance(entry, dict))
    return tuple(group for group in found if group is not None)


def world_size_of(groups: Iterable[DeclaredGroup]) -> int | None:
    """Size of the groups that hold all ranks; None where they disagree or there is none."""
    sizes = {group.config.size for group in groups if group.of_all_ranks}
    return sizes.pop() if len(sizes) == 1 else None


def _group(entry: dict[str, Any]) -> DeclaredGroup | None:
    ranks = entry.get("ranks")
    members = tuple(rank for rank in ranks if type(rank) is int and rank >= 0) if isinstance(ranks, list) else ()
    size = entry.get("group_size") or entry.get("pg_size") or len(members)
    if type(size) is not int or not 0 < size <= MOST_DEVICES:
        return None
    name, description = entry.get("pg_name"), entry.get("pg_desc")
    config = GroupConfig(
        name="" if name is None else str(name),
        description=description if isinstance(description, str) else "",
        size=size,
        ranks=members,
    )
    return DeclaredGroup(config, _count(entry.get("backend_id")), of_all_ranks=ranks == [])


def _written(inputs: Operands) -> _Written:
    """Inputs by their types: the name is the text that an integer (the rank) stands before and lists stand behind."""
    types, values = inputs.types, inputs.values
    name_at = (place for place in range(2, len(types)) if types[place] == "String" and types[place - 1] == "Int")
    at = next(name_at, None)
    if at is None or len(types) != len(values) or not isinstance(values[at], str):
        return _Written("", None, None, None, (), None, None, None)
    group_of = [_count(value) for value in values[at + 3 :]]
    first_rank, stride, size = group_of if len(group_of) == 3 else (None, None, group_of[0] if group_of else None)
    return _Written(
        name=values[at],
        rank=_count(values[at - 1]),
        group=values[at - 2],
        sequence=_sequence(values[at], values[at - 3]) if at >= 3 else None,
        splits=tuple(one for one in values[at + 1 : at + 3] if isinstance(one, list)),
        first_rank=first_rank,
        stride=stride,
        size=size,
    )


def _sequence(name: str, value: Any) -> int | None:
    """A number, which sends and receives borrow from the collective before them; or (number, whether those count)."""
    if isinstance(value, list):
        return _count(value[0]) if value else None
    return None if name in _TO_A_PEER else _count(value)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _believed(value: int | None, most: int) -> int | None:
    return value if value is not None and value <= most else None


def _total(tensors: tuple[tuple[str, tuple[int, ...] | None], ...]) -> int | None:
    """Elements of all tensors; None where there is none, or one of unknown shape."""
    counts = [None if shape is None else prod(shape) for _, shape in tensors]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _short(kind: str) -> str:
    """An element type as the profiler writes it on collectives: "BFloat16", "longint"."""
    return kind.removeprefix("c10::").replace(" ", "")


def _peer(rank: int | None, first: int | None, stride: int | None, size: int | None) -> int | None:
    """Global rank of a member of an evenly spaced group."""
    if rank is None or first is None or not stride or not size or rank >= size:
        return None
    return first + rank * stride
