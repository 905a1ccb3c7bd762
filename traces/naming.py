"""Class of every device event (compute, communication, copy), its kind of computation, and what decided it.

Order of evidence; the first that speaks decides:
  1. category          memcpy and memset events are copies; an operator category of the profile itself (HLO)
  2. collective_args   the profiler wrote collective arguments on the kernel
  3. enclosing_op      the operator that launched it is a collective (nccl:*, record_param_comms, c10d::*, symm_mem::*,
                       DeepEP, NVSHMEM); products, copies and pointwise library kernels inside it stay what they are
  4. name_rule         the kernel's name (`traces.rules`); what an own rule of the service knows holds anywhere. A name
                       like a collective's is not believed of a kernel that a matrix product launched, unless it begins
                       as those of a collective library do: fused products are named for what is beside them
  5. enclosing_op      the operator names the computation of a kernel whose name says nothing
  6. stream_hint       an unnamed kernel on a stream that carries communication and nothing else
  7. unclassified      compute, and counted as unclassified

Two kernels of one name may differ, so evidence is kept per event.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import OperatorKind
from traces.grouping import places_by
from traces.linking import NONE, Links, inside, link
from traces.rules.kernel_rules import Decision
from traces.rules.rule import KINDS as KINDS
from traces.trace import ABSENT, UNKNOWN_WORK, Category, Ints, Mask, Trace

Evidence = Literal["provenance", "names"]
Flag = TypeVar("Flag", bound=np.generic)


class EventClass(IntEnum):
    """What keeps the device busy."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2


class By(IntEnum):
    """What decided the class, in the words of `ClassifiedBy`."""

    CATEGORY = 0
    COLLECTIVE_ARGS = 1
    ENCLOSING_OP = 2
    NAME_RULE = 3
    STREAM_HINT = 4
    UNCLASSIFIED = 5


NO_KIND = -1

_HINT_SHARE = 0.9
_POINTWISE = ("at::native::", "void at::native::", "triton_poi_", "triton_red_", "triton_per_")


@dataclass(frozen=True, slots=True, eq=False)
class Classified:
    """One entry for each row of `links.rows`. kind is an index into KINDS, NO_KIND for communication and copies."""

    links: Links
    event_class: NDArray[np.int8]
    by: NDArray[np.int8]
    kind: NDArray[np.int8]
    hinted_streams: tuple[int, ...] = ()

    def rows(self, event_class: EventClass) -> Ints:
        """Trace rows of one class."""
        rows: Ints = self.links.rows[self.event_class == event_class]
        return rows


@dataclass(frozen=True, slots=True, eq=False)
class _NameTable:
    """What the rules say of each name in a trace. settled: an operator's own rule decides the kernel's kind.

    only_called: communication by a word in the name of a kernel that is of no collective library.
    """

    communication: Mask
    copy: Mask
    kind: NDArray[np.int8]
    host_communication: Mask
    host_kind: NDArray[np.int8]
    computes: Mask
    settled: Mask
    only_called: Mask


def classify(trace: Trace, evidence: Evidence = "provenance") -> Classified:
    """Classify every device event. `evidence="names"` uses categories and names alone, as most other tools do."""
    links = link(trace)
    table = _name_table(trace)
    names = trace.name_id[links.rows]
    count = len(links.rows)
    event_class = np.zeros(count, dtype=np.int8)
    by = np.full(count, By.UNCLASSIFIED, dtype=np.int8)

    def decide(where: Mask, outcome: EventClass, reason: By) -> None:
        where = where & (by == By.UNCLASSIFIED)
        event_class[where] = outcome
        by[where] = reason

    decide(trace.category[links.rows] != Category.KERNEL, EventClass.COPY, By.CATEGORY)
    if evidence == "provenance":
        decide(_has_collective_args(trace, links), EventClass.COMMUNICATION, By.COLLECTIVE_ARGS)
        in_collective = _of_operator(trace, links, table.host_communication, absent=0)
        decide(in_collective & ~table.computes[names], EventClass.COMMUNICATION, By.ENCLOSING_OP)
    stated = _stated_kind(trace, links)
    decide(stated != NO_KIND, EventClass.COMPUTE, By.CATEGORY)
    named = table.communication[names]
    if evidence == "provenance":
        product = _of_operator(trace, links, table.host_kind, absent=NO_KIND) == KINDS.index("gemm")
        named = named & ~(product & table.only_called[names])
    decide(named, EventClass.COMMUNICATION, By.NAME_RULE)
    decide(table.copy[names], EventClass.COPY, By.NAME_RULE)
    kind = np.where(stated == NO_KIND, table.kind[names], stated)
    decide(kind != NO_KIND, EventClass.COMPUTE, By.NAME_RULE)
    hinted: tuple[int, ...] = ()
    if evidence == "provenance":
        operator_kind = _of_operator(trace, links, table.host_kind, absent=NO_KIND)
        decide(operator_kind != NO_KIND, EventClass.COMPUTE, By.ENCLOSING_OP)
        kind = np.where(table.settled[names], kind, _refine_kinds(trace, links, kind, operator_kind))
        on_hinted, hinted = _on_communication_streams(trace, links, event_class, by)
        decide(on_hinted, EventClass.COMMUNICATION, By.STREAM_HINT)
    by[(stated == UNKNOWN_WORK) & (event_class == EventClass.COMPUTE)] = By.UNCLASSIFIED
    kind[kind < 0] = KINDS.index("other")
    kind[event_class != EventClass.COMPUTE] = NO_KIND
    return Classified(links, event_class, by, kind, hinted)


