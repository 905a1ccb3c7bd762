"""What limits kernels of known work where the chip is not known: their intensity beside the ridges of all chips.

Below the lowest ridge of the accelerators sold for this work HBM limits a kernel on any of them, above the highest
arithmetic does; between them the chip decides, so nothing is said. Vector work lies far below either.
"""

from collections import defaultdict
from typing import Final

from traces.measure_types import ClassWork
from traces.work_types import Bound, BoundTime, OperatorWork

# dense peak over HBM bandwidth: 117 to 560 FLOP/byte over the chips of the catalogue in 16-bit formats, up to 1,148 in
# 8-bit ones; chips sold before them come down to 75, and fp32 outside of matrix units to 10 (A100)
LOWEST_RIDGE_FLOP_PER_BYTE: Final = {"fp32": 8.0, "unknown": 8.0}
LOWEST_OF_NARROWER_FORMATS: Final = 75.0
HIGHEST_RIDGE_FLOP_PER_BYTE: Final = {"fp8": 1200.0, "int8": 1200.0, "fp4": 2400.0, "unknown": 2400.0}
HIGHEST_OF_WIDER_FORMATS: Final = 600.0


def by_intensity(work: ClassWork) -> ClassWork:
    """The kind with its time split by what limits it on every chip; unknown where chips differ."""
    times: dict[Bound, int] = defaultdict(int)
    for one in work.operators:
        times[_bound(one)] += one.total_ns
    times["unknown"] += max(0, work.total_ns - sum(times.values()))
    ordered = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    return work.model_copy(
        update={"bounds": tuple(BoundTime(bound=bound, total_ns=total) for bound, total in ordered if total)}
    )


def _bound(one: OperatorWork) -> Bound:
    if one.flop is None or one.moved_bytes <= 0:
        return "unknown"
    intensity = one.flop / one.moved_bytes
    lowest = LOWEST_RIDGE_FLOP_PER_BYTE.get(one.format, LOWEST_OF_NARROWER_FORMATS)
    if one.format == "vector" or intensity < lowest:
        return "memory"
    highest = HIGHEST_RIDGE_FLOP_PER_BYTE.get(one.format, HIGHEST_OF_WIDER_FORMATS)
    return "compute" if intensity > highest else "unknown"
