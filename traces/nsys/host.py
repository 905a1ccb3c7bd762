"""What the host did: calls of the CUDA runtime and driver, and NVTX ranges."""

import re
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from traces.nsys.database import NO_NUMBER, Database, Row
from traces.nsys.device import absent_for_none, name_ids, processes
from traces.nsys.events import Events, Names, events, joined, with_usable_times
from traces.nsys.ranges import inputs_of, told
from traces.nsys.schema import find_table
from traces.trace import ABSENT, Category, Ints, OpInputs

NVTX: Final = "NVTX_EVENTS"
CALLS: Final = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")

# ENUM_NSYS_EVENT_TYPE: push/pop and start/end ranges, of the program and of an imported NVTX text file
_PUSH_POP: Final = (59, 70)
_START_END: Final = (60, 71)
_DOMAIN_CREATED: Final = 75
_MARK: Final = (34, 65)

_NUMBERS: Final = ("start", "end", "eventType", "globalTid", "domainId", "textId")
_DEFAULT_DOMAINS: Final = (0, NO_NUMBER)

_API_VERSION: Final = re.compile(r"(?:_ptsz|_ptds)?_v\d{3,6}(?:_ptsz|_ptds)?$")
_APART: Final = 1 << 62
"""Bit that sets the ranges that may overlap others of their thread apart from it."""


@dataclass(slots=True)
class Ranges:
    """Ranges, and what their columns `inputs` and `payload` refer to: shapes of operators, payloads of calls."""

    events: Events
    inputs: list[OpInputs]
    payloads: list[bytes]
    marks: int


def calls_of(db: Database, names: Names, warnings: list[str]) -> Events:
    """Calls of the CUDA API, on the thread that made them."""
    parts = []
    for plain in CALLS:
        table = db.numbers(find_table(db, plain, warnings), ("start", "end", "globalTid", "correlationId", "nameId"))
        start, end, thread, correlation, text = table.T
        found = name_ids(db, text, names, "CUDA API calls", warnings)
        parts.append(
            events(
                start,
                end,
                Category.RUNTIME,
                _unversioned(found, names),
                processes(thread),
                thread=absent_for_none(thread),
                correlation=absent_for_none(correlation, 0),
            )
        )
    return with_usable_times(joined(parts), "CUDA API calls", warnings)


def _unversioned(ids: Ints, names: Names) -> Ints:
    """Names of calls without the version of the API they are exported under: cudaLaunchKernel_v7000."""
    distinct, place = np.unique(ids, return_inverse=True)
    all_names = list(names.ids)
    plain = [names.id(_API_VERSION.sub("", all_names[one])) for one in distinct.tolist()]
    found: Ints = np.array(plain, dtype=np.int64)[place.ravel()]
    return found


def ranges_of(db: Database, names: Names, warnings: list[str]) -> Ranges:
    """NVTX ranges; marks are counted only. Ranges that were still open when the profile ended are left out, aloud."""
    table = find_table(db, NVTX, warnings)
    reading = _Reading(db, names)
    for rows in db.records(table, _NUMBERS, ("text", "binaryData")):
        reading.add(rows)
    found = reading.ranges()
    if reading.still_open:
        warnings.append(f"{reading.still_open:,} NVTX ranges have no end (the profile ended before) and were left out")
    if reading.nameless:
        warnings.append(f"{reading.nameless:,} NVTX ranges have no name in the file")
    found.events = with_usable_times(found.events, "NVTX ranges", warnings)
    return found


@dataclass(slots=True)
class _Reading:
    """Ranges while they are read. Names in a domain wait for the end: the row that names it may be the last."""

    db: Database
    names: Names
    parts: list[Events] = field(default_factory=list)
    inputs: list[OpInputs] = field(default_factory=list)
    input_ids: dict[str, int] = field(default_factory=dict)
    payloads: list[bytes] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    domains: dict[tuple[int, int], str] = field(default_factory=dict)
    waiting: dict[tuple[int, int, str], int] = field(default_factory=dict)
    marks: int = 0
    still_open: int = 0
    nameless: int = 0

    def add(self, rows: list[Row]) -> None:
        """Read a block of rows of the table."""
        table = np.array([row[: len(_NUMBERS)] for row in rows], dtype=np.int64)
        kind, end = table[:, 2], table[:, 1]
        self._look_up(rows)
        for index in np.flatnonzero(kind == _DOMAIN_CREATED).tolist():
            self.domains[int(table[index, 3]) >> 24, int(table[index, 4])] = self._text(rows[index])
        self.marks += int(np.isin(kind, _MARK).sum())
        is_range = np.isin(kind, (*_PUSH_POP, *_START_END))
        self.still_open += int((is_range & (end == NO_NUMBER)).sum())
        chosen = np.flatnonzero(is_range & (end != NO_NUMBER))
        if not len(chosen):
            return
        said = np.array([self._range(rows[index]) for index in chosen.tolist()], dtype=np.int64)
        table = table[chosen]
        thread = absent_for_none(table[:, 3])
        apart = np.isin(table[:, 2], _START_END) & (thread != ABSENT)
        self.parts.append(
            events(
                table[:, 0],
                table[:, 1],
                said[:, 1],
                said[:, 0],
                processes(table[:, 3]),
                thread=np.where(apart, thread ^ _APART, thread),
                inputs=said[:, 2],
                payload=said[:, 3],
            )
        )

    def ranges(self) -> Ranges:
        """All of them, with the names that waited for those of their domains."""
        found = joined(self.parts)
        renamed = np.arange(len(self.waiting), dtype=np.int64)
        for (process, domain, text), place in self.waiting.items():
            renamed[place] = self.names.id(told(text, self.domains.get((process, domain), "")).name)
        waits = found.name < 0
        name = found.name.copy()
        name[waits] = renamed[-1 - found.name[waits]]
        return Ranges(replace(found, name=name), self.inputs, self.payloads, self.marks)

    def _look_up(self, rows: list[Row]) -> None:
        wanted = {row[5] for row in rows if row[6] is None and row[5] != NO_NUMBER and row[5] not in self.texts}
        if wanted:
            self.texts.update(self.db.texts("StringIds", "id", "value", sorted(wanted)))

    def _text(self, row: Row) -> str:
        text = self.texts.get(row[5], "") if row[6] is None else self.db.text(row[6])
        self.nameless += not text and row[2] != _DOMAIN_CREATED
        return text

    def _range(self, row: Row) -> tuple[int, int, int, int]:
        """Name, category, inputs and payload of one range; a name that waits is -1 - its place."""
        text = self._text(row)
        payload = ABSENT
        if row[7]:
            payload = len(self.payloads)
            self.payloads.append(row[7])
        if row[4] not in _DEFAULT_DOMAINS:
            place = self.waiting.setdefault((row[3] >> 24, row[4], text), len(self.waiting))
            return -1 - place, Category.ANNOTATION, ABSENT, payload
        name, category, sizes = told(text or "(no name)", "")
        return self.names.id(name), category, self._inputs(sizes) if sizes else ABSENT, payload

    def _inputs(self, sizes: str) -> int:
        known = self.input_ids.get(sizes)
        if known is None:
            found = inputs_of(sizes)
            known = self.input_ids[sizes] = ABSENT if found is None else len(self.inputs)
            if found is not None:
                self.inputs.append(found)
        return known
