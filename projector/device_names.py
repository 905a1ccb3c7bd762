"""From a profiler's device string to a chip of the catalogue, or to None: a wrong chip is worse than none."""

import re
from collections.abc import Sequence

from projector.specs.hardware import HardwareProfile

# Words that name a board, a partition or a memory: a chip matches only where its own id has the same ones.
BOARDS = frozenset({"pcie", "nvl", "hbm2e", "mig", "pg506", "gh200", "vgpu", "grid"})

# Drivers report 1.06 to 1.08 times the decimal figure of a datasheet (80 "GB" is 80 GiB less a reserve).
HBM_RATIO_LOW = 0.92
HBM_RATIO_HIGH = 1.10


def match_device(device_name: str, hbm_bytes: float | None, chips: Sequence[HardwareProfile]) -> HardwareProfile | None:
    """The one chip of `chips` that `device_name` means, or None when none or several could be meant.

    An id or alias decides, unless `hbm_bytes` (bytes of memory the driver reports for one device, so a
    devices_per_chip-th of the chip's) contradicts it.
    Otherwise the family has to occur as a word ("a100" in "NVIDIA A100-PG509-200"), the words that name a board have to
    be those of the chip, and the memory has to single out one chip of the family.
    """
    squeezed = _squeeze(device_name)
    for profile in chips:
        if squeezed in {_squeeze(name) for name in (profile.id, *profile.aliases)}:
            return profile if hbm_bytes is None or _memory_agrees(profile, hbm_bytes) else None
    if hbm_bytes is None:
        return None
    words = _words(device_name)
    family = [p for p in chips if _of_family(p, words) and _memory_agrees(p, hbm_bytes)]
    return family[0] if len(family) == 1 else None


def _squeeze(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _words(name: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9]+", name.lower()))


def _of_family(profile: HardwareProfile, words: frozenset[str]) -> bool:
    """A GPU whose id starts with a word of the string that names one model ("h100", not "rtx"), on the same board.

    A string with two models of one number ("MI250X / MI250") names neither.
    """
    model = re.match(r"([a-z]+[0-9]+)[a-z]*", profile.id)
    if profile.kind != "gpu" or model is None or model[0] not in words:
        return False
    alike = [word for word in words if word.startswith(model[1])]
    return len(alike) == 1 and _words(profile.id) & BOARDS == words & BOARDS


def _memory_agrees(profile: HardwareProfile, hbm_bytes: float) -> bool:
    device_bytes = profile.hbm_bytes.value / profile.devices_per_chip
    return HBM_RATIO_LOW <= hbm_bytes / device_bytes <= HBM_RATIO_HIGH
