"""Events as columns, one entry each, until they are split into traces; and the names they bear."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from traces.trace import ABSENT, NOT_STATED, Category, Ints, Mask

DEVICE_CATEGORIES: Final = (int(Category.KERNEL), int(Category.MEMCPY), int(Category.MEMSET))
NS_PER_DAY: Final = 86_400 * 10**9

_LATEST_NS: Final = 2**62

Codes = NDArray[np.int8]
Indices = NDArray[np.int32]


@dataclass(slots=True)
class Names:
    """Every name once; ids count from 0."""

    ids: dict[str, int] = field(default_factory=dict)

    def id(self, name: str) -> int:
        """Id of one name."""
        return self.ids.setdefault(name, len(self.ids))


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Columns, one entry a row; `ABSENT` where a row has no such thing.

    name      id of its name
    process   what the serialised ids of its process and threads have in common (`global id >> 24`)
    thread    serialised id of the thread, ranges that may overlap on one thread apart
    kind      see `Trace.stated_kind`
    copy      index into `device.COPY_TEXTS`
    inputs    index into the operator inputs found with the ranges
    payload   index into the payloads found with the ranges
    """

    start_ns: Ints
    end_ns: Ints
    category: Codes
    name: Indices
    process: Ints
    thread: Ints
    device: Ints
    stream: Ints
    correlation: Ints
    size_bytes: Ints
    kind: Codes
    copy: Codes
    inputs: Indices
    payload: Indices

    def __len__(self) -> int:
        return len(self.start_ns)

    def take(self, rows: Ints | Mask) -> "Events":
        """The given rows."""
        return Events(*(getattr(self, one.name)[rows] for one in fields(self)))

    @property
    def on_device(self) -> Mask:
        """Which rows keep a device busy."""
        return np.isin(self.category, DEVICE_CATEGORIES)


def events(
    start_ns: Ints,
    end_ns: Ints,
    category: Category | Ints,
    name: Ints,
    process: Ints,
    *,
    thread: Ints | int = ABSENT,
    device: Ints | int = ABSENT,
    stream: Ints | int = ABSENT,
    correlation: Ints | int = ABSENT,
    size_bytes: Ints | int = ABSENT,
    kind: int = NOT_STATED,
    copy: Ints | int = ABSENT,
    inputs: Ints | int = ABSENT,
    payload: Ints | int = ABSENT,
) -> Events:
    """Events from columns; a single value holds for all of them."""
    count = len(start_ns)

    def column(values: Ints | int, kind_of_number: type[np.signedinteger[Any]]) -> NDArray[Any]:
        return np.broadcast_to(np.asarray(values, dtype=kind_of_number), count)

    return Events(
        start_ns=start_ns,
        end_ns=end_ns,
        category=column(category, np.int8),
        name=column(name, np.int32),
        process=process,
        thread=column(thread, np.int64),
        device=column(device, np.int64),
        stream=column(stream, np.int64),
        correlation=column(correlation, np.int64),
        size_bytes=column(size_bytes, np.int64),
        kind=column(kind, np.int8),
        copy=column(copy, np.int8),
        inputs=column(inputs, np.int32),
        payload=column(payload, np.int32),
    )


def joined(parts: Sequence[Events]) -> Events:
    """All events of several parts."""
    if not parts:
        return events(*(np.empty(0, dtype=np.int64) for _ in range(5)))
    return Events(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Events)))


def with_usable_times(found: Events, what: str, warnings: list[str]) -> Events:
    """The events whose times can be right, and a sentence for each reason why others cannot.

    An event may start so much as a day away from the middle one, and last a day.
    """
    start, end = found.start_ns, found.end_ns
    stated = (start > -_LATEST_NS) & (start < _LATEST_NS) & (end > -_LATEST_NS) & (end < _LATEST_NS)
    backwards = stated & (end < start)
    rest = stated & ~backwards
    long = rest & (end - start > NS_PER_DAY)
    far = np.zeros(len(found), dtype=np.bool_)
    if rest.any():
        middle = np.sort(start[rest])[int(rest.sum()) // 2]
        far = rest & ~long & (np.abs(start - middle) > NS_PER_DAY)
    reasons = (
        (~stated, "have no usable start or end"),
        (backwards, "end before they start"),
        (long, "last longer than a day"),
        (far, "start more than a day away from the others"),
    )
    for wrong, why in reasons:
        if wrong.any():
            warnings.append(f"{int(wrong.sum()):,} {what} {why} and were dropped")
    usable = rest & ~long & ~far
    return found if usable.all() else found.take(usable)
