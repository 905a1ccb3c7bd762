"""Time of the operators of one line without the operators they contain."""

from dataclasses import dataclass

import numpy as np

from traces.linking import NONE, enclosing
from traces.trace import Ints
from traces.xplane.space import Line


@dataclass(frozen=True, slots=True, eq=False)
class OwnTime:
    """Events of a line by begin, the longer first, and what is left of each between the events inside it.

    pieces   rows (begin_ps, end_ps, index of the event); they do not overlap where the line's events only nest
    own_ps   sum of the pieces of each event
    """

    line: Line
    pieces: Ints
    own_ps: Ints


def own_time(line: Line) -> OwnTime:
    """Nest the events of a line (a loop holds its body, a call its callee)."""
    line = line.take(np.lexsort((-line.duration_ps, line.begin_ps)))
    begin, end = line.begin_ps, line.end_ps
    parent = enclosing(begin, end)
    inner = np.flatnonzero(parent != NONE)
    leaves = np.setdiff1d(np.arange(len(line)), parent[inner])
    pieces = np.concatenate((_rows(begin[leaves], end[leaves], leaves), *_around(begin, end, parent, inner)))
    pieces = pieces[pieces[:, 1] > pieces[:, 0]]
    own = np.zeros(len(line), dtype=np.int64)
    np.add.at(own, pieces[:, 2], pieces[:, 1] - pieces[:, 0])
    return OwnTime(line, pieces, own)


def _around(begin: Ints, end: Ints, parent: Ints, inner: Ints) -> tuple[Ints, ...]:
    """Pieces of the events that contain others: before each event inside, and after the last one.

    Events inside one parent come one after the other, because of two that overlap the later lies inside the earlier.
    """
    if not len(inner):
        return ()
    inside = inner[np.argsort(parent[inner], kind="stable")]
    owner = parent[inside]
    first = np.append(True, owner[1:] != owner[:-1])
    last = np.append(first[1:], True)
    from_ps = np.where(first, begin[owner], np.append(0, end[inside[:-1]]))
    return _rows(from_ps, begin[inside], owner), _rows(end[inside[last]], end[owner[last]], owner[last])


def _rows(begin: Ints, end: Ints, event: Ints) -> Ints:
    return np.stack((begin, end, event), axis=1)
