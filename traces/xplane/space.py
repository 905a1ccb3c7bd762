"""A profile as columns: planes (a device, the host), their lines (a stream, a thread, a core's op line), their events.

Times are integer picoseconds. All text is the profiler's and untrusted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from traces.trace import Ints, Mask

LONGEST_PS = 86_400 * 10**12
"""A day; nothing a profile records lasts longer."""
LATEST_PS = 30 * LONGEST_PS
"""No event of a profile begins later, or so long before its origin."""

_LEAST_FIGURE, _LARGEST_FIGURE = 1e-6, 1e24

NO_TEXT = -1
"""Marks an event without the text asked for."""


class Span(NamedTuple):
    """Where the bytes of a value lie in the data of the profile."""

    start: int
    end: int


StatValue = int | float | str | Span


@dataclass(frozen=True, slots=True)
class Kind:
    """What events of one metadata id have in common: names and the stats that are the same for all (cost, category)."""

    name: str
    display_name: str = ""
    stats: Mapping[str, StatValue] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The short name where there is one."""
        return self.display_name or self.name

    def text(self, stat: str) -> str:
        """A stat that is text; "" where it is absent or of another type."""
        value = self.stats.get(stat)
        return value if isinstance(value, str) else ""

    def count(self, stat: str) -> int | None:
        """A stat that is a number of something; None where it is absent, negative or no whole number."""
        value = self.stats.get(stat)
        return value if isinstance(value, int) and value >= 0 else None

    def identity(self, stat: str) -> int:
        """A stat that tells things apart; 0 where it is absent."""
        value = self.stats.get(stat)
        return value if isinstance(value, int) else 0


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """One text for each event: index into `values`, or NO_TEXT."""

    ids: Ints
    values: tuple[str, ...]

    def take(self, events: Ints) -> "Texts":
        """The texts of the given events."""
        return Texts(self.ids[events], self.values)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Events of one line; one entry an event in every column.

    kind         index into the plane's kinds
    begin_ps     from the line's own start `timestamp_ns` while decoding; from `Space.origin_ns` afterwards
    duration_ps  0 for an instant
    ints, texts  stats of the events by name; ints are `ABSENT` where an event has none
    """

    id: int
    name: str
    timestamp_ns: int
    kind: Ints
    begin_ps: Ints
    duration_ps: Ints
    ints: Mapping[str, Ints] = field(default_factory=dict)
    texts: Mapping[str, Texts] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def end_ps(self) -> Ints:
        """End of every event."""
        return self.begin_ps + self.duration_ps

    def texts_named(self, *names: str) -> list[Texts]:
        """Those of the named texts that the line has."""
        return [self.texts[name] for name in names if name in self.texts]

    def moved(self, begin_ps: Ints, duration_ps: Ints) -> "Line":
        """The same events at other times."""
        return replace(self, begin_ps=begin_ps, duration_ps=duration_ps)

    def where(self, mask: Mask) -> "Line":
        """The events the mask selects."""
        return self.take(np.flatnonzero(mask))

    def take(self, events: Ints) -> "Line":
        """The events of the given indices, in that order."""
        return Line(
            id=self.id,
            name=self.name,
            timestamp_ns=self.timestamp_ns,
            kind=self.kind[events],
            begin_ps=self.begin_ps[events],
            duration_ps=self.duration_ps[events],
            ints={name: values[events] for name, values in self.ints.items()},
            texts={name: texts.take(events) for name, texts in self.texts.items()},
        )


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """One device, host or source of metadata."""

    id: int
    name: str
    stats: Mapping[str, StatValue]
    kinds: tuple[Kind, ...]
    lines: tuple[Line, ...]

    def line(self, name: str) -> Line | None:
        """The events of the lines of one name together; None where there are none."""
        named = [line for line in self.lines if line.name == name and len(line)]
        if len(named) < 2:
            return named[0] if named else None
        return join(named)

    def number(self, stat: str) -> float | None:
        """A positive figure among the plane's stats; None where it is absent, or beyond what any device has."""
        value = self.stats.get(stat)
        return float(value) if isinstance(value, (int, float)) and _LEAST_FIGURE <= value <= _LARGEST_FIGURE else None

    def text(self, stat: str) -> str:
        """A text among the plane's stats; "" where it is absent."""
        value = self.stats.get(stat)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """One file. `data` is what `Span`s point into; `producer` names the container (xplane or jax_chrome)."""

    producer: str
    file: str
    planes: tuple[Plane, ...]
    origin_ns: int = 0
    hostnames: tuple[str, ...] = ()
    data: bytes | bytearray = b""
    warnings: tuple[str, ...] = ()


def join(lines: list[Line]) -> Line:
    """One line of the events of several that have one name; a stat that only some have is absent in the rest."""
    first = lines[0]
    ints = {name for line in lines for name in line.ints}
    texts = {name for line in lines for name in line.texts}
    return Line(
        id=first.id,
        name=first.name,
        timestamp_ns=first.timestamp_ns,
        kind=np.concatenate([line.kind for line in lines]),
        begin_ps=np.concatenate([line.begin_ps for line in lines]),
        duration_ps=np.concatenate([line.duration_ps for line in lines]),
        ints={name: np.concatenate([line.ints.get(name, np.full(len(line), -1)) for line in lines]) for name in ints},
        texts={name: join_texts([(line.texts.get(name), len(line)) for line in lines]) for name in texts},
    )


def join_texts(parts: list[tuple[Texts | None, int]]) -> Texts:
    """Texts of several pieces, each given with its number of events, with one list of values."""
    place: dict[str, int] = {}
    columns = []
    for texts, events in parts:
        if texts is None:
            columns.append(np.full(events, NO_TEXT, dtype=np.int64))
            continue
        moved = np.array([place.setdefault(value, len(place)) for value in texts.values] + [NO_TEXT], dtype=np.int64)
        columns.append(moved[texts.ids])
    return Texts(np.concatenate(columns), tuple(place))
