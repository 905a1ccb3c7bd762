"""Columns that grow event by event at little cost, joined once at the end."""

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from traces.chrome.categories import ROW_GROUPS, Group
from traces.chrome.exact_time import DIGITS, exact_ns, plain_ns
from traces.chrome.fields import UNSTATED, whole
from traces.trace import ABSENT, Ints

_NARROW: Final = frozenset({"name", "thread"})
_COLUMNS: Final = {
    "name": ROW_GROUPS,
    "external_id": ROW_GROUPS,
    "record_id": (Group.OPS,),
    "thread": (Group.OPS, Group.CALLS),
    "correlation": (Group.CALLS, Group.DEVICE),
    "size": (Group.CALLS, Group.DEVICE),
    "device": (Group.DEVICE,),
    "stream": (Group.DEVICE,),
}
"""Columns of numbers, and the groups that have them."""
_READ_AT_ONCE: Final = 1 << 16


class Times:
    """A column of times in nanoseconds, read by the many from texts of decimal microseconds.

    faults  row -> its text, where that is no number; the column has 0 there
    """

    def __init__(self) -> None:
        self.faults: dict[int, bytes] = {}
        self._parts: list[Ints] = []
        self._read = 0
        self._joined: list[bytes] = []
        self._waiting = 0

    def extend(self, texts: Sequence[Raw]) -> None:
        """Add rows."""
        joined = b",".join(texts)
        if joined.translate(None, DIGITS):  # a text with other characters may hold a comma of its own
            self._flush()
            self._add([bytes(text) for text in texts])
            return
        self._joined.append(joined)
        self._waiting += len(texts)
        if self._waiting >= _READ_AT_ONCE:
            self._flush()

    def column(self) -> Ints:
        """All rows so far; the parts it was made of are given up."""
        self._flush()
        self._parts = [np.concatenate(self._parts)] if self._parts else [np.empty(0, dtype=np.int64)]
        return self._parts.pop()

    def _flush(self) -> None:
        if not self._waiting:
            return
        joined = b",".join(self._joined)
        values = plain_ns(joined, self._waiting)
        self._joined, self._waiting = [], 0
        if values is None:
            self._add(joined.split(b","))
        else:
            self._append(values)

    def _add(self, texts: list[bytes]) -> None:
        values, readable = exact_ns(texts)
        self.faults.update((self._read + row, texts[row]) for row in np.flatnonzero(~readable).tolist())
        self._append(values)

    def _append(self, values: Ints) -> None:
        self._parts.append(values)
        self._read += len(values)


class Staging:
    """One table for each group of events; a column that a group lacks is ABSENT there.

    Rows of a group keep the order of the file. Between groups it is of no consequence, since a group holds whole
    categories, and rows are sorted by start, duration and category in the end.
    """

    def __init__(self) -> None:
        self.length: Counter[Group] = Counter()
        self.starts = {group: Times() for group in ROW_GROUPS}
        self.durations = {group: Times() for group in ROW_GROUPS}
        self.categories = {group: bytearray() for group in ROW_GROUPS}
        self._numbers = {
            name: {group: array("i" if name in _NARROW else "q") for group in groups}
            for name, groups in _COLUMNS.items()
        }

    def extend(self, group: Group, name: str, values: list[Any]) -> None:
        """Add numbers to a column however they are written: UNSTATED for None, ABSENT for what is no whole number."""
        column = self._numbers[name][group]
        try:
            column.fromlist(values)  # refuses what is no integer
        except (TypeError, OverflowError):
            column.extend(UNSTATED if value is None else whole(value) for value in values)

    def first_row(self, group: Group) -> int:
        """Where the rows of a group begin once all are joined."""
        return sum(self.length[one] for one in ROW_GROUPS if one < group)

    def take(self, name: str, place: Ints | None = None, *, nothing: int = UNSTATED) -> Ints:
        """One column over all groups, ABSENT where UNSTATED or `nothing`. It is given up here.

        place: where each row goes, ABSENT where it is dropped; in the order of `first_row` where None.
        """
        columns = self._numbers.pop(name)
        length = self.length.total() if place is None else np.count_nonzero(place != ABSENT)
        taken = np.full(length, ABSENT, dtype=np.int64)
        for group in _COLUMNS[name]:
            column = columns.pop(group)
            part = np.frombuffer(column, dtype=column.typecode)
            rows = slice(self.first_row(group), self.first_row(group) + len(part))
            if place is None:
                taken[rows] = part
            else:
                kept = place[rows] != ABSENT
                taken[place[rows][kept]] = part[kept]
        taken[(taken == UNSTATED) | (taken == nothing)] = ABSENT
        return taken

    def take_times(self, columns: dict[Group, Times]) -> tuple[Ints, dict[int, bytes]]:
        """Starts or durations over all groups, and their faults by row. They are given up here."""
        read = {group: columns.pop(group) for group in ROW_GROUPS}
        joined = np.concatenate([times.column() for times in read.values()])
        faults = {
            self.first_row(group) + row: text for group, times in read.items() for row, text in times.faults.items()
        }
        return joined, faults

    def take_categories(self) -> NDArray[np.int8]:
        """Categories over all groups."""
        return np.frombuffer(bytearray().join(self.categories.pop(group) for group in ROW_GROUPS), dtype=np.int8)
