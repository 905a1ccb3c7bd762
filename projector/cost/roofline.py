"""Time of one compute operator: the slower of its arithmetic and its memory traffic, never below a kernel's floor."""

from dataclasses import dataclass

import numpy as np

from projector.cost.device import Device
from projector.graph.columns import Column, lookup
from projector.graph.operator import Operator
from projector.specs.plan_batch import Column as AnyColumn

# Arithmetic rate inside a whole step over that of the same kernel alone. Calibrated efficiencies of GPUs come from
# isolated kernels at full clocks; under a sustained load power limits lower the clock, and kernels start and end on a
# part-filled chip. One figure for all GPUs, chosen on published training runs (0.7 to 1 were compared). Efficiencies of
# TPU and Trainium files stand for operators inside a step already: they were set from whole published steps.
SUSTAINED_FRAC = {"gpu": 0.75, "tpu": 1.0, "trainium": 1.0}


@dataclass(frozen=True)
class Rates:
    """Attainable rates of a device for the compute dtypes of a batch; columns where the dtype decides."""

    linear_flop_per_s: Column
    wide_flop_per_s: Column
    attention_flop_per_s: Column
    bytes_per_s: float
    ramp_s: float
    kernel_floor_s: float
    kernel_launch_s: float

    @classmethod
    def of(cls, device: Device, compute_dtype: AnyColumn, host_factor: float = 1.0) -> "Rates":
        """Peaks times calibrated efficiencies, one entry a plan; host_factor multiplies the launch time."""
        calibration = device.hardware.calibration
        sustained = SUSTAINED_FRAC[device.hardware.kind]
        gemm_frac, attention_frac = (
            sustained * frac for frac in (calibration.gemm_efficiency_frac, calibration.attention_efficiency_frac)
        )
        wide = lookup(compute_dtype, device.wide_peaks())
        return cls(
            linear_flop_per_s=lookup(compute_dtype, device.linear_peaks()) * gemm_frac,
            wide_flop_per_s=wide * gemm_frac,
            attention_flop_per_s=wide * attention_frac,
            bytes_per_s=device.hbm_bytes_per_s * calibration.hbm_efficiency_frac,
            ramp_s=device.ramp_s,
            kernel_floor_s=calibration.kernel_floor_s,
            kernel_launch_s=calibration.kernel_launch_s * host_factor,
        )


def operator_time_s(operator: Operator, rates: Rates) -> Column:
    """Seconds of one execution on the device, shape [n].

        t = max(FLOP / (peak e) + ramp, bytes / (bandwidth e), kernels * floor)

    peak is that of the operator's dtype, e the calibrated efficiency of large operators. The ramp makes the
    efficiency a saturating curve over size, e FLOP / (FLOP + half size), as measured GEMM sweeps show; at an equal
    FLOP rate a narrower dtype keeps the ramp, which is why fp8 gains less than its peak on small GEMMs.
    Left out: shape effects at equal FLOP (tile and wave quantisation), clocks that fall under load, L2 reuse.
    """
    memory_s = operator.moved_bytes / rates.bytes_per_s
    floor_s = operator.kernels * rates.kernel_floor_s
    if operator.math == "none":
        return np.maximum(memory_s, floor_s)
    if operator.kind == "attention":
        rate = rates.attention_flop_per_s
    else:
        rate = rates.linear_flop_per_s if operator.math == "linear" else rates.wide_flop_per_s
    return np.maximum(np.maximum(operator.flop / rate + rates.ramp_s, memory_s), floor_s)
