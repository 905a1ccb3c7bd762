"""Runs of small collectives back to back, which one collective could carry."""

from typing import Final

import numpy as np

from traces.messages import pattern_of
from traces.patterns.scene import Found, Lacking, Scene

KNEE_BYTES: Final = 256 << 10
"""Below this a collective is paid for in latency: at 50 GB/s 256 KiB take 5 us, a launch and the steps of a ring 10 us
and more (the same limit as for small messages in a diagnosis)."""

SHORTEST_RUN: Final = 4
"""One collective in place of four saves three quarters of their latency; of two or three too little to be worth it."""

_BASIS: Final = (
    "sizes below 256 KiB as recorded; nothing else begins on the device between the members of a run, so that none can "
    "depend on anything computed after the first"
)


def tiny_collectives(scene: Scene) -> Found | Lacking | None:
    """Runs of SHORTEST_RUN or more collectives of one kind and group, each below KNEE_BYTES, with no other device event
    beginning between the first and the last. Sends, receives and barriers do not count.

    Exposed is all of a run: one collective takes its place, so at most (k - 1) / k of it is gained.
    """
    ordered = scene.communications
    if not ordered:
        return None
    wanted = [one for one in ordered if pattern_of(one.collective) in ("ring", "all_to_all")]
    if wanted and all(one.message_bytes is None for one in wanted):
        return Lacking("tiny_collectives", "the sizes of the collectives are not recorded")
    places = scene.places
    # two collectives are neighbours where no position lies between them that is not communication
    others = np.concatenate(([0], np.cumsum(~scene.communicates)))
    runs: list[list[int]] = []
    last = None
    for at, one in enumerate(ordered):
        small = one.message_bytes is not None and one.message_bytes < KNEE_BYTES
        if not small or pattern_of(one.collective) not in ("ring", "all_to_all"):
            last = None
            continue
        key = (one.collective, one.group, int(others[places[at]]))
        if key == last:
            runs[-1].append(at)
        else:
            runs.append([at])
        last = key
    kept = [run for run in runs if len(run) >= SHORTEST_RUN]
    if not kept:
        return None
    members = [at for run in kept for at in run]
    return scene.found(
        "tiny_collectives",
        places[members],
        occurrences=len(kept),
        basis=_BASIS,
        certain=True,
        collectives=[ordered[at] for at in members],
        moved_bytes=sum(ordered[at].message_bytes or 0 for at in members),
    )
