"""Device time by kind and by kernel name, and by what decided the class; host operators where there is no device."""

import pickle
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import OperatorKind
from traces.grouping import places_by
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

MOST_NAMES = 4096
"""Names a rank's table keeps; a profile with more has the others as one line, so that no file decides its size."""
OTHERS = f"(kernels beyond the {MOST_NAMES:,} costliest names of a rank)"

_LONGEST_SHOWN = 4096
_OPERATOR_SHOWN = 120
_MOST_REASONS = 32


@dataclass(slots=True)
class _Sum:
    count: int = 0
    total_ns: int = 0

    def add(self, count: int, total_ns: int) -> None:
        self.count += count
        self.total_ns += total_ns


@dataclass(slots=True)
class KernelTable:
    """Sums over events; tables of several ranks add up. by_rule: time of a name by the rule that decided it."""

    by_name: dict[tuple[str, Kind], _Sum] = field(default_factory=dict)
    by_reason: dict[tuple[EventClassName, ClassifiedBy], _Sum] = field(default_factory=dict)
    by_rule: dict[tuple[str, Kind], Counter[str]] = field(default_factory=dict)

    def add(self, name: str, kind: Kind, by: ClassifiedBy, count: int, total_ns: int, rule: str) -> None:
        """Count events of one name, kind and reason; `rule` says more exactly what decided."""
        event_class: EventClassName = kind if kind == "communication" or kind == "copy" else "compute"
        self.by_name.setdefault((name, kind), _Sum()).add(count, total_ns)
        self.by_reason.setdefault((event_class, by), _Sum()).add(count, total_ns)
        rules = self.by_rule.setdefault((name, kind), Counter())
        rules[rule if rule in rules or len(rules) < _MOST_REASONS else "various"] += total_ns

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
            KernelTime(
                name=_shown(name), kind=kind, count=one.count, total_ns=one.total_ns, rule=self._rule(name, kind)
            )
            for (name, kind), one in ordered[:count]
        )

    def _rule(self, name: str, kind: Kind) -> str:
        """What decided most of the time of one name, and how many other reasons there are."""
        ordered = sorted(self.by_rule[name, kind].items(), key=lambda item: (-item[1], item[0]))
        others = f" and {len(ordered) - 1} more" if len(ordered) > 1 else ""
        return ordered[0][0] + others

    def classification(self) -> tuple[ClassificationTime, ...]:
        """Time by class and what decided it."""
        return tuple(
            ClassificationTime(event_class=event_class, by=by, count=one.count, total_ns=one.total_ns)
            for (event_class, by), one in sorted(self.by_reason.items())
        )


def add_device_events(table: KernelTable, trace: Trace, classified: Classified) -> None:
    """Every kernel, copy and memset at its full duration: overlapping ones count twice."""
    rows = classified.links.rows
    by_operator = (classified.by == By.ENCLOSING_OP) & (classified.links.operator != NONE)
    operators = np.where(by_operator, trace.name_id[classified.links.operator], NONE)
    columns = (trace.name_id[rows], classified.event_class, classified.by, classified.kind, operators)
    firsts, group_of, counts = _groups(columns)
    totals = np.zeros(len(counts), dtype=np.int64)
    np.add.at(totals, group_of, trace.duration_ns[rows])
    for group, first in enumerate(firsts):
        name_id, event_class, by, kind, operator = (int(column[first]) for column in columns)
        kind_name: Kind = KINDS[kind] if event_class == EventClass.COMPUTE else _apart(_CLASS_NAMES[event_class])
        name = trace.names[name_id]
        rule = _BY_NAMES[by]
        told = _told(trace, rule, name, kind_name, trace.names[operator] if operator != NONE else "")
        table.add(name, kind_name, rule, int(counts[group]), int(totals[group]), told)


def _groups(columns: tuple[NDArray[np.integer], ...]) -> tuple[Ints, Ints, Ints]:
    """Rows that agree in all columns: one row of each group, the group of each row, the size of each group."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        key = key * max(len(values), 1) + codes.ravel()
        _, key = np.unique(key, return_inverse=True)
        key = key.ravel()
    _, firsts, groups, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    return firsts, groups.ravel(), counts


def _told(trace: Trace, by: ClassifiedBy, name: str, kind: Kind, operator: str) -> str:
    """What decided, as `KernelTime.rule` words it."""
    if by == "enclosing_op":
        return f"enclosing_op {operator[:_OPERATOR_SHOWN]}"
    rule = trace.rules.of_kernel(name).rule
    if by != "name_rule" or rule is None:
        return by
    refined = kind not in ("communication", "copy", rule.meaning)
    return f"{rule.label}, {kind} by the operator around it" if refined else rule.label


def _apart(event_class: EventClassName) -> Literal["communication", "copy"]:
    return "communication" if event_class == "communication" else "copy"


def add_host_operators(table: KernelTable, trace: Trace) -> None:
    """Every host operator at its own time: without the operators it called."""
    rows = trace.rows(Category.CPU_OP, Category.ANNOTATION)
    own_ns = _own_time(trace, rows)
    is_operator = trace.category[rows] == Category.CPU_OP
    for name_id, places in places_by(trace.name_id[rows]):
        name = trace.names[name_id]
        communication = trace.rules.host_communication_of(name) is not None
        chosen = places if communication else places[is_operator[places]]
        if len(chosen):
            known = trace.rules.kind_of_operator(name)
            kind: Kind = "communication" if communication else known or "other"
            by: ClassifiedBy = "name_rule" if communication or known else "unclassified"
            rule = trace.rules.of_operator(name).rule
            told = rule.label if rule is not None else by
            table.add(name, kind, by, len(chosen), int(own_ns[chosen].sum()), told)


def _own_time(trace: Trace, rows: Ints) -> Ints:
    """Duration of each host event less that of the operators directly inside it, never below 0."""
    own = trace.duration_ns[rows].copy()
    is_operator = trace.category[rows] == Category.CPU_OP
    for _, mine in places_by(trace.thread[rows]):
        starts = trace.start_ns[rows[mine]]
        parent = enclosing(starts, starts + trace.duration_ns[rows[mine]])
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
        for name, rules in table.by_rule.items():
            total.by_rule.setdefault(name, Counter()).update(rules)
    return total


@dataclass(frozen=True, slots=True)
class PackedTable:
    """A KernelTable in a few kilobytes, to travel and to wait in until all ranks are there."""

    data: bytes


def packed(table: KernelTable) -> PackedTable:
    """The table with at most MOST_NAMES names, and one line a kind for the others (`OTHERS`)."""
    ordered = sorted(table.by_name.items(), key=lambda item: (-item[1].total_ns, item[0]))
    kept = dict(ordered[:MOST_NAMES])
    rules = {key: table.by_rule[key] for key in kept}
    for (_, kind), one in ordered[MOST_NAMES:]:
        kept.setdefault((OTHERS, kind), _Sum()).add(one.count, one.total_ns)
        rules.setdefault((OTHERS, kind), Counter())["various"] += one.total_ns
    return PackedTable(zlib.compress(pickle.dumps(KernelTable(kept, table.by_reason, rules)), level=1))


def unpacked(table: PackedTable) -> KernelTable:
    """The table again."""
    found: KernelTable = pickle.loads(zlib.decompress(table.data))  # noqa: S301 - packed by this program
    return found


def _shown(name: str) -> str:
    """A kernel name; of one longer than any compiler writes, its beginning and its length."""
    return name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}... ({len(name):,} characters)"
