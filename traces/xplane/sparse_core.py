"""SparseCores: kept apart from the TensorCore they serve, counted and said so.

A SparseCore runs beside the TensorCore of its chip, mostly embedding lookups and collectives handed over to it. Its
planes are "/device:TPU:0 SparseCore 1", its operators on a line "Sparse Core Ops" (openxla/xla,
xla/tsl/profiler/utils/xplane_schema.cc). XProf, too, files its operators under the TensorCore's that started them, and
not beside them.
"""

from typing import Final

from traces import intervals
from traces.xplane.planes import role_of
from traces.xplane.space import Plane, Space

_OPS_LINE: Final = "Sparse Core Ops"
_PS_PER_NS: Final = 1_000


def sparse_cores_told(space: Space) -> tuple[str, ...]:
    """How many SparseCores have events and how long they were busy; () where the profile has none."""
    planes = [plane for plane in space.planes if role_of(plane) == "sparse_core" and any(map(len, plane.lines))]
    if not planes:
        return ()
    busy_ps = [one for plane in planes if (one := _busy_ps(plane)) is not None]
    events = sum(len(line) for plane in planes for line in plane.lines)
    busy = (
        f"operators kept {len(busy_ps)} of them busy for {sum(busy_ps) // _PS_PER_NS:,} ns in all"
        if busy_ps
        else "none has a line of operators"
    )
    return (
        f"{len(planes)} SparseCores with {events:,} events are kept apart: {busy}, and none of it is in the times of "
        "the TensorCores",
    )


def _busy_ps(plane: Plane) -> int | None:
    line = plane.line(_OPS_LINE)
    return None if line is None else intervals.length(intervals.merge(line.begin_ps, line.end_ps))
