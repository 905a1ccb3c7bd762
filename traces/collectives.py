"""Communication by collective and process group: what each costs, what of it is exposed, how much data it moves."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from projector.breakdown import Axis
from traces import intervals
from traces.intervals import Intervals
from traces.kernel_names import communication_of, host_communication_of
from traces.linking import NONE, innermost_open
from traces.naming import Classified, EventClass
from traces.shares import union_of
from traces.summary_types import CollectiveTime
from traces.trace import Category, CollectiveArgs, Ints, OpInputs, Trace

_UNSPECIFIC: Final = frozenset({"", "collective", "wait", "nccl", "one_sided", "userbuffers", "symmetric_memory"})
_TRANSPORT: Final = re.compile(r"(?:nccl|rccl|gloo|mpi|ucc|xccl|hccl):")
_SPELLINGS: Final = (
    ("all_reduce", "allreduce"),
    ("all_gather", "allgather"),
    ("reduce_scatter", "reducescatter"),
    ("all_to_all", "alltoall"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("send", "send"),
    ("recv", "recv"),
    ("reduce", "reduce"),
)
_ELEMENT_BYTES: Final = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "int": 4, "long": 8, "longint": 8, "short": 2, "byte": 1,
    "char": 1, "bool": 1, "unsignedchar": 1, "signedchar": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "int8": 1, "uint8": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Communication:
    """One communication event, told as far as the trace tells it."""

    row: int
    collective: str
    group: str = ""
    group_description: str = ""
    group_size: int | None = None
    message_bytes: int | None = None


def communications(trace: Trace, classified: Classified) -> tuple[Communication, ...]:
    """Every communication event on the device, with what its arguments and the operators around it say."""
    chosen = np.flatnonzero(classified.event_class == EventClass.COMMUNICATION)
    rows, operators = classified.links.rows[chosen], classified.links.operator[chosen]
    around = _collective_around(trace, classified.links.launch[chosen])
    return tuple(
        _told(trace, int(row), int(operator), int(outer))
        for row, operator, outer in zip(rows, operators, around, strict=True)
    )


def host_communications(trace: Trace, rows: Ints) -> tuple[Communication, ...]:
    """The same for collectives on the host. A collective is told once, where its transport ran it (gloo:all_reduce),
    not by the operators that asked for it (c10d::allreduce_); those count only where no transport is in the trace.
    """
    carried = np.fromiter((_TRANSPORT.match(name) is not None for name in trace.names), np.bool_, len(trace.names))
    transported = trace.named(rows, carried)
    return tuple(_told(trace, int(row), int(row), NONE) for row in (transported if len(transported) else rows))


def collective_table(
    trace: Trace,
    found: tuple[Communication, ...],
    compute: Intervals,
    axis_of: Callable[[Communication], Axis],
) -> tuple[CollectiveTime, ...]:
    """One line for each (collective, group), the costliest first."""
    lines: dict[tuple[str, str], list[Communication]] = {}
    for one in found:
        lines.setdefault((one.collective, one.group), []).append(one)
    table = (_line(trace, members, compute, axis_of) for members in lines.values())
    return tuple(sorted(table, key=lambda line: (-line.total_ns, line.collective, line.group)))


def _line(
    trace: Trace, members: list[Communication], compute: Intervals, axis_of: Callable[[Communication], Axis]
) -> CollectiveTime:
    rows = np.array([member.row for member in members], dtype=np.int64)
    sizes = {member.group_size for member in members if member.group_size is not None}
    messages = [member.message_bytes for member in members]
    stated = [message for message in messages if message is not None]
    return CollectiveTime(
        collective=members[0].collective,
        group=members[0].group,
        group_size=sizes.pop() if len(sizes) == 1 else None,
        axis=axis_of(members[0]),
        count=len(members),
        total_ns=int(trace.duration_ns[rows].sum()),
        exposed_ns=intervals.length(intervals.subtract(union_of(trace, rows), compute)),
        message_bytes=sum(stated) if len(stated) == len(messages) else None,
    )


def _told(trace: Trace, row: int, operator: int, outer: int) -> Communication:
    args = trace.collectives.get(row) or trace.collectives.get(operator)
    named = (
        _normal(args.name if args else ""),
        host_communication_of(trace.name(operator)) if operator != NONE else None,
        host_communication_of(trace.name(outer)) if outer != NONE else None,
        communication_of(trace.name(row)),
    )
    stated = [name for name in named if name]
    collective = next((name for name in stated if name not in _UNSPECIFIC), stated[-1] if stated else "unknown")
    message = _message_bytes(args) if args else None
    if message is None and operator != NONE:
        message = _operand_bytes(trace.inputs.get(operator))
    return Communication(
        row=row,
        collective=collective,
        group=args.group if args else "",
        group_description=args.group_description if args else "",
        group_size=_group_size(trace, args),
        message_bytes=message,
    )


def _collective_around(trace: Trace, launches: Ints) -> Ints:
    """For each launch the innermost operator or annotation around it that names a specific collective."""
    specific = np.fromiter(
        ((host_communication_of(name) or "") not in _UNSPECIFIC for name in trace.names), np.bool_, len(trace.names)
    )
    among = trace.named(trace.rows(Category.CPU_OP, Category.ANNOTATION), specific)
    found = np.full(len(launches), NONE, dtype=np.int64)
    known = launches != NONE
    if len(among) and known.any():
        found[known] = innermost_open(trace, launches[known], among)
    return found


def _normal(name: str) -> str:
    """The usual name of a collective: "_allgather_base" is an all_gather."""
    letters = re.sub(r"[^a-z]", "", name.lower())
    return next((usual for usual, spelling in _SPELLINGS if spelling in letters), name)


def _group_size(trace: Trace, args: CollectiveArgs | None) -> int | None:
    if args is None:
        return None
    if args.group_size is not None:
        return args.group_size
    return next((group.size for group in trace.metadata.groups if args.group and group.name == args.group), None)


def _message_bytes(args: CollectiveArgs) -> int | None:
    """Bytes of the full buffer: the larger side (output of an all-gather, input of a reduce-scatter)."""
    element = _ELEMENT_BYTES.get(args.dtype.lower())
    elements = [count for count in (args.in_elements, args.out_elements) if count is not None]
    return max(elements) * element if element is not None and elements else None


def _operand_bytes(inputs: OpInputs | None) -> int | None:
    """Bytes of the largest tensor an operator takes."""
    if inputs is None:
        return None
    sizes = [
        prod(shape) * element
        for shape, kind in zip(inputs.dims, inputs.types, strict=False)
        if shape and (element := element_bytes(kind)) is not None
    ]
    return max(sizes, default=None)


def element_bytes(type_name: str) -> int | None:
    """Bytes of one element of a type as profilers spell it ("c10::BFloat16", "long int"); None where unknown."""
    return _ELEMENT_BYTES.get(type_name.lower().removeprefix("c10::").replace(" ", ""))
