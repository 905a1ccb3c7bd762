"""Copies and memsets by direction: how long, how much of it nothing hides, how many bytes."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, get_args

import numpy as np

from traces import intervals
from traces.intervals import Intervals
from traces.kernel_names import LONGEST_NAME
from traces.linking import NONE
from traces.measure_types import CopyDirection, CopyTime
from traces.naming import Classified, EventClass
from traces.remembered import remembered
from traces.shares import Cover, union_of
from traces.trace import ABSENT, Category, Ints, Trace

_NOTICEABLE: Final = 0.01
_DIRECTIONS: Final[tuple[CopyDirection, ...]] = get_args(CopyDirection)

# Spellings: Kineto "Memcpy HtoD (Pinned -> Device)", CUPTI CUDA_MEMCPY_KIND_HTOD and UVM_HTOD, Nsight "Host-to-Device",
# XPlane MemcpyH2D, HIP CopyHostToDevice and hipMemcpyHtoDAsync. An array (A) is device memory.
_SPELLED: Final[tuple[tuple[CopyDirection, str], ...]] = (
    ("memset", r"mem_?set|fill_?buffer"),
    ("peer", r"(?<![a-z])ptop|p2p|peer"),
    ("host_to_device", r"hto[da](?![a-z])|htodasync|h2d|host[- _]?to[- _]?(?:device|array)"),
    ("device_to_host", r"[da]toh(?![a-z])|dtohasync|d2h|(?:device|array)[- _]?to[- _]?host"),
    ("device_to_device", r"[da]to[da](?![a-z])|dtodasync|d2d|(?:device|array)[- _]?to[- _]?(?:device|array)"),
)
_PATTERNS: Final = tuple((direction, re.compile(spelling, re.IGNORECASE)) for direction, spelling in _SPELLED)
_PAGEABLE: Final = re.compile(r"pageable", re.IGNORECASE)


@remembered(16_384)
def direction_of(text: str) -> CopyDirection:
    """Direction a name, kind or call spells; "unknown" where it spells none."""
    text = text[:LONGEST_NAME]
    return next((direction for direction, pattern in _PATTERNS if pattern.search(text)), "unknown")


def copies(trace: Trace, classified: Classified, cover: Cover) -> tuple[CopyTime, ...]:
    """Copies of one device by direction, the costliest first.

    The direction is what the event's name says, else its stated kind, else the call that launched it: a copy that the
    runtime made with a kernel (__amd_rocclr_copyBuffer) shows it nowhere else. Copies of several directions may run at
    once, so their exposed parts can sum to more than the window's.
    """
    rows = classified.rows(EventClass.COPY)
    if not len(rows):
        return ()
    directions = _directions(trace, classified, rows)
    hiding = intervals.union(cover.compute, cover.communication)
    found = (
        _line(trace, rows[directions == at], direction, hiding)
        for at, direction in enumerate(_DIRECTIONS)
        if (directions == at).any()
    )
    return tuple(sorted(found, key=lambda line: (-line.total_ns, line.direction)))


def merged_copies(of_ranks: Iterable[Sequence[CopyTime]]) -> tuple[CopyTime, ...]:
    """Sums over the ranks, the costliest direction first; bytes are known where every rank knows them."""
    lines: dict[CopyDirection, list[CopyTime]] = {}
    for line in (line for lines_of_rank in of_ranks for line in lines_of_rank):
        lines.setdefault(line.direction, []).append(line)
    found = []
    for direction, same in lines.items():
        stated = [line.copied_bytes for line in same if line.copied_bytes is not None]
        found.append(
            CopyTime(
                direction=direction,
                count=sum(line.count for line in same),
                total_ns=sum(line.total_ns for line in same),
                exposed_ns=sum(line.exposed_ns for line in same),
                copied_bytes=sum(stated) if len(stated) == len(same) else None,
            )
        )
    return tuple(sorted(found, key=lambda line: (-line.total_ns, line.direction)))


def pageable_copies_told(trace: Trace, classified: Classified, cover: Cover) -> tuple[str, ...]:
    """A warning where copies between the device and pageable host memory take 1 % of the window or more.

    The driver stages such copies through its own buffer, the call blocks the host, and they run at a part of the link's
    bandwidth; pinned memory avoids all three.
    """
    rows = classified.rows(EventClass.COPY)
    named = np.fromiter((_PAGEABLE.search(name, 0, LONGEST_NAME) is not None for name in trace.names), np.bool_)
    rows = trace.named(rows, named)
    taken = union_of(trace, rows)
    window_ns = cover.end_ns - cover.start_ns
    if not len(taken) or intervals.length(taken) < _NOTICEABLE * window_ns:
        return ()
    exposed_ns = intervals.length(intervals.subtract(taken, intervals.union(cover.compute, cover.communication)))
    return (
        f"copies of pageable host memory ({len(rows):,}) take {intervals.length(taken):,} ns, "
        f"{intervals.length(taken) / window_ns:.1%} of the window, {exposed_ns:,} ns of it exposed: pinned memory "
        "would be faster and not block the host",
    )


def _directions(trace: Trace, classified: Classified, rows: Ints) -> Ints:
    """Index in `_DIRECTIONS` for each row."""
    unknown = _DIRECTIONS.index("unknown")
    by_name = np.full(len(trace.names), unknown, dtype=np.int64)
    for index in np.unique(trace.name_id[rows]).tolist():
        by_name[index] = _DIRECTIONS.index(direction_of(trace.names[index]))
    found = by_name[trace.name_id[rows]]
    found[trace.category[rows] == Category.MEMSET] = _DIRECTIONS.index("memset")
    launch = classified.links.launch[np.searchsorted(classified.links.rows, rows)]
    for position in np.flatnonzero(found == unknown).tolist():
        direction = direction_of(trace.copy_kinds.get(int(rows[position]), ""))
        if direction == "unknown" and launch[position] != NONE:
            direction = direction_of(trace.name(launch[position]))
        found[position] = _DIRECTIONS.index(direction)
    return found


def _line(trace: Trace, rows: Ints, direction: CopyDirection, hiding: Intervals) -> CopyTime:
    sizes = trace.size_bytes[rows]
    return CopyTime(
        direction=direction,
        count=len(rows),
        total_ns=int(trace.duration_ns[rows].sum()),
        exposed_ns=intervals.length(intervals.subtract(union_of(trace, rows), hiding)),
        copied_bytes=None if (sizes == ABSENT).any() else int(sizes.sum()),
    )
