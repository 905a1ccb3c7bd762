"""Durations of device events that cannot be right: told, and not left to decide every share.

Profilers at times write an end that is not the event's own: seconds, in a trace of milliseconds. What calls of their
own launch on one stream runs one after another, so an event that lasts past the start of many later ones of its stream
has such a duration. It is cut to the start of the next event there, which is the most it can have taken.

Told and left as they are: kernels of one graph, which may run side by side under one stream number, so that only events
of another launch speak against one; events whose launch is not stated; and communication, which some runtimes put on a
hardware queue together with compute. So is an event beside which all others together are nothing, and that nothing
speaks against.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from traces.grouping import places_by
from traces.naming import Classified, EventClass
from traces.trace import ABSENT, Ints, Mask, Trace

_QUEUES: Final = ("kineto", "nsys")
"""Formats whose streams are queues; lines of an XLA profile hold operators inside others, and several in flight."""
_OVERRUN_FROM_EVENTS: Final = 8
_LOOKED_AT: Final = 64
_ALONE_FROM_EVENTS: Final = 50
_ALONE_FROM_SHARE: Final = 0.99
_ALONE_FROM_NS: Final = 1_000_000_000
_SHOWN: Final = 4
_NAME_SHOWN: Final = 80


@dataclass(slots=True)
class _Found:
    """Row -> believable duration, the first few sentences, and for how many events there is none."""

    cut: dict[int, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    more: int = 0

    def tell(self, said: str) -> None:
        """Keep a sentence, or count it."""
        if len(self.told) < _SHOWN:
            self.told.append(said)
        else:
            self.more += 1


def cut_overruns(trace: Trace, classified: Classified) -> tuple[Trace, tuple[str, ...]]:
    """The trace with such durations cut, and a sentence for each event whose duration is doubtful."""
    rows = classified.links.rows
    if trace.format not in _QUEUES or not len(rows):
        return trace, ()
    may_be_cut = classified.event_class != EventClass.COMMUNICATION
    found = _Found()
    for stream, places in places_by(trace.stream[rows]):
        if stream != ABSENT and len(places) > _OVERRUN_FROM_EVENTS:
            _look_at_stream(trace, stream, rows[places], may_be_cut[places], found)
    if found.cut:
        duration_ns = trace.duration_ns.copy()
        duration_ns[list(found.cut)] = list(found.cut.values())
        trace = replace(trace, duration_ns=duration_ns)
    if found.more:
        found.told.append(f"{found.more:,} more events last past many later ones of their stream")
    return trace, (*found.told, *_alone(trace, rows))


def _look_at_stream(trace: Trace, stream: int, rows: Ints, may_be_cut: Mask, found: _Found) -> None:
    """The events of one stream that last past the start of many later ones."""
    starts = trace.start_ns[rows]
    begun_before_end = np.searchsorted(starts, starts + trace.duration_ns[rows], side="left")
    later = begun_before_end - np.arange(1, len(rows) + 1)
    for place in np.flatnonzero(later >= _OVERRUN_FROM_EVENTS).tolist():
        row, others = int(rows[place]), rows[place + 1 : min(begun_before_end[place], place + 1 + _LOOKED_AT)]
        launches = trace.correlation[others]
        own = trace.correlation[row]
        if own != ABSENT and not (launches != own).any():
            continue
        said = (
            f"{_shown(trace, row)} lasts {trace.duration_ns[row]:,} ns on stream {stream}, past {later[place]:,} later "
            "events of that stream"
        )
        apart = (launches != own) & (launches != ABSENT) & (own != ABSENT)
        following = int(np.searchsorted(starts, starts[place], side="right"))
        if may_be_cut[place] and apart.sum() >= _OVERRUN_FROM_EVENTS and following < len(rows):
            found.cut[row] = int(starts[following] - starts[place])
            found.tell(f"{said}, which cannot be: counted as {found.cut[row]:,} ns, until the next begins")
        else:
            found.tell(f"{said}; its duration is doubtful")


def _alone(trace: Trace, rows: Ints) -> tuple[str, ...]:
    """An event beside which all others together are nothing."""
    if len(rows) < _ALONE_FROM_EVENTS:
        return ()
    durations = trace.duration_ns[rows]
    longest, total = int(durations.argmax()), float(durations.sum())
    if durations[longest] < max(_ALONE_FROM_NS, _ALONE_FROM_SHARE * total):
        return ()
    return (
        f"{_shown(trace, int(rows[longest]))} alone is {durations[longest] / total:.2%} of the device's time "
        f"({durations[longest]:,} ns): a hang, or a wrong duration, decides every share",
    )


def _shown(trace: Trace, row: int) -> str:
    return ascii(trace.name(row)[:_NAME_SHOWN])
