"""A profile to Traces: one for each device with events, or one for each virtual device of the CPU backend."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from projector.errors import EmptyTrace
from traces.limits import Limits
from traces.trace import ABSENT, Metadata, Trace
from traces.xplane.dcn_host import HostSide, host_side
from traces.xplane.gpu import gpu_rows
from traces.xplane.host import cpu_devices, cpu_operators, launch_calls, step_marks
from traces.xplane.metadata import metadata_of
from traces.xplane.planes import Role, device_index, role_of
from traces.xplane.profile import DeviceProfile
from traces.xplane.rows import Rows
from traces.xplane.space import Plane, Space
from traces.xplane.sparse_core import sparse_cores_told
from traces.xplane.tpu import tpu_rows

DEFAULT: Final = Limits()

_LABELS: dict[Role, str] = {
    "tpu": "TPU",
    "sparse_core": "SparseCore",
    "gpu": "GPU",
    "cpu": "host",
    "metadata": "metadata",
    "other": "other planes",
}


@dataclass(frozen=True, slots=True)
class _Common:
    """What all traces of a profile share."""

    space: Space
    metadata: Metadata
    counts: Mapping[str, int]
    warnings: tuple[str, ...]
    host_side: HostSide

    def trace(
        self,
        rows: Rows,
        *,
        rank: int | None = None,
        warnings: tuple[str, ...] = (),
        profile: DeviceProfile | None = None,
        framework_ops: Mapping[str, int] | None = None,
    ) -> Trace:
        """The rows of one device as a Trace."""
        return rows.trace(
            format=self.space.producer,
            file=self.space.file,
            metadata=replace(self.metadata, rank=rank),
            counts=self.counts,
            warnings=self.warnings + warnings,
            profile=profile,
            framework_ops=framework_ops or {},
        )


def traces_of(space: Space, limits: Limits = DEFAULT) -> tuple[Trace, ...]:
    """Traces of a profile, by device.

    Raises `EmptyTrace` where neither a device nor the CPU backend ran an operator, `TraceTooLarge` for max_devices.
    """
    limits.check("max_devices", len(space.planes), f"number of planes in {space.file}")
    host = next((plane for plane in space.planes if role_of(plane) == "cpu"), None)
    warnings = [*space.warnings, *_skipped(space)]
    cores = [device_index(plane) for plane in space.planes if role_of(plane) == "tpu" and any(map(len, plane.lines))]
    slices = host_side(space, cores, warnings)
    common = _Common(space, metadata_of(space), _counts(space), tuple(warnings), slices)
    devices = [
        trace
        for plane in space.planes
        if role_of(plane) in ("tpu", "gpu") and (trace := _device_trace(common, plane, host)) is not None
    ]
    if devices:
        return tuple(devices)
    found = _cpu_traces(common, host, limits) if host is not None else ()
    if not found:
        raise EmptyTrace(
            f"{space.file} holds no operator of a device and none of the CPU backend",
            hint="profile at least one whole step, and wait for its result inside the profiled region",
        )
    return found


def _device_trace(common: _Common, plane: Plane, host: Plane | None) -> Trace | None:
    """The trace of one device, with the calls of the host that launched its work where the profile joins them."""
    rows = Rows()
    if role_of(plane) == "tpu":
        tpu = tpu_rows(plane, common.space.data, rows, common.host_side)
        if tpu is None:
            return None
        profile, operators, warnings = tpu
        return common.trace(rows, warnings=warnings, profile=profile, framework_ops=operators)
    gpu = gpu_rows(plane, rows)
    if gpu is None:
        return None
    profile, operators, warnings = gpu
    if host is not None:
        launch_calls(host, rows, rows.correlations())
        step_marks(host, rows)
    return common.trace(rows, warnings=warnings, profile=profile, framework_ops=operators)


def _cpu_traces(common: _Common, host: Plane, limits: Limits) -> tuple[Trace, ...]:
    """One trace for each virtual device, the rank being its ordinal."""
    found = []
    ordinals = cpu_devices(host)
    limits.check("max_devices", len(ordinals), f"number of devices in {common.space.file}")
    for ordinal in ordinals:
        rows = Rows()
        cpu_operators(host, rows, ordinal)
        step_marks(host, rows)
        found.append(common.trace(rows, rank=None if ordinal == ABSENT else ordinal))
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
    return (*told, *sparse_cores_told(space))
