"""Data-parallel collectives that run alone although matrix kernels that do not need them were ready to run too."""

from typing import Final

import numpy as np

from traces.linking import NONE
from traces.patterns.scene import SHARDED_AXES, Found, Lacking, Scene
from traces.trace import Ints

_BASIS: Final = (
    "a gradient reduction is no input of the backward matrix kernel queued behind it, and a gathering of weights takes "
    "nothing from the one before it; the axis is inferred, and the trace does not name tensors"
)


def serialised_pair(scene: Scene) -> Found | Lacking | None:
    """Collectives of a data-parallel group that stream order, or a wait, keeps apart from a matrix kernel:

      reductions  (all-reduce, reduce-scatter) the next other event on the device is a matrix kernel that was issued
                  before the collective had ended, and begins sooner after its end than the collective lasts
      all-gathers issued before the matrix kernel before them began, and begun after it had ended, though no earlier
                  collective ran beside that kernel

    Collectives of other axes are left out: what they carry the neighbouring kernels usually need. Exposed is what of
    the collectives runs with nothing beside.
    """
    if not scene.communications:
        return None
    launch = scene.classified.links.launch
    if not (launch[scene.places] != NONE).any():
        return Lacking("serialised_pair", "the launches of the collectives are not recorded")
    axes = [scene.axis_of(one) for one in scene.communications]
    if all(axis == "unknown" for axis in axes):
        return Lacking("serialised_pair", "which axis the collectives serve is not known")
    others = np.flatnonzero(~scene.communicates)
    if not len(others):
        return None
    ends = np.maximum.accumulate(scene.end_ns[others])
    free = _earlier_end(scene)
    members = []
    for one, axis, at in zip(scene.communications, axes, scene.places.tolist(), strict=True):
        if axis not in SHARDED_AXES or launch[at] == NONE:
            continue
        behind = int(np.searchsorted(scene.start_ns[others], scene.start_ns[at], side="right"))
        if one.collective in ("all_reduce", "reduce_scatter"):
            apart = behind < len(others) and _queued_behind(scene, at, int(others[behind]))
        else:
            before = behind - 1
            apart = one.collective == "all_gather" and before >= 0 and ends[before] <= scene.start_ns[at]
            apart = apart and free[at] <= scene.start_ns[others[before]]
            apart = apart and _queued_before(scene, at, int(others[before]))
        if apart:
            members.append((one, at))
    if not members:
        return None
    sizes = [one.message_bytes for one, _ in members]
    return scene.found(
        "serialised_pair",
        np.array([at for _, at in members]),
        occurrences=len(members),
        basis=_BASIS,
        certain=False,
        collectives=[one for one, _ in members],
        moved_bytes=None if None in sizes else sum(size for size in sizes if size is not None),
    )


def _earlier_end(scene: Scene) -> Ints:
    """For each event when the last of the collectives that began before it has ended."""
    ends = np.where(scene.communicates, scene.end_ns, np.iinfo(np.int64).min)
    latest: Ints = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(ends)[:-1])
    return latest


def _queued_behind(scene: Scene, collective: int, kernel: int) -> bool:
    """Whether a matrix kernel that was issued before the collective had ended begins right after it."""
    ended, lasted = scene.end_ns[collective], scene.end_ns[collective] - scene.start_ns[collective]
    waited = scene.start_ns[kernel] - ended
    return bool(scene.is_matrix[kernel] and 0 <= waited < lasted and _issued(scene, kernel) <= ended)


def _queued_before(scene: Scene, collective: int, kernel: int) -> bool:
    """Whether the collective was issued before the matrix kernel in front of it began."""
    return bool(scene.is_matrix[kernel] and _issued(scene, collective) <= scene.start_ns[kernel])


def _issued(scene: Scene, place: int) -> int:
    """When the call that launched an event had returned; later than anything where it is not known."""
    row = int(scene.classified.links.launch[place])
    return int(scene.trace.start_ns[row] + scene.trace.duration_ns[row]) if row != NONE else 2**62
