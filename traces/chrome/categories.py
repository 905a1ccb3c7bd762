"""What an event is, told by its phase and category alone: which rows it joins, or under which name it is counted."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from traces.remembered import remembered
from traces.trace import Category

ON_DEVICE: Final = frozenset({Category.KERNEL, Category.MEMCPY, Category.MEMSET, Category.DEVICE_ANNOTATION})

CATEGORIES: Final[Mapping[str, Category]] = {
    "kernel": Category.KERNEL,
    "concurrent_kernel": Category.KERNEL,
    "gpu_memcpy": Category.MEMCPY,
    "memcpy": Category.MEMCPY,
    "gpu_memset": Category.MEMSET,
    "memset": Category.MEMSET,
    "cpu_op": Category.CPU_OP,
    "operator": Category.CPU_OP,
    "user_annotation": Category.ANNOTATION,
    "gpu_user_annotation": Category.DEVICE_ANNOTATION,
    "cuda_runtime": Category.RUNTIME,
    "cuda_driver": Category.RUNTIME,
    "runtime": Category.RUNTIME,
    "xpu_runtime": Category.RUNTIME,
    "xpu_driver": Category.RUNTIME,
    "mtia_runtime": Category.RUNTIME,
    "privateuse1_runtime": Category.RUNTIME,
}
"""Categories that become rows, in lower case."""

NO_WORK: Final = frozenset({"python_function", "overhead", "trace", "cuda_sync", "cuda_profiler_range"})
"""Timed events that are no work of a host or device: stacks, the profiler itself, waits."""

INSTANTS: Final = ("i", "I")

_PHASES: Final = {
    "M": "metadata",
    "i": "instant",
    "I": "instant",
    "C": "counter",
    "s": "flow",
    "t": "flow",
    "f": "flow",
}
_KINDS_CACHED: Final = 4_096


class Group(IntEnum):
    """Events that are decoded alike. Those of the first three become rows; memory reports leave their highest value."""

    OPS = 0
    CALLS = 1
    DEVICE = 2
    MEMORY = 3
    NONE = 4


ROW_GROUPS: Final = (Group.OPS, Group.CALLS, Group.DEVICE)


class Kind(NamedTuple):
    """What becomes of the events of one phase and category.

    counted   name under which they are counted
    category  of their rows; None where they become none
    unknown   timed events of a category that is not known
    unpaired  begin and end events of a category that would become rows
    """

    group: Group
    counted: str
    category: Category | None = None
    unknown: bool = False
    unpaired: bool = False


@remembered(_KINDS_CACHED)
def kind_of(phase: str, category: str) -> Kind:
    """The kind of an event; older files write categories with a capital."""
    lower = category.lower()
    known = CATEGORIES.get(lower)
    counted = category or _PHASES.get(phase, "uncategorised")
    if known is not None and phase == "X":
        return Kind(_row_group(known), counted, known)
    return Kind(
        Group.MEMORY if phase in INSTANTS and lower not in NO_WORK else Group.NONE,
        counted,
        unknown=phase == "X" and bool(category) and lower not in NO_WORK,
        unpaired=phase in ("B", "E") and known is not None,
    )


def _row_group(category: Category) -> Group:
    if category in ON_DEVICE:
        return Group.DEVICE
    return Group.CALLS if category is Category.RUNTIME else Group.OPS
