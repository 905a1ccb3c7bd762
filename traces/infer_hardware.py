"""Which chip a trace ran on, how many a host shows, and how much memory each has."""

from collections.abc import Iterable
from typing import Final

from traces.implied_types import Inferred
from traces.trace import DeviceProperties, Metadata

_GENERIC_NAMES: Final = frozenset({"amd radeon graphics", "amd radeon", "graphics", "gpu", "device"})
_GIB: Final = 2**30

# (compute major, minor, compute units) and memory in GiB -> the one chip that has them. Only what no other chip of the
# vendor shares is listed; the dies of MI210 and MI250X, for one, cannot be told apart.
_SIGNATURES: Final[dict[tuple[int | None, int | None, int | None, int], str]] = {
    (9, 4, 304, 192): "AMD Instinct MI300X",
}


def chip_name(metadata: Metadata, device: int | None) -> Inferred[str] | None:
    """Device name, from the properties of the device the events ran on."""
    properties = _properties(metadata, device)
    if properties is None:
        return None
    name = properties.name
    if name and name.lower() not in _GENERIC_NAMES:
        return Inferred(value=name, confidence=1.0, basis=f"name in the {metadata.devices_basis}")
    described = (
        f"{properties.compute_units} compute units, {_rounded_gib(properties)} GiB, "
        f"compute {properties.compute_major}.{properties.compute_minor}"
    )
    known = _SIGNATURES.get(
        (properties.compute_major, properties.compute_minor, properties.compute_units, _rounded_gib(properties))
    )
    if known:
        basis = f"the driver wrote {name!r} as name; {described} fit only this chip"
        return Inferred(value=known, confidence=0.7, basis=basis)
    if name:
        return Inferred(value=name, confidence=0.2, basis=f"a generic driver name; {described}")
    return None


def hbm_bytes(metadata: Metadata, device: int | None) -> Inferred[int] | None:
    """Device memory the driver reports; a little below the nominal size."""
    properties = _properties(metadata, device)
    if properties is None or properties.memory_bytes is None:
        return None
    return Inferred(value=properties.memory_bytes, confidence=0.95, basis=f"memory in the {metadata.devices_basis}")


def devices_per_host(metadata: Metadata) -> Inferred[int] | None:
    """Devices the process could see; a launcher may have hidden others, above all where it sees one."""
    count = len(metadata.devices)
    if not count:
        return None
    basis = f"{metadata.devices_basis}: {count}" + ("; others may be hidden from the process" if count == 1 else "")
    return Inferred(value=count, confidence=0.4 if count == 1 else 0.9, basis=basis)


def _properties(metadata: Metadata, device: int | None) -> DeviceProperties | None:
    """Properties of the device in question; of any, where all are alike."""
    stated = next((one for one in metadata.devices if one.index == device), None)
    return stated or (metadata.devices[0] if metadata.devices and _alike(metadata.devices) else None)


def _alike(devices: Iterable[DeviceProperties]) -> bool:
    return len({(one.name, one.memory_bytes, one.compute_units) for one in devices}) == 1


def _rounded_gib(properties: DeviceProperties) -> int:
    return round((properties.memory_bytes or 0) / _GIB / 8) * 8
