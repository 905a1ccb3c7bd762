"""The devices of a file, numbered as each process numbers them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from traces.nsys.database import Database
from traces.trace import DeviceProperties

_GPU: Final = "TARGET_INFO_GPU"
_NUMBERS: Final = ("id", "cuDevice", "totalMemory", "smCount", "computeMajor", "computeMinor")
_PID: Final = (1 << 24) - 1
_LARGEST_INDEX: Final = 1 << 16


def pid_of(process: int) -> int:
    """The operating system's number of a process, of the key its serialised ids have in common."""
    return process & _PID


def devices_by_pid(db: Database) -> Mapping[int, tuple[DeviceProperties, ...]]:
    """Devices by process number, as TARGET_INFO_CUDA_DEVICE numbers them for each; () where it does not say."""
    gpus = dict(_gpus(db, "id"))
    found: dict[int, dict[int, DeviceProperties]] = {}
    for gpu, cuda, pid in db.numbers("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid")).tolist():
        if gpu in gpus and 0 <= cuda < _LARGEST_INDEX:
            found.setdefault(pid, {})[cuda] = replace(gpus[gpu], index=cuda)
    return {pid: tuple(devices[index] for index in sorted(devices)) for pid, devices in found.items()}


def all_devices(db: Database) -> tuple[DeviceProperties, ...]:
    """Every device of the machine, by the number CUDA gives it where no process hides any."""
    by_cuda = dict(_gpus(db, "cuDevice"))
    devices = by_cuda or dict(_gpus(db, "id"))
    return tuple(devices[index] for index in sorted(devices))


def _gpus(db: Database, numbered_by: str) -> list[tuple[int, DeviceProperties]]:
    found = []
    for rows in db.records(_GPU, _NUMBERS, ("name",)):
        for row in rows:
            known = dict(zip(_NUMBERS, row, strict=False))
            index = known[numbered_by]
            if not 0 <= index < _LARGEST_INDEX:
                continue
            found.append(
                (
                    index,
                    DeviceProperties(
                        index=index,
                        name=" ".join(db.text(row[-1]).split()),
                        memory_bytes=_positive(known["totalMemory"]),
                        compute_units=_positive(known["smCount"]),
                        compute_major=_positive(known["computeMajor"]),
                        compute_minor=known["computeMinor"] if known["computeMinor"] >= 0 else None,
                    ),
                )
            )
    return found


def _positive(value: int) -> int | None:
    return value if value > 0 else None
