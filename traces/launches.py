"""How much of a device's idle time is the host's doing."""

import numpy as np

from traces.intervals import Intervals
from traces.linking import NONE, Links
from traces.trace import Trace

_LEAST_KNOWN_SHARE = 0.5


def launch_bound_frac(trace: Trace, links: Links, idle: Intervals) -> float | None:
    """Share of idle time (0 to 1) before events whose launch began after the device had drained.

    Each gap is charged to the first event that ends it. None where there is no gap, or where for less than half of the
    idle time that event's launch is in the trace.
    """
    if not len(idle):
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
