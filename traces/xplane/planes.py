"""What a plane is, the peaks it states, and its lines on one clock."""

import re
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from projector.units import GIGA, TERA
from traces.trace import ABSENT
from traces.xplane.space import LATEST_PS, LONGEST_PS, Line, Plane

Role = Literal["tpu", "sparse_core", "gpu", "cpu", "metadata", "other"]

OPS_LINE: Final = "XLA Ops"
ASYNC_LINE: Final = "Async XLA Ops"
MODULES_LINE: Final = "XLA Modules"
STEPS_LINE: Final = "Steps"

_TPU: Final = re.compile(r"/device:TPU:(\d{1,9})$")
_SPARSE_CORE: Final = re.compile(r"/device:TPU:\d{1,9} SparseCore\b")
_GPU: Final = re.compile(r"/device:GPU:(\d{1,9})$")
_STREAM: Final = re.compile(r"Stream #(\d{1,9})(?!\d)")


def role_of(plane: Plane) -> Role:
    """What a plane is, by its name."""
    if _TPU.match(plane.name):
        return "tpu"
    if _SPARSE_CORE.match(plane.name):
        return "sparse_core"
    if _GPU.match(plane.name):
        return "gpu"
    if plane.name == "/host:CPU":
        return "cpu"
    return "metadata" if plane.name == "/host:metadata" else "other"


def device_index(plane: Plane) -> int:
    """Number of a TPU or GPU plane on its host; ABSENT for others."""
    match = _TPU.match(plane.name) or _GPU.match(plane.name)
    return int(match[1]) if match else ABSENT


def stream_index(line: Line) -> int | None:
    """Number of a GPU stream; None for a line that is none (modules, steps and the like are derived from streams)."""
    match = _STREAM.match(line.name)
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class Peaks:
    """What a device can do at most, as its plane states it; None where it does not. On-chip memory: one direction."""

    flop_per_s: float | None = None
    hbm_bytes_per_s: float | None = None
    cmem_read_bytes_per_s: float | None = None
    cmem_write_bytes_per_s: float | None = None
    vmem_read_bytes_per_s: float | None = None
    vmem_write_bytes_per_s: float | None = None

    def figures(self) -> tuple[float | None, ...]:
        """All peaks, in order."""
        return (
            self.flop_per_s,
            self.hbm_bytes_per_s,
            self.cmem_read_bytes_per_s,
            self.cmem_write_bytes_per_s,
            self.vmem_read_bytes_per_s,
            self.vmem_write_bytes_per_s,
        )


def peaks_of(plane: Plane) -> Peaks:
    """Peaks among the stats of a plane.

    GPU planes state `memory_bandwidth`, which is not used: on MI300X it is half of the datasheet's.
    """

    def bandwidth(memory: str) -> float | None:
        value = plane.number(f"peak_{memory}_bw_gigabytes_per_second")
        return None if value is None else value * GIGA

    teraflop = plane.number("peak_teraflops_per_second")
    return Peaks(
        flop_per_s=None if teraflop is None else teraflop * TERA,
        hbm_bytes_per_s=bandwidth("hbm"),
        cmem_read_bytes_per_s=bandwidth("cmem_rd"),
        cmem_write_bytes_per_s=bandwidth("cmem_wr"),
        vmem_read_bytes_per_s=bandwidth("vmem_rd"),
        vmem_write_bytes_per_s=bandwidth("vmem_wr"),
    )


def on_one_clock(plane: Plane, *names: str) -> dict[str, Line]:
    """The named lines that have events; on the device's own clock where every event of all of them states that time."""
    lines = {name: line for name in names if (line := plane.line(name)) is not None}
    if not all(_states_device_time(line) for line in lines.values()):
        return lines
    return {
        name: line.moved(line.ints["device_offset_ps"], line.ints["device_duration_ps"]) for name, line in lines.items()
    }


def _states_device_time(line: Line) -> bool:
    none = np.full(len(line), ABSENT)
    offset, duration = (line.ints.get(stat, none) for stat in ("device_offset_ps", "device_duration_ps"))
    usable = (offset >= 0) & (offset <= LATEST_PS) & (duration >= 0) & (duration <= LONGEST_PS)
    return bool(usable.all())