def _name_table(trace: Trace) -> _NameTable:
    on_device = np.zeros(len(trace.names), dtype=np.bool_)
    on_device[trace.name_id[trace.device_rows]] = True
    on_host = np.zeros(len(trace.names), dtype=np.bool_)
    on_host[trace.name_id[trace.rows(Category.CPU_OP, Category.ANNOTATION)]] = True
    names = trace.names

    def flags(where: Mask, answers: list[bool]) -> Mask:
        found = np.zeros(len(names), dtype=np.bool_)
        found[where] = answers
        return found

    def kinds(where: Mask, answers: list[OperatorKind | None]) -> NDArray[np.int8]:
        found = np.full(len(names), NO_KIND, dtype=np.int8)
        found[where] = [NO_KIND if answer is None else KINDS.index(answer) for answer in answers]
        return found

    rules = trace.rules
    device_names = [names[index] for index in np.flatnonzero(on_device)]
    kernels = [rules.of_kernel(name) for name in device_names]  # once: with very many names none is remembered
    operators = [rules.of_operator(names[index]) for index in np.flatnonzero(on_host)]
    by_name = zip(device_names, kernels, strict=True)
    return _NameTable(
        communication=flags(on_device, [one.subject == "communication" for one in kernels]),
        copy=flags(on_device, [one.subject == "copy" for one in kernels]),
        kind=kinds(on_device, [one.kind for one in kernels]),
        host_communication=flags(on_host, [one.subject == "communication" for one in operators]),
        host_kind=kinds(on_host, [one.kind for one in operators]),
        computes=flags(on_device, [_computes_or_copies(name, decision) for name, decision in by_name]),
        settled=flags(on_device, [one.settles for one in kernels]),
        only_called=flags(on_device, [_only_called(one) for one in kernels]),
    )


def _stated_kind(trace: Trace, links: Links) -> NDArray[np.int8]:
    """What the profile itself says of each device event, NO_KIND where it says nothing."""
    if trace.stated_kind is None:
        return np.full(len(links.rows), NO_KIND, dtype=np.int8)
    return trace.stated_kind[links.rows]


def _computes_or_copies(kernel: str, decision: Decision) -> bool:
    """Whether a kernel is known for what it is wherever it is launched: library pointwise kernels, products, copies."""
    if decision.subject == "communication":
        return False
    known = decision.subject == "copy" or decision.meaning in ("gemm", "attention", "moe") or decision.settles
    return known or kernel.startswith(_POINTWISE)


def _only_called(decision: Decision) -> bool:
    rule = decision.rule
    return decision.subject == "communication" and rule is not None and rule.table != "collective" and not rule.own


def _has_collective_args(trace: Trace, links: Links) -> Mask:
    with_args = np.fromiter(trace.collectives, dtype=np.int64, count=len(trace.collectives))
    return np.isin(links.rows, with_args)


def _of_operator(trace: Trace, links: Links, table: NDArray[Flag], absent: int) -> NDArray[Flag]:
    """Entry of the name table for each event's innermost operator, `absent` where there is none."""
    known = links.operator != NONE
    found = np.full(len(links.rows), absent, dtype=table.dtype)
    found[known] = table[trace.name_id[links.operator[known]]]
    return found


def _refine_kinds(
    trace: Trace, links: Links, kind: NDArray[np.int8], operator_kind: NDArray[np.int8]
) -> NDArray[np.int8]:
    """Kinds where the operator knows more than the name: expert GEMMs, lookups, and what an optimizer step launches."""
    kind = np.where(kind == NO_KIND, operator_kind, kind)
    gemm, moe, embedding = KINDS.index("gemm"), KINDS.index("moe"), KINDS.index("embedding")
    pointwise, optimizer = KINDS.index("elementwise"), KINDS.index("optimizer")
    kind[(kind == gemm) & (operator_kind == moe)] = moe
    kind[(kind == pointwise) & (operator_kind == embedding)] = embedding
    is_step = np.fromiter((name.startswith("Optimizer.step") for name in trace.names), np.bool_, len(trace.names))
    steps = trace.named(trace.rows(Category.ANNOTATION), is_step)
    if len(steps):
        kind[(kind == pointwise) & inside(trace, links.launch, steps)] = optimizer
    return kind.astype(np.int8)


def _on_communication_streams(
    trace: Trace, links: Links, event_class: NDArray[np.int8], by: NDArray[np.int8]
) -> tuple[Mask, tuple[int, ...]]:
    """Unnamed kernels on streams whose named kernels are communication, for at least as long as the unnamed ones.

    A stream that shares its work with compute says nothing, nor does one where the unnamed kernels prevail; and where
    the device has only one stream in use there is no dedicated one.
    """
    streams, durations = trace.stream[links.rows], trace.duration_ns[links.rows]
    hinted = []
    unnamed = by == By.UNCLASSIFIED
    of_stream = dict(places_by(streams))
    for stream in np.unique(streams[unnamed & (streams != ABSENT)]).tolist() if len(of_stream) > 1 else ():
        kernels = of_stream[stream][event_class[of_stream[stream]] != EventClass.COPY]
        is_open, of_class, took = unnamed[kernels], event_class[kernels], durations[kernels]
        communication = int(took[of_class == EventClass.COMMUNICATION].sum())
        open_ns = int(took[is_open].sum())
        compute = int(took[~is_open & (of_class == EventClass.COMPUTE)].sum())
        if communication >= open_ns and communication > 0 and communication >= _HINT_SHARE * (communication + compute):
            hinted.append(int(stream))
    return unnamed & np.isin(streams, hinted), tuple(hinted)
