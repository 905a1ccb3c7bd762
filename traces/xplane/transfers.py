"""Transfers between slices on one core: which operators make up one, and how much time each leaves to the network.

Definitions of XProf's Megascale Stats (https://openxla.org/xprof/megascale_stats; openxla/xprof,
xprof/convert/xspace_to_dcn_slack_analysis.cc), in exact picoseconds:
  observed  from the start of the send to the end of the recv-done
  slack     from the start of the send to the start of the recv-done, without the time the core spends meanwhile in
            operators of any transfer: what the network has without stalling the core
  stall     send + send-done + recv + recv-done
  required bandwidth = bytes / slack
Bytes a device puts on the network for a buffer of b bytes (of the recv-done) among n: b for ONE_TO_ONE,
(n-1)/n b for ALL_GATHER and ALL_TO_ALL, 2 (n-1)/n b for ALL_REDUCE, (n-1) b for REDUCE_SCATTER; unknown for a ragged
all-to-all and where n or b is not stated.

Transfers of one rendezvous are matched in the order of their operators: first in, first out. Other than in XProf, a
recv that comes before its send, and a send-done that comes after the recv-done, count into the stall.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from traces.trace import Ints
from traces.xplane.dcn_host import HostRuns, HostSide
from traces.xplane.dcn_ops import DcnOp, Role
from traces.xplane.space import Line

ROLES: Final[tuple[Role, ...]] = ("send", "send_done", "recv", "recv_done")


@dataclass(frozen=True, slots=True)
class TransferSum:
    """All transfers of one rendezvous that begin and end on one core within the profile; times are sums.

    op   the recv-done: what arrives
    """

    rendezvous: str
    transfer_type: str
    send_op: str
    recv_op: str
    count: int
    slack_ps: int
    observed_ps: int
    stall_ps: int
    send_ps: int
    send_done_ps: int
    recv_ps: int
    recv_done_ps: int
    bytes_each: int | None
    op: DcnOp
    host: HostRuns | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """The transfers of one core.

    flights    rows (begin_ps, end_ps, index into `sums`), by begin
    unmatched  operators that belong to no transfer that begins and ends on the line
    """

    sums: tuple[TransferSum, ...]
    flights: Ints
    unmatched: int


@dataclass(slots=True)
class _Transfer:
    """One transfer: when it began, what the core had spent in transfers by then, and time in its own operators."""

    begin_ps: int
    spent_ps: int
    send_op: str
    parts: dict[Role, int]
    end_ps: int = 0
    slack_ps: int = 0


@dataclass(slots=True)
class _Rendezvous:
    """One collective while the line is gone through; `lacking`: transfers that had no operator of a role yet."""

    op: DcnOp
    lacking: dict[Role, deque[_Transfer]] = field(default_factory=lambda: {role: deque() for role in ROLES})
    early_recv_ps: deque[int] = field(default_factory=deque)
    done: list[_Transfer] = field(default_factory=list)
    recv_op: str = ""

    def begin(self, fresh: _Transfer) -> None:
        """A send: a transfer begins."""
        if self.early_recv_ps:
            fresh.parts["recv"] = self.early_recv_ps.popleft()
        for role in ROLES:
            if role not in fresh.parts:
                self.lacking[role].append(fresh)

    def attach(self, role: Role, duration: int) -> _Transfer | None:
        """Another operator: that of the oldest transfer that lacks it. None: it is of none."""
        if not self.lacking[role]:
            return None
        transfer = self.lacking[role].popleft()
        transfer.parts[role] = duration
        return transfer


def transfers_of(line: Line, ops: Mapping[int, DcnOp], titles: Mapping[int, str]) -> Transfers:
    """Match the operators of an op line, in the order of their begin; `ops` and `titles` by index of their kind."""
    mine = np.flatnonzero(np.isin(line.kind, np.array(sorted(ops), dtype=np.int64)))
    found: dict[str, _Rendezvous] = {}
    spent_ps = 0
    for kind, begin, duration in zip(
        line.kind[mine].tolist(), line.begin_ps[mine].tolist(), line.duration_ps[mine].tolist(), strict=True
    ):
        op = ops[kind]
        one = found.setdefault(op.rendezvous, _Rendezvous(op))
        if op.role == "send":
            one.begin(_Transfer(begin, spent_ps, titles[kind], {"send": duration}))
        elif (transfer := one.attach(op.role, duration)) is None:
            _without_send(one, op.role, duration)
        elif op.role == "recv_done":
            transfer.end_ps = begin + duration
            transfer.slack_ps = begin - transfer.begin_ps - (spent_ps - transfer.spent_ps)
            one.op, one.recv_op = op, titles[kind]
            one.done.append(transfer)
        spent_ps += duration
    whole = sum(len(transfer.parts) for one in found.values() for transfer in one.done)
    return _summed(found, len(mine) - whole)


def _without_send(one: _Rendezvous, role: Role, duration: int) -> None:
    """A recv may come before its send; a recv-done whose send came before the profile takes such a recv with it."""
    if role == "recv":
        one.early_recv_ps.append(duration)
    elif role == "recv_done" and one.early_recv_ps:
        one.early_recv_ps.popleft()


def _summed(found: Mapping[str, _Rendezvous], unmatched: int) -> Transfers:
    sums: list[TransferSum] = []
    flights: list[tuple[int, int, int]] = []
    for rendezvous, one in found.items():
        if not one.done:
            continue
        flights += [(transfer.begin_ps, transfer.end_ps, len(sums)) for transfer in one.done]
        parts = {role: sum(transfer.parts.get(role, 0) for transfer in one.done) for role in ROLES}
        sums.append(
            TransferSum(
                rendezvous=rendezvous,
                transfer_type=one.op.transfer_type,
                send_op=one.done[-1].send_op,
                recv_op=one.recv_op,
                count=len(one.done),
                slack_ps=sum(max(transfer.slack_ps, 0) for transfer in one.done),
                observed_ps=sum(transfer.end_ps - transfer.begin_ps for transfer in one.done),
                stall_ps=sum(parts.values()),
                send_ps=parts["send"],
                send_done_ps=parts["send_done"],
                recv_ps=parts["recv"],
                recv_done_ps=parts["recv_done"],
                bytes_each=transmitted_bytes(one.op),
                op=one.op,
            )
        )
    table = np.array(flights, dtype=np.int64).reshape(-1, 3)
    return Transfers(tuple(sums), table[np.argsort(table[:, 0], kind="stable")], unmatched)


def transmitted_bytes(op: DcnOp) -> int | None:
    """Bytes one device puts on the network for one transfer, of its recv-done; None where that is not known."""
    size, ranks = op.buffer_bytes, op.group_size
    if size is None:
        return None
    if op.transfer_type == "ONE_TO_ONE":
        return size
    if ranks is None:
        return None
    shares = {
        "ALL_GATHER": size * (ranks - 1) // ranks,
        "ALL_TO_ALL": size * (ranks - 1) // ranks,
        "ALL_REDUCE": 2 * size * (ranks - 1) // ranks,
        "REDUCE_SCATTER": size * (ranks - 1),
    }
    return shares.get(op.transfer_type)


def with_host(sums: tuple[TransferSum, ...], host: HostSide, core: int) -> tuple[TransferSum, ...]:
    """The transfers of one core, each with what the host did for it."""
    return tuple(replace(one, host=host.get((core, one.rendezvous))) for one in sums)
