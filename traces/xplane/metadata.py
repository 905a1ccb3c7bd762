"""What a profile says outside its events: devices, and how many devices the programs were compiled for."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from traces.trace import DeviceProperties, Metadata
from traces.xplane.planes import MODULES_LINE, device_index, role_of
from traces.xplane.space import Plane, Space, Span
from traces.xplane.wire import DELIMITED, WireFault, read_fields

# xla/service/hlo.proto: HloProto.hlo_module 1, HloModuleProto.device_assignment 15,
# DeviceAssignmentProto.replica_count 1 and computation_count 2.
_HLO_MODULE: Final = 1
_DEVICE_ASSIGNMENT: Final = 15
_MOST_DEVICES: Final = 1 << 24
_JAX_PROGRAMS: Final = ("jit_", "pjit_", "pmap_")


def metadata_of(space: Space) -> Metadata:
    """Metadata of a profile, without a rank; whatever is missing stays unknown."""
    assigned = max((size for plane in space.planes for size in _assignments(plane, space.data)), default=0)
    return Metadata(
        devices=tuple(_device(plane) for plane in space.planes if role_of(plane) in ("tpu", "gpu")),
        world_size=assigned or None,
        world_size_basis="device assignment of the largest program in the profile",
        devices_basis="stats of the device plane",
        framework=_framework(space),
    )


def _device(plane: Plane) -> DeviceProperties:
    return DeviceProperties(
        index=device_index(plane),
        name=plane.text("device_type_string") or plane.text("gpu_device_name"),
        memory_bytes=_whole(plane, "memory_size"),
        compute_units=_whole(plane, "core_count"),
        compute_major=_whole(plane, "compute_cap_major"),
        compute_minor=_whole(plane, "compute_cap_minor"),
    )


def _whole(plane: Plane, stat: str) -> int | None:
    value = plane.number(stat)
    return int(value) if value is not None else None


def _framework(space: Space) -> str:
    """jax where the profile names its version, or where programs bear the names it gives; "" where nothing tells."""
    for plane in space.planes:
        modules = [text for line in plane.lines for texts in line.texts_named("hlo_module") for text in texts.values]
        programs = [kind.name for kind in plane.kinds] if role_of(plane) == "metadata" else []
        programs += [plane.kinds[kind].name for kind in _module_kinds(plane)]
        if "jax_version" in plane.stats or any(name.startswith(_JAX_PROGRAMS) for name in (*modules, *programs)):
            return "jax"
    return ""


def _module_kinds(plane: Plane) -> list[int]:
    line = plane.line(MODULES_LINE)
    return [] if line is None else np.unique(line.kind).tolist()


def _assignments(plane: Plane, data: bytes | bytearray) -> Iterator[int]:
    """Devices each program of a metadata plane runs on."""
    if role_of(plane) != "metadata":
        return
    for kind in plane.kinds:
        proto = kind.stats.get("Hlo Proto")
        if isinstance(proto, Span):
            yield _devices_of(data, proto)


def _devices_of(data: bytes | bytearray, proto: Span) -> int:
    """Replicas times partitions; 0 where the program does not say."""
    try:
        assignment = _inner(data, _inner(data, proto, _HLO_MODULE), _DEVICE_ASSIGNMENT)
        if assignment is None:
            return 0
        fields = read_fields(data, np.array([assignment.start]), np.array([assignment.end]))
    except WireFault:
        return 0
    replicas, partitions = (int(fields.last_word(number, 1)[0]) for number in (1, 2))
    plausible = 0 < replicas <= _MOST_DEVICES and 0 < partitions <= _MOST_DEVICES
    return replicas * partitions if plausible else 0


def _inner(data: bytes | bytearray, span: Span | None, number: int) -> Span | None:
    """The last embedded message `number` of a message."""
    if span is None:
        return None
    found = read_fields(data, np.array([span.start]), np.array([span.end])).of(number, DELIMITED)
    return Span(int(found.start[-1]), int(found.end[-1])) if len(found.start) else None
