"""A profile to Traces: one for each device with events, or one for each virtual device of the CPU backend."""

from collections import Counter

from projector.errors import EmptyTrace
from traces.trace import ABSENT, Trace
from traces.xplane.gpu import gpu_rows
from traces.xplane.host import cpu_devices, cpu_operators, launch_calls, step_marks
from traces.xplane.metadata import metadata_of
from traces.xplane.planes import Role, role_of
from traces.xplane.profile import DeviceProfile
from traces.xplane.rows import Rows
from traces.xplane.space import Plane, Space
from traces.xplane.tpu import tpu_rows

_LABELS: dict[Role, str] = {
    "tpu": "TPU",
    "sparse_core": "SparseCore",
    "gpu": "GPU",
    "cpu": "host",
    "metadata": "metadata",
    "other": "other planes",
}


def traces_of(space: Space) -> tuple[Trace, ...]:
    """Traces of a profile, by device. `EmptyTrace` where neither a device nor the CPU backend ran an operator."""
    host = next((plane for plane in space.planes if role_of(plane) == "cpu"), None)
    counts, warnings = _counts(space), space.warnings + _skipped(space)
    devices = [
        trace
        for plane in space.planes
        if role_of(plane) in ("tpu", "gpu")
        and (trace := _device_trace(space, plane, host, counts, warnings)) is not None
    ]
    if devices:
        return tuple(devices)
    found = _cpu_traces(space, host, counts, warnings) if host is not None else ()
    if not found:
        raise EmptyTrace(
            f"{space.file} holds no operator of a device and none of the CPU backend",
            hint="profile at least one whole step, and wait for its result inside the profiled region",
        )
    return found


def _device_trace(
    space: Space, plane: Plane, host: Plane | None, counts: dict[str, int], warnings: tuple[str, ...]
) -> Trace | None:
    rows = Rows()
    told: tuple[str, ...] = ()
    profile: DeviceProfile
    operators: Counter[str]
    if role_of(plane) == "tpu":
        tpu = tpu_rows(plane, space.data, rows)
        if tpu is None:
            return None
        profile, operators, told = tpu
    else:
        gpu = gpu_rows(plane, rows)
        if gpu is None:
            return None
        profile, operators = gpu
        if host is not None:
            launch_calls(host, rows, rows.correlations())
            step_marks(host, rows)
    return rows.trace(
        format=space.producer,
        file=space.file,
        metadata=metadata_of(space, None),
        counts=counts,
        warnings=warnings + told,
        profile=profile,
        framework_ops=operators,
    )


def _cpu_traces(space: Space, host: Plane, counts: dict[str, int], warnings: tuple[str, ...]) -> tuple[Trace, ...]:
    found = []
    for ordinal in cpu_devices(host):
        rows = Rows()
        if not cpu_operators(host, rows, ordinal):
            continue
        step_marks(host, rows)
        found.append(
            rows.trace(
                format=space.producer,
                file=space.file,
                metadata=metadata_of(space, None if ordinal == ABSENT else ordinal),
                counts=counts,
                warnings=warnings,
                profile=None,
                framework_ops={},
            )
        )
    return tuple(found)


def _counts(space: Space) -> dict[str, int]:
    """Events by kind of plane and, on devices, by line."""
    counts: Counter[str] = Counter()
    for plane in space.planes:
        role = role_of(plane)
        for line in plane.lines:
            label = _LABELS[role]
            if role in ("tpu", "gpu"):
                label += " stream" if line.name.startswith("Stream") else f" {line.name[:40]}"
            counts[label] += len(line)
    return dict(sorted((label, count) for label, count in counts.items() if count))


def _skipped(space: Space) -> tuple[str, ...]:
    """What is in the file and not in the result."""
    told = []
    empty = [
        plane.name for plane in space.planes if role_of(plane) in ("tpu", "gpu") and not any(map(len, plane.lines))
    ]
    if empty:
        told.append(f"{len(empty)} device planes hold no event: {', '.join(name[:40] for name in empty[:8])}")
    sparse = sum(role_of(plane) == "sparse_core" and any(map(len, plane.lines)) for plane in space.planes)
    if sparse:
        told.append(
            f"the events of {sparse} SparseCore planes are not read; the work they do for a TensorCore is not shown"
        )
    return tuple(told)
