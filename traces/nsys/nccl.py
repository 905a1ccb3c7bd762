"""Collective arguments of NCCL's kernels, from the payloads of the ranges they were launched in.

Which range a kernel belongs to: a call of NCCL outside a group launches within its own range; calls between
ncclGroupStart and the ncclGroupEnd that closes the outermost group are launched within that ncclGroupEnd, all of one
communicator together (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/groups.html). A kernel that
shares its range with others gets the name and the group, not the size: the file does not say how it was divided.

What "Message size" counts, per call (NCCL, src/collectives.cc): the whole buffer for all-reduce, reduce and broadcast,
one rank's part for all-gather, reduce-scatter, all-to-all, gather and scatter, one message for send and receive. The
size of the full buffer is then the part times the ranks of the communicator, and unknown where that number is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from projector.specs.record import MOST_DEVICES
from traces.linking import NONE
from traces.nsys.events import Events, Names
from traces.nsys.host import Ranges
from traces.nsys.payload import COMMUNICATOR, DEVICE, MESSAGE_BYTES, RANK, RANKS, Layouts, decoded
from traces.nsys.ranges import nccl_call
from traces.trace import ABSENT, Category, CollectiveArgs, GroupConfig, Ints

_WHOLE: Final = frozenset({"AllReduce", "Reduce", "Broadcast", "Bcast"})
_ONE: Final = 1
_EACH: Final = None
"""As many parts as there are ranks."""
_PARTS: Final[Mapping[str, tuple[int | None, int | None]]] = {  # sent, received
    "AllGather": (_ONE, _EACH),
    "ReduceScatter": (_EACH, _ONE),
    "AlltoAll": (_EACH, _EACH),
    "Gather": (_ONE, _EACH),
    "Scatter": (_EACH, _ONE),
    "Send": (_ONE, 0),
    "Recv": (0, _ONE),
}
_LARGEST_MESSAGE: Final = 1 << 48
"""Bytes; what is larger, or negative, is no message size."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of NCCL. name without its prefix; fields as the payload states them, None where none was readable."""

    start_ns: int
    end_ns: int
    thread: int
    name: str
    fields: Mapping[str, int] | None = None

    def field(self, name: str) -> int | None:
        """A number of the payload; None where it is not stated."""
        return None if self.fields is None else self.fields.get(name)


@dataclass(frozen=True, slots=True)
class Membership:
    """One rank in one communicator, as a call that made or ended the communicator states it."""

    communicator: int
    ranks: int
    rank: int
    device: int | None


def memberships(calls: Sequence[Call]) -> tuple[Membership, ...]:
    """Who is in which communicator: what initialisation and destruction say, each once."""
    found = []
    for call in calls:
        communicator, ranks, rank = call.field(COMMUNICATOR), call.field(RANKS), call.field(RANK)
        if communicator and ranks is not None and rank is not None and 0 <= rank < ranks <= MOST_DEVICES:
            found.append(Membership(communicator, ranks, rank, call.field(DEVICE)))
    return tuple(dict.fromkeys(found))


def sizes_of(members: Sequence[Membership]) -> Mapping[int, int]:
    """Ranks of each communicator; one that is described in two ways is left out."""
    stated: dict[int, set[int]] = {}
    for member in members:
        stated.setdefault(member.communicator, set()).add(member.ranks)
    return {communicator: sizes.pop() for communicator, sizes in stated.items() if len(sizes) == 1}


def groups_of(sizes: Mapping[int, int]) -> tuple[GroupConfig, ...]:
    """Communicators as groups; which ranks of the job are in them is not stated."""
    return tuple(GroupConfig(group_name(one), "", size, ()) for one, size in sorted(sizes.items()))


def group_name(communicator: int) -> str:
    """A communicator's identity, the same on all of its ranks."""
    return f"0x{communicator:016x}"


def nccl_calls(ranges: Ranges, names: Names, layouts: Layouts, warnings: list[str]) -> dict[int, list[Call]]:
    """NCCL's calls by process, with what could be read of their payloads."""
    call_of = [nccl_call(name) for name in names.ids]
    rows = np.flatnonzero(np.array([bool(call) for call in call_of], dtype=np.bool_)[ranges.events.name])
    mine = ranges.events.take(rows)
    found: dict[int, list[Call]] = {}
    carried = unreadable = sized = 0
    for start, end, thread, process, name, payload in np.stack(
        (mine.start_ns, mine.end_ns, mine.thread, mine.process, mine.name, mine.payload), axis=1
    ).tolist():
        fields = decoded(ranges.payloads[payload], layouts) if payload != ABSENT else None
        carried += payload != ABSENT
        unreadable += payload != ABSENT and fields is None
        sized += call_of[name] in _WHOLE or call_of[name] in _PARTS
        found.setdefault(process, []).append(Call(start, end, thread, call_of[name], fields))
    if sized and not carried:
        warnings.append(
            "NCCL's ranges carry no payloads: message sizes and communicators are not known; export the report with "
            "--include-blobs=true"
        )
    if unreadable:
        warnings.append(f"{unreadable:,} of {carried:,} payloads of NCCL's ranges could not be read")
    return found


