"""What the host's MegaScale runtime did for transfers between slices: the plane "/device:CUSTOM:Megascale Trace".

Names as in openxla/xprof, xprof/convert/megascale_perfetto (xspace_loader.cc, trace_processor.cc), and openxla/xla,
xla/tsl/profiler/utils/xplane_schema.cc. Every event bears a `graph_key`, "device_200005_gid_all-reduce.3_7$1^i0": the
device it serves, the rendezvous of the collective, and which run of it. An event named like the beginning of its key is
a whole run, from the first to the last action of the host; "NetworkReceive END" states how long a message was under way
(`network_transport_latency_us`) and what it brought (`buffer_sizes`, "s100001->200001d|$c0=1000": from, to, bytes).

Devices of the runtime and cores of the host are matched in the order of their numbers, as XProf does, and only where
there are as many of the one as of the other.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from traces.trace import ABSENT
from traces.xplane.space import NO_TEXT, Line, Plane, Space, Texts

PLANE: Final = "/device:CUSTOM:Megascale Trace"

_KEY: Final = re.compile(r"device_(\d{1,18})_gid_([A-Za-z0-9_.\-]{1,1000})")
_RECEIVED: Final = "NetworkReceive END"
_BUFFER: Final = re.compile(r"s(\d{1,18})->(\d{1,18})d\|\$c\d{1,9}=(\d{1,15})")
_LONGEST: Final = 65_536
_PS_PER_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class HostRuns:
    """One collective on one device, as the host ran it. Messages within a device's own host are left out.

    transport_ps   summed time messages were under way, received_bytes what they brought; of those that state both
    """

    runs: int = 0
    total_ps: int = 0
    received_bytes: int = 0
    transport_ps: int = 0
    messages: int = 0


HostSide = Mapping[tuple[int, str], HostRuns]
"""(device index of the core's plane, rendezvous) -> runs."""


def host_side(space: Space, cores: Sequence[int], warnings: list[str]) -> HostSide:
    """The runs of each collective for each core of the host; {} where the profile has no such plane."""
    found: dict[tuple[int, str], HostRuns] = {}
    for plane in space.planes:
        if plane.name == PLANE:
            for line in plane.lines:
                _add(plane, line, found)
    devices = sorted({device for device, _ in found})
    if devices and len(devices) != len(cores):
        warnings.append(
            f"the MegaScale runtime served {len(devices)} devices, and the profile has {len(cores)} TensorCores: the "
            "host's side of transfers between slices is not shown"
        )
        return {}
    core_of = dict(zip(devices, sorted(cores), strict=True)) if devices else {}
    return {(core_of[device], rendezvous): runs for (device, rendezvous), runs in found.items()}


def _add(plane: Plane, line: Line, found: dict[tuple[int, str], HostRuns]) -> None:
    keys = line.texts.get("graph_key")
    if keys is None:
        return
    none = Texts(np.full(len(line), NO_TEXT, dtype=np.int64), ())
    buffers = line.texts.get("buffer_sizes", none)
    latency = line.ints.get("network_transport_latency_us", np.full(len(line), ABSENT))
    matches = [_KEY.match(text) for text in keys.values]
    for kind, key, duration, took_us, sizes in zip(
        line.kind.tolist(),
        keys.ids.tolist(),
        line.duration_ps.tolist(),
        latency.tolist(),
        buffers.ids.tolist(),
        strict=True,
    ):
        match = matches[key] if key != NO_TEXT else None
        if match is None:
            continue
        place = (int(match[1]), match[2])
        known = found.setdefault(place, HostRuns())
        name = plane.kinds[kind].title
        if name == match[0]:
            found[place] = _plus(known, HostRuns(runs=1, total_ps=duration))
        elif name == _RECEIVED and took_us > 0 and sizes != NO_TEXT:
            arrived = _bytes(buffers.values[sizes])
            if arrived:
                message = HostRuns(received_bytes=arrived, transport_ps=took_us * _PS_PER_US, messages=1)
                found[place] = _plus(known, message)


def _plus(one: HostRuns, other: HostRuns) -> HostRuns:
    return HostRuns(
        one.runs + other.runs,
        one.total_ps + other.total_ps,
        one.received_bytes + other.received_bytes,
        one.transport_ps + other.transport_ps,
        one.messages + other.messages,
    )


def _bytes(sizes: str) -> int:
    """Bytes that came from another device."""
    return sum(int(size) for source, target, size in _BUFFER.findall(sizes[:_LONGEST]) if source != target)
