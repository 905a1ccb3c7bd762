"""A PyTorch execution trace file to an ExecutionTrace."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import numpy as np

from projector.errors import CorruptTrace, EmptyTrace, TraceTooLarge
from traces.content import Content, Limits
from traces.execution_trace.communication import (
    DeclaredGroup,
    collective_args,
    declares_groups,
    group_address,
    groups_of,
    is_collective,
    rank_of,
    world_size_of,
)
from traces.execution_trace.node_texts import LARGEST_NODE_BYTES, NodeTexts
from traces.execution_trace.nodes import Node, node_of
from traces.execution_trace.operands import op_inputs
from traces.execution_trace.record import ExecutionTrace
from traces.trace import ABSENT, CollectiveArgs, GroupConfig, OpInputs

NODES_KEY: Final = "nodes"

_SCHEMA: Final = re.compile(rb'"schema"\s{0,64}:\s{0,64}"([^"\\]{0,100})"')
_PROCESS: Final = re.compile(rb'"pid"\s{0,64}:\s{0,64}(\d{1,18})\b')
_LARGEST_THREAD: Final = 2**31 - 1
_WIDEST_SCOPE: Final = 127


@dataclass(slots=True)
class _Columns:
    """Growing columns."""

    names: dict[str, int] = field(default_factory=dict)
    record_ids: list[int] = field(default_factory=list)
    name_id: list[int] = field(default_factory=list)
    scope: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    inputs: dict[int, OpInputs] = field(default_factory=dict)
    distinct: dict[OpInputs, OpInputs] = field(default_factory=dict)
    collectives: dict[int, CollectiveArgs] = field(default_factory=dict)
    groups: dict[str, DeclaredGroup] = field(default_factory=dict)
    addresses: dict[int, int] = field(default_factory=dict)
    ranks: Counter[int] = field(default_factory=Counter)

    def add(self, node: Node) -> None:
        """Keep a call; of other nodes only the process groups they declare."""
        if declares_groups(node):
            for group in groups_of(node.inputs.values):
                self.groups.setdefault(group.config.name, group)
        if node.record_id <= 0:
            return
        entry = len(self.record_ids)
        self.record_ids.append(node.record_id)
        self.name_id.append(self.names.setdefault(node.name, len(self.names)))
        self.scope.append(node.scope if 0 <= node.scope <= _WIDEST_SCOPE else ABSENT)
        self.thread.append(node.thread if 0 <= node.thread <= _LARGEST_THREAD else ABSENT)
        inputs = op_inputs(node.inputs)
        if inputs is not None:
            self.inputs[entry] = self.distinct.setdefault(inputs, inputs)
        if is_collective(node):
            self._add_collective(entry, node)

    def _add_collective(self, entry: int, node: Node) -> None:
        args, rank, address = collective_args(node), rank_of(node), group_address(node)
        if args is not None:
            self.collectives[entry] = args
            if address is not None:
                self.addresses[entry] = address
        if rank is not None:
            self.ranks[rank] += 1

    def explained(self) -> dict[int, CollectiveArgs]:
        """The collectives, groups that were named by their address called as they were declared."""
        at = {group.address: group.config for group in self.groups.values() if group.address is not None}
        return {
            entry: _called(args, at.get(self.addresses.get(entry, ABSENT))) for entry, args in self.collectives.items()
        }


def read_execution_trace(content: Content, limits: Limits) -> ExecutionTrace:
    """Read the nodes of an execution trace of any schema from 1.0.1 on.

    A node that cannot be decoded is left out, with a warning; so is the end of a file that breaks off.
    Raises `CorruptTrace` (no list of nodes, or none that can be decoded), `EmptyTrace` (no operator call),
    `TraceTooLarge` (max_events, or nesting).
    """
    texts = NodeTexts(content, NODES_KEY, limits)
    columns = _Columns()
    broken = odd = 0
    for text in texts:
        try:
            if len(text) > LARGEST_NODE_BYTES:
                broken += 1
                continue
            columns.add(node_of(text))
        except msgspec.ValidationError:
            odd += 1
        except msgspec.DecodeError:
            broken += 1
        except RecursionError as fault:
            raise TraceTooLarge(f"a node of {content.file} is nested too deeply", hint="limit max_depth") from fault
    if not texts.found or (texts.count and broken + odd == texts.count) or (texts.cut_off and not texts.count):
        raise CorruptTrace(
            f"{content.file} is an execution trace without a node that can be read", hint="copy the file again"
        )
    if not columns.record_ids:
        raise EmptyTrace(
            f"{content.file} is an execution trace without an operator call",
            hint="start the ExecutionTraceObserver before the steps, and stop it after them",
        )
    return _execution_trace(content, columns, _told(content, texts, broken, odd))


def _told(content: Content, texts: NodeTexts, broken: int, odd: int) -> tuple[str, ...]:
    told = list(content.warnings)
    if texts.cut_off or content.truncated:
        told.append("the file breaks off; the nodes before that were read")
    if broken:
        told.append(f"{broken:,} of {texts.count:,} nodes are no valid JSON and were left out")
    if odd:
        told.append(f"{odd:,} of {texts.count:,} nodes hold a value of an unexpected type and were left out")
    return tuple(told)


def _execution_trace(content: Content, columns: _Columns, told: tuple[str, ...]) -> ExecutionTrace:
    head = content.head
    schema, process = _SCHEMA.search(head), _PROCESS.search(head)
    record_ids, first = np.unique(np.array(columns.record_ids, dtype=np.int64), return_index=True)
    repeated = len(columns.record_ids) - len(record_ids)
    if repeated:
        told += (f"{repeated:,} nodes repeat the record function id of another and were left out",)
    if len(columns.ranks) > 1:
        told += (f"collectives record {len(columns.ranks)} different ranks: the rank is taken as unknown",)
    place = {int(entry): position for position, entry in enumerate(first.tolist())}
    world_size = world_size_of(columns.groups.values())
    return ExecutionTrace(
        file=content.file,
        schema=schema[1].decode("utf-8", "replace") if schema else "",
        process_id=int(process[1]) if process else None,
        record_ids=record_ids,
        name_id=np.array(columns.name_id, dtype=np.int32)[first],
        names=tuple(columns.names),
        scope=np.array(columns.scope, dtype=np.int8)[first],
        thread=np.array(columns.thread, dtype=np.int32)[first],
        inputs={place[entry]: one for entry, one in columns.inputs.items() if entry in place},
        collectives={place[entry]: one for entry, one in columns.explained().items() if entry in place},
        groups=_with_ranks(columns.groups.values(), world_size),
        rank=next(iter(columns.ranks)) if len(columns.ranks) == 1 else None,
        world_size=world_size,
        warnings=told,
    )


def _with_ranks(groups: Iterable[DeclaredGroup], world_size: int | None) -> tuple[GroupConfig, ...]:
    every_rank = tuple(range(world_size or 0))
    return tuple(replace(one.config, ranks=every_rank) if one.of_all_ranks else one.config for one in groups)


def _called(args: CollectiveArgs, group: GroupConfig | None) -> CollectiveArgs:
    if group is None:
        return args
    size = args.group_size or group.size
    return replace(args, group=group.name, group_description=group.description, group_size=size, ranks=group.ranks)
