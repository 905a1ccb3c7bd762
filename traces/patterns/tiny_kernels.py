"""Kernels shorter than the idle gaps before them, in runs launched one by one: a graph would launch a run at once."""

import re
from typing import Final

import numpy as np

from traces.kernel_names import LONGEST_NAME
from traces.linking import NONE
from traces.patterns.host_syncs import PAUSE
from traces.patterns.scene import Found, Lacking, Scene
from traces.trace import Ints, Mask

SHORTEST_RUN: Final = 10
"""A graph is worth capturing from some ten launches on: replaying one costs about what two or three launches do."""

_LAUNCH: Final = re.compile(r"(?:cuda|cu|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?Kernel\w{0,16}")
_BASIS: Final = (
    "each kernel is shorter than the idle gap before it, has a launch of its own, and was issued after the device had "
    "drained"
)


def tiny_kernels(scene: Scene) -> Found | Lacking | None:
    """Runs of SHORTEST_RUN or more kernels, one directly behind the other on the device, each with an idle gap before
    it that is longer than itself and ends with its own launch, not done yet when the device had drained.

    The gaps are what a captured graph or a fusion could save; a gap more than PAUSE times their median ends a run, as
    something else than launching took the host's time.
    """
    if scene.why_gaps_say_nothing:
        return Lacking("tiny_kernels", scene.why_gaps_say_nothing)
    gaps = scene.idle
    if len(gaps) < SHORTEST_RUN:
        return None
    lengths = gaps[:, 1] - gaps[:, 0]
    ends_it = scene.gap_ends
    tiny = (scene.end_ns - scene.start_ns)[ends_it] < lengths
    tiny &= _launched_late(scene, gaps[:, 0], ends_it)
    if not tiny.any():
        return None
    tiny &= lengths <= PAUSE * np.median(lengths[tiny])
    chosen = _in_runs(ends_it[tiny])
    if not chosen.any():
        return None
    kernels = ends_it[tiny][chosen]
    return scene.gaps_found("tiny_kernels", lengths[tiny][chosen], scene.rows[kernels], basis=_BASIS)


def _launched_late(scene: Scene, drained: Ints, places: Ints) -> Mask:
    """Events launched alone by a kernel launch that was not done when the device had drained."""
    trace, links = scene.trace, scene.classified.links
    launch = links.launch[places]
    is_launch = np.fromiter(
        (_LAUNCH.fullmatch(name[:LONGEST_NAME]) is not None for name in trace.names), np.bool_, len(trace.names)
    )
    launched = np.bincount(links.launch[links.launch != NONE], minlength=len(trace))
    late: Mask = (launch != NONE) & is_launch[trace.name_id[launch]] & (launched[launch] == 1)
    return late & (trace.end_ns[launch] > drained) & (trace.start_ns[launch] <= scene.start_ns[places])


def _in_runs(places: Ints) -> Mask:
    """Which of these positions, ascending, lie in a run of SHORTEST_RUN neighbours."""
    first = np.flatnonzero(np.append(True, np.diff(places) != 1))
    lengths = np.diff(np.append(first, len(places)))
    long_enough: Mask = np.repeat(lengths >= SHORTEST_RUN, lengths)
    return long_enough
