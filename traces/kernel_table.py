"""Device time by kind and by kernel name, and by what decided the class; host operators where there is no device."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from projector.breakdown import OperatorKind
from traces.kernel_names import host_communication_of, kind_of_operator
from traces.linking import NONE, enclosing
from traces.naming import KINDS, By, Classified, EventClass
from traces.summary_types import (
    ClassificationTime,
    ClassifiedBy,
    KernelClassTime,
    KernelTime,
)
from traces.summary_types import (
    EventClass as EventClassName,
)
from traces.trace import Category, Ints, Trace

_BY_NAMES: dict[int, ClassifiedBy] = {
    By.CATEGORY: "category",
    By.COLLECTIVE_ARGS: "collective_args",
    By.ENCLOSING_OP: "enclosing_op",
    By.NAME_RULE: "name_rule",
    By.STREAM_HINT: "stream_hint",
    By.UNCLASSIFIED: "unclassified",
}
_CLASS_NAMES: dict[int, EventClassName] = {
    EventClass.COMPUTE: "compute",
    EventClass.COMMUNICATION: "communication",
    EventClass.COPY: "copy",
}
Kind = OperatorKind | Literal["communication", "copy"]

_LONGEST_SHOWN = 4096


@dataclass(slots=True)
class _Sum:
    count: int = 0
    total_ns: int = 0

    def add(self, count: int, total_ns: int) -> None:
        self.count += count
        self.total_ns += total_ns


@dataclass(slots=True)
class KernelTable:
    """Sums over events; tables of several ranks add up."""

    by_name: dict[tuple[str, Kind], _Sum] = field(default_factory=dict)
    by_reason: dict[tuple[EventClassName, ClassifiedBy], _Sum] = field(default_factory=dict)

    def add(self, name: str, kind: Kind, by: ClassifiedBy, count: int, total_ns: int) -> None:
        """Count events of one name, kind and reason."""
        event_class: EventClassName = kind if kind == "communication" or kind == "copy" else "compute"
        self.by_name.setdefault((name, kind), _Sum()).add(count, total_ns)
        self.by_reason.setdefault((event_class, by), _Sum()).add(count, total_ns)

    def kernel_classes(self) -> tuple[KernelClassTime, ...]:
        """Computation by kind, the costliest first."""
        sums: dict[OperatorKind, _Sum] = {}
        for (_, kind), one in self.by_name.items():
            if kind != "communication" and kind != "copy":
                sums.setdefault(kind, _Sum()).add(one.count, one.total_ns)
        ordered = sorted(sums.items(), key=lambda item: (-item[1].total_ns, item[0]))
        return tuple(KernelClassTime(kind=kind, count=one.count, total_ns=one.total_ns) for kind, one in ordered)

    def top_kernels(self, count: int) -> tuple[KernelTime, ...]:
        """The costliest names."""
        ordered = sorted(self.by_name.items(), key=lambda item: (-item[1].total_ns, item[0]))
        return tuple(
            KernelTime(name=_shown(name), kind=kind, count=one.count, total_ns=one.total_ns)
            for (name, kind), one in ordered[:count]
        )

    def classification(self) -> tuple[ClassificationTime, ...]:
        """Time by class and what decided it."""
        return tuple(
            ClassificationTime(event_class=event_class, by=by, count=one.count, total_ns=one.total_ns)
            for (event_class, by), one in sorted(self.by_reason.items())
        )


def add_device_events(table: KernelTable, trace: Trace, classified: Classified) -> None:
    """Every kernel, copy and memset at its full duration: overlapping ones count twice."""
    rows = classified.links.rows
    keys = np.stack((trace.name_id[rows], classified.event_class, classified.by, classified.kind))
    groups, group_of, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    totals = np.zeros(len(counts), dtype=np.int64)
    np.add.at(totals, group_of.ravel(), trace.duration_ns[rows])
    for index, (name_id, event_class, by, kind) in enumerate(groups.T.tolist()):
        kind_name: Kind = KINDS[kind] if event_class == EventClass.COMPUTE else _apart(_CLASS_NAMES[event_class])
        table.add(trace.names[name_id], kind_name, _BY_NAMES[by], int(counts[index]), int(totals[index]))


def _apart(event_class: EventClassName) -> Literal["communication", "copy"]:
    return "communication" if event_class == "communication" else "copy"


def add_host_operators(table: KernelTable, trace: Trace) -> None:
    """Every host operator at its own time: without the operators it called."""
    rows = trace.rows(Category.CPU_OP, Category.ANNOTATION)
    own_ns = _own_time(trace, rows)
    is_operator = trace.category[rows] == Category.CPU_OP
    for name_id in np.unique(trace.name_id[rows]):
        name = trace.names[name_id]
        communication = host_communication_of(name) is not None
        chosen = (trace.name_id[rows] == name_id) & (is_operator | communication)
        if chosen.any():
            known = kind_of_operator(name)
            kind: Kind = "communication" if communication else known or "other"
            by: ClassifiedBy = "name_rule" if communication or known else "unclassified"
            table.add(name, kind, by, int(chosen.sum()), int(own_ns[chosen].sum()))


def _own_time(trace: Trace, rows: Ints) -> Ints:
    """Duration of each host event less that of the operators directly inside it, never below 0."""
    own = trace.duration_ns[rows].copy()
    is_operator = trace.category[rows] == Category.CPU_OP
    for thread in np.unique(trace.thread[rows]):
        mine = np.flatnonzero(trace.thread[rows] == thread)
        parent = enclosing(trace.start_ns[rows[mine]], trace.end_ns[rows[mine]])
        inner = (parent != NONE) & is_operator[mine]
        np.subtract.at(own, mine[parent[inner]], trace.duration_ns[rows[mine[inner]]])
    return np.maximum(own, 0)


def merged(tables: Iterable[KernelTable]) -> KernelTable:
    """Sum of the tables of several ranks."""
    total = KernelTable()
    for table in tables:
        for name, one in table.by_name.items():
            total.by_name.setdefault(name, _Sum()).add(one.count, one.total_ns)
        for reason, one in table.by_reason.items():
            total.by_reason.setdefault(reason, _Sum()).add(one.count, one.total_ns)
    return total


def _shown(name: str) -> str:
    """A kernel name; of one longer than any compiler writes, its beginning and its length."""
    return name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}... ({len(name):,} characters)"
