"""Operators that move data between TPU slices over the data center network (DCN).

XLA lowers a collective across slices to four operators on the core, which hand buffers to the host's MegaScale runtime:
send and send-done for what goes out, recv and recv-done for what comes in (https://openxla.org/xprof/megascale_stats).
They bear the categories of transfers to the host, "host send" and so on; what tells them apart is written on them:
  - the HLO attributes `_xla_host_transfer_handler_name="xla_megascale_runtime"` and `_xla_megascale_transfer_type`, in
    the operator's text; `_xla_host_transfer_rendezvous` there names the collective
  - the stat `dcn_collective_info` (openxla/xprof, plugin/xprof/protobuf/dcn_collective_info.proto), with the groups
  - a rendezvous that the plane of the MegaScale runtime names too
What one operator of a rendezvous states holds for all of them. A done operator may bear nothing; then the operator it
waits for says what it is, found by the operand in the text, else by the channel, else by the number behind the name,
within one program.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import numpy as np

from projector.specs.record import MOST_DEVICES
from traces.xplane.hlo_text import result_bytes
from traces.xplane.space import Kind, Span
from traces.xplane.wire import DELIMITED, WireFault, read_fields

if TYPE_CHECKING:
    from traces.xplane.profile import Op

T = TypeVar("T")
Role = Literal["send", "send_done", "recv", "recv_done"]

COLLECTIVES: Final[Mapping[str, str]] = {
    "ALL_TO_ALL": "all_to_all",
    "RAGGED_ALL_TO_ALL": "all_to_all",
    "ONE_TO_ONE": "p2p",
    "REDUCE_SCATTER": "reduce_scatter",
    "ALL_GATHER": "all_gather",
    "ALL_REDUCE": "all_reduce",
}
"""`TransferType` of dcn_collective_info.proto -> collective in the words of `traces.collectives`."""
_TYPES: Final = ("", "ALL_TO_ALL", "ONE_TO_ONE", "REDUCE_SCATTER", "ALL_GATHER", "ALL_REDUCE", "RAGGED_ALL_TO_ALL")

_LONGEST: Final = 100_000
_MEGASCALE: Final = '_xla_host_transfer_handler_name="xla_megascale_runtime"'
_RENDEZVOUS: Final = re.compile(r'_xla_host_transfer_rendezvous="([^"]{1,1000})"')
_TYPE: Final = re.compile(r'_xla_megascale_transfer_type="([A-Z_]{1,40})"')
_CHANNEL: Final = re.compile(r"\bchannel_id=(\d{1,18})\b")
_DONE: Final = re.compile(r" (?:send|recv)-done\(")
_OPERAND: Final = re.compile(r"[^%]{0,4000}%([\w.\-]{1,300})\)")
_CATEGORY: Final = re.compile(r"host (send|recv)(-done)?$")
_NAME: Final = re.compile(r"%?(send|recv)(-done)?((?:\.\d{1,9})*)$")
_ROLES: Final[Mapping[tuple[str, bool], Role]] = {
    ("send", False): "send",
    ("send", True): "send_done",
    ("recv", False): "recv",
    ("recv", True): "recv_done",
}


@dataclass(frozen=True, slots=True)
class DcnOp:
    """One of the four operators of a transfer. group_size and buffer_bytes: None where not stated.

    buffer_bytes   of the result, for a recv-done: what arrives on this core
    """

    role: Role
    rendezvous: str
    transfer_type: str = ""
    group_size: int | None = None
    buffer_bytes: int | None = None

    @property
    def message_bytes(self) -> int | None:
        """Bytes of the full buffer, for a recv-done; a reduce-scatter leaves each rank a part of it."""
        if self.buffer_bytes is None or self.transfer_type != "REDUCE_SCATTER":
            return self.buffer_bytes
        return None if self.group_size is None else self.buffer_bytes * self.group_size

    @property
    def collective(self) -> str:
        """What the transfer does; "p2p" where only that it is a transfer is known."""
        return COLLECTIVES.get(self.transfer_type, "p2p")


@dataclass(frozen=True, slots=True)
class _Found:
    """A transfer operator as far as its own text tells."""

    op: DcnOp
    marked: bool
    channel: str
    operand: str
    number: str
    program: int


def dcn_ops(
    kinds: Sequence[Kind], ops: Sequence["Op"], data: bytes | bytearray, rendezvous: Set[str]
) -> dict[int, DcnOp]:
    """Index of a kind -> the transfer operator it is. `rendezvous`: those the MegaScale runtime names."""
    found = {index: one for index, op in enumerate(ops) if (one := _read(kinds[index], op, data)) is not None}
    begun = _begun(found, ops)
    by_rendezvous: dict[str, list[int]] = {}
    for index, one in found.items():
        name = one.op.rendezvous or _waited_for(one, begun)
        if name:
            by_rendezvous.setdefault(name, []).append(index)
    known: dict[int, DcnOp] = {}
    for name, members in by_rendezvous.items():
        told_by = [found[index] for index in members]
        if name in rendezvous or any(one.marked for one in told_by):
            transfer_type = _agreed([one.op.transfer_type for one in told_by if one.op.transfer_type], "")
            size = _agreed([one.op.group_size for one in told_by if one.op.group_size is not None], None)
            for index in members:
                own = found[index].op
                known[index] = DcnOp(own.role, name, transfer_type, size, own.buffer_bytes)
    return known


def _agreed(stated: Sequence[T], otherwise: T) -> T:
    """What all say alike; `otherwise` where they differ or none says anything."""
    return stated[0] if stated and all(one == stated[0] for one in stated) else otherwise


def _read(kind: Kind, op: "Op", data: bytes | bytearray) -> _Found | None:
    text = kind.name[:_LONGEST]
    category, name = _CATEGORY.match(op.category), _NAME.match(op.name)
    match = category or (name if op.category in ("", "send", "recv", "send-done", "recv-done") else None)
    if match is None:
        return None
    attribute, channel, done = (pattern.search(text) for pattern in (_RENDEZVOUS, _CHANNEL, _DONE))
    operand = _OPERAND.match(text, done.end()) if done else None
    transfer_type = _TYPE.search(text)
    info = kind.stats.get("dcn_collective_info")
    stated_type, group_size = _collective_info(info, data) if isinstance(info, Span) else ("", None)
    role = _ROLES[match[1], match[2] is not None]
    return _Found(
        op=DcnOp(
            role=role,
            rendezvous=attribute[1] if attribute else "",
            transfer_type=transfer_type[1] if transfer_type else stated_type,
            group_size=group_size,
            buffer_bytes=result_bytes(text, "recv-done") if role == "recv_done" else None,
        ),
        marked=_MEGASCALE in text or transfer_type is not None or bool(stated_type),
        channel=channel[1] if channel else "",
        operand=operand[1] if operand else "",
        number=name[3] if name else "",
        program=op.program,
    )


_Key = tuple[int, Role, str, str]
"""Program, role, what the last is (operand, channel or number), and that."""


def _begun(found: Mapping[int, _Found], ops: Sequence["Op"]) -> Mapping[_Key, set[str]]:
    """Rendezvous of the sends and recvs that name one, by all that a done operator may know them by."""
    names: dict[_Key, set[str]] = {}
    for index, one in found.items():
        if one.op.rendezvous and one.op.role in ("send", "recv"):
            for what, value in (
                ("operand", ops[index].name.lstrip("%")),
                ("channel", one.channel),
                ("number", one.number),
            ):
                names.setdefault((one.program, one.op.role, what, value), set()).add(one.op.rendezvous)
    return names


def _waited_for(done: _Found, begun: Mapping[_Key, set[str]]) -> str:
    """Rendezvous of the send or recv a done operator waits for; "" where none is known, or several."""
    role: Role = "send" if done.op.role == "send_done" else "recv"
    for what, value in (("operand", done.operand), ("channel", done.channel), ("number", done.number)):
        names = begun.get((done.program, role, what, value), set()) if value or what == "number" else set()
        if len(names) == 1:
            return next(iter(names))
    return ""


def _collective_info(span: Span, data: bytes | bytearray) -> tuple[str, int | None]:
    """Type and group size of a DcnCollectiveInfoProto; ("", None) where it is damaged."""
    try:
        fields = read_fields(data, np.array([span.start]), np.array([span.end]))
        groups, pairs = fields.of(2, DELIMITED), fields.of(3, DELIMITED)
        kind = int(fields.last_word(1, 1)[0])
        members = len(read_fields(data, groups.start[:1], groups.end[:1]).of(1, DELIMITED).start)
    except WireFault:
        return "", None
    size = members if len(groups.start) else (2 if len(pairs.start) else 0)
    return (_TYPES[kind] if 0 <= kind < len(_TYPES) else ""), (size if 0 < size <= MOST_DEVICES else None)
