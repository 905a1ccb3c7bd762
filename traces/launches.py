"""How much of a device's idle time is the host's doing, and whether the launches in a trace have their kernels."""

import re
from typing import Final

import numpy as np

from traces.intervals import Intervals
from traces.linking import NONE, Links
from traces.trace import Category, Trace

_LEAST_KNOWN_SHARE = 0.5
_FEW_LAUNCHES = 50
_LAUNCH: Final = re.compile(r"(?:cuda|cu|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel")


def launch_bound_frac(trace: Trace, links: Links, idle: Intervals) -> float | None:
    """Share of idle time (0 to 1) before events whose launch began after the device had drained.

    Each gap is charged to the first event that ends it. None where there is no gap, or where for less than half of the
    idle time that event's launch is in the trace, or where most launches lack their kernels: idle time is none then.
    """
    if not len(idle) or lacks_kernels(trace, links) is not None:
        return None
    starts = trace.start_ns[links.rows]
    first = np.searchsorted(starts, idle[:, 1], side="left")
    ended = first < len(starts)
    gap_start, gap_length = idle[ended, 0], (idle[:, 1] - idle[:, 0])[ended]
    launch = links.launch[first[ended]]
    known = launch != NONE
    known_ns = int(gap_length[known].sum())
    if known_ns == 0 or known_ns < _LEAST_KNOWN_SHARE * int(gap_length.sum()):
        return None
    late = trace.start_ns[launch[known]] >= gap_start[known]
    return float(int(gap_length[known][late].sum()) / known_ns)


def lacks_kernels(trace: Trace, links: Links) -> tuple[int, int] | None:
    """(kernel launches without a kernel in the trace, all of them) where most are; None elsewhere.

    So it is while a graph is captured, in thinned files, and where the profiler lost device events.
    """
    is_launch = np.fromiter((_LAUNCH.match(name) is not None for name in trace.names), np.bool_, len(trace.names))
    launches = trace.named(trace.rows(Category.RUNTIME), is_launch)
    missing = len(launches) - int(np.isin(launches, links.launch).sum())
    if len(launches) < _FEW_LAUNCHES or 2 * missing <= len(launches):
        return None
    return missing, len(launches)
