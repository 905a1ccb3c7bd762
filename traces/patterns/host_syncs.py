"""The host waits for the device, and only then issues the next work: the device idles while it does."""

import re
from typing import Final

import numpy as np

from traces.grouping import places_by
from traces.kernel_names import LONGEST_NAME
from traces.linking import NONE
from traces.patterns.scene import Found, Lacking, Scene
from traces.trace import Category, Ints

FEWEST: Final = 3
"""One or two waits are the end of a profile or of a warm-up; a habit shows three times."""

PAUSE: Final = 10
"""A gap so many times the median of them is no launch that came late but something else the host did (input, a file, a
compilation); the same factor as for uneven steps."""

_WAITS: Final = re.compile(
    r"(?:cuda|cu|hip)(?:(?:Stream|Device|Event|Ctx)Synchronize|Memcpy(?:WithStream|DtoH|HtoD|DtoD|2D|3D)?)(?:_v\d+)?"
)
_BASIS: Final = (
    "a call that waits was open when the device drained, and the launch that ends the idle gap came after it had "
    "returned: the host was ahead before it waited"
)


def host_syncs(scene: Scene) -> Found | Lacking | None:
    """Idle gaps [g, h) of the device with a wait [s, r) on the launching thread, s <= g <= r, and the event at h
    launched by a call that begins at r or later, with no other wait between.

    s <= g says that the host was ahead when it began to wait, so without the wait the launch would have been queued in
    time: all of the gap could go, hence exposed is its length. Gaps more than PAUSE times their median are left out;
    fewer than FEWEST are none.
    """
    trace, links = scene.trace, scene.classified.links
    if scene.why_gaps_say_nothing:
        return Lacking("host_syncs", scene.why_gaps_say_nothing)
    waits = np.fromiter(
        (_WAITS.fullmatch(name[:LONGEST_NAME]) is not None for name in trace.names), np.bool_, len(trace.names)
    )
    syncs = trace.named(trace.rows(Category.RUNTIME), waits)
    gaps = scene.idle
    if not len(syncs) or not len(gaps):
        return None
    launch = links.launch[scene.gap_ends]
    sync = _last_before(scene, syncs, launch)
    known = sync != NONE
    begun, returned = trace.start_ns[sync], trace.end_ns[sync]
    waited = known & (begun <= gaps[:, 0]) & (gaps[:, 0] <= returned) & (returned <= trace.start_ns[launch])
    lengths = (gaps[:, 1] - gaps[:, 0])[waited]
    named = sync[waited]
    kept = lengths <= PAUSE * np.median(lengths) if len(lengths) else np.zeros(0, dtype=np.bool_)
    if kept.sum() < FEWEST:
        return None
    return scene.gaps_found("host_syncs", lengths[kept], named[kept], basis=_BASIS)


def _last_before(scene: Scene, syncs: Ints, launch: Ints) -> Ints:
    """For each launching call the last wait that began before it on its thread, or NONE."""
    trace = scene.trace
    found = np.full(len(launch), NONE, dtype=np.int64)
    of_thread = {thread: syncs[places] for thread, places in places_by(trace.thread[syncs])}
    known = np.flatnonzero(launch != NONE)
    for thread, places in places_by(trace.thread[launch[known]]):
        if thread in of_thread:
            mine, waits = known[places], of_thread[thread]
            at = np.searchsorted(trace.start_ns[waits], trace.start_ns[launch[mine]], side="left") - 1
            found[mine] = np.where(at >= 0, waits[np.maximum(at, 0)], NONE)
    return found