def collective_args(
    found: Events, mine: Ints, calls: Sequence[Call], sizes: Mapping[int, int], warnings: list[str]
) -> dict[int, CollectiveArgs]:
    """Row of `found` -> arguments, for the kernels that a call with a payload launched.

    mine   rows of one process, whose `calls` these are: ids that join kernels and launches hold within a process
    """
    spans = _spans(calls)
    kernels = mine[(found.category[mine] == Category.KERNEL) & (found.correlation[mine] != ABSENT)]
    if not len(spans) or not len(kernels):
        return {}
    span_of = _around(spans, found, _launches(found, mine, kernels))
    launched: dict[int, list[int]] = {}
    for row, span in zip(kernels[span_of != NONE].tolist(), span_of[span_of != NONE].tolist(), strict=True):
        launched.setdefault(span, []).append(row)
    args: dict[int, CollectiveArgs] = {}
    unsized = 0
    for span, rows in launched.items():
        told = _told(spans.calls[span], sizes, alone=len(rows) == 1)
        if told is not None:
            args.update(dict.fromkeys(rows, told))
            unsized += len(rows) * (told.in_elements is None)
    if unsized:
        warnings.append(
            f"the message size of {unsized:,} NCCL kernels is not known: the file does not say how many ranks their "
            "communicator has, several kernels share one group of calls, or the size stated is impossible"
        )
    return args


@dataclass(frozen=True, slots=True)
class _Spans:
    """Times in which NCCL launches, by thread; `calls[i]` are the calls that span i launches."""

    by_thread: Mapping[int, tuple[Ints, Ints, Ints]]
    calls: tuple[tuple[Call, ...], ...]

    def __len__(self) -> int:
        return len(self.calls)


def _spans(calls: Sequence[Call]) -> _Spans:
    by_thread: dict[int, list[tuple[int, int, int]]] = {}
    kept: list[tuple[Call, ...]] = []
    depth: dict[int, int] = {}
    pending: dict[int, list[Call]] = {}
    for call in sorted(calls, key=lambda one: (one.thread, one.start_ns)):
        level = depth.get(call.thread, 0)
        if call.name in ("GroupStart", "GroupEnd"):
            depth[call.thread] = level = max(level + (1 if call.name == "GroupStart" else -1), 0)
        closes = call.name == "GroupEnd" and level == 0
        if call.name in _WHOLE or call.name in _PARTS:
            pending.setdefault(call.thread, []).append(call)
            closes = level == 0
        if closes:
            by_thread.setdefault(call.thread, []).append((call.start_ns, call.end_ns, len(kept)))
            kept.append(tuple(pending.pop(call.thread, ())))
    columns = {thread: np.array(spans, dtype=np.int64).T for thread, spans in by_thread.items()}
    return _Spans({thread: (start, end, index) for thread, (start, end, index) in columns.items()}, tuple(kept))


def _around(spans: _Spans, found: Events, launches: Ints) -> Ints:
    """The span each launch (a row, or NONE) happened in, or NONE."""
    around = np.full(len(launches), NONE, dtype=np.int64)
    for thread, (start, end, index) in spans.by_thread.items():
        mine = np.flatnonzero((launches != NONE) & (found.thread[launches] == thread))
        times = found.start_ns[launches[mine]]
        at = np.searchsorted(start, times, side="right") - 1
        inside = (at >= 0) & (times < end[at])
        around[mine[inside]] = index[at[inside]]
    return around


def _launches(found: Events, mine: Ints, kernels: Ints) -> Ints:
    """Row of the call that launched each kernel, or NONE."""
    calls = mine[(found.category[mine] == Category.RUNTIME) & (found.correlation[mine] != ABSENT)]
    if not len(calls):
        return np.full(len(kernels), NONE, dtype=np.int64)
    calls = calls[np.argsort(found.correlation[calls], kind="stable")]
    keys, wanted = found.correlation[calls], found.correlation[kernels]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, calls[at], NONE)


def _told(calls: tuple[Call, ...], sizes: Mapping[int, int], *, alone: bool) -> CollectiveArgs | None:
    """Arguments of the kernels that some calls launched; None where the calls do not agree on communicator and kind."""
    communicators = {call.field(COMMUNICATOR) for call in calls}
    names = {call.name for call in calls}
    exchange = names <= {"Send", "Recv"}
    communicator = communicators.pop() if len(communicators) == 1 else None
    if not calls or not (len(names) == 1 or exchange) or not communicator:
        return None
    size = sizes.get(communicator)
    sent, received = (_bytes(calls, side, size) if alone else None for side in (0, 1))
    if sent is None or received is None:  # the smaller side alone would pass for the whole buffer
        sent = received = None
    return CollectiveArgs(
        name="" if len(names) > 1 else names.pop(),
        group=group_name(communicator),
        group_size=size,
        dtype="" if sent is None else "byte",
        in_elements=sent,
        out_elements=received,
    )


def _bytes(calls: Sequence[Call], side: int, ranks: int | None) -> int | None:
    """Bytes all calls together send (side 0) or receive (side 1) on this rank."""
    total = 0
    for call in calls:
        message = call.field(MESSAGE_BYTES)
        parts = _ONE if call.name in _WHOLE else _PARTS[call.name][side]
        if parts is _EACH:
            parts = ranks
        if message is None or parts is None or message < 0:
            return None
        total += message * parts
    return total if total <= _LARGEST_MESSAGE else None
