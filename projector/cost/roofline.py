"""Time of one compute operator: the slower of its arithmetic and its memory traffic, never below a kernel's floor."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from projector.cost.device import Device
from projector.graph.columns import DTYPE_BYTES, Column, lookup
from projector.graph.operator import HeadShape, Operator
from projector.specs.hardware import REFERENCE_HEAD, REFERENCE_KEYS, Calibration
from projector.specs.plan_batch import Column as AnyColumn
from projector.specs.software import CURRENT, Software


@dataclass(frozen=True)
class Rates:
    """Attainable rates of a device for the compute dtypes of a batch; columns where the dtype decides."""

    linear_flop_per_s: Column
    expert_flop_per_s: Column
    wide_flop_per_s: Column
    attention_flop_per_s: Column
    bytes_per_s: float
    ramp_s: float
    kernel_floor_s: float
    kernel_gap_s: float
    kernel_drain_s: float
    kernel_launch_s: float
    host_bytes_per_s: float
    collective_drift_s: float
    calibration: Calibration

    @classmethod
    def of(
        cls,
        device: Device,
        compute_dtype: AnyColumn,
        software: Software = CURRENT,
        expert_dtype: AnyColumn | None = None,
        drain_s: float = 0.0,
        collective_s: float = 0.0,
    ) -> "Rates":
        """Peaks times calibrated efficiencies, one entry a plan, for the kernels of this software.

        expert_dtype: what products of routed experts run in; None: compute_dtype. drain_s: what a kernel pays beside
        its work, where that is longer than its floor; collective_s: what a collective pays beside its transfers.
        """
        calibration = device.hardware.calibration
        sustained = calibration.sustained_frac
        gemm_frac, attention_frac = (
            sustained * frac for frac in (calibration.gemm_efficiency_frac, calibration.attention_efficiency_frac)
        )

        def products(dtype: AnyColumn) -> Column:
            narrow = np.where(lookup(dtype, DTYPE_BYTES) < 2.0, calibration.narrow_gemm_frac, 1.0)
            rate: Column = lookup(dtype, device.linear_peaks()) * gemm_frac * narrow
            return rate

        linear = products(compute_dtype)
        kernels = calibration.flash2_frac if software.attention_kernels == "flash2" else 1.0
        wide = lookup(compute_dtype, device.wide_peaks())
        return cls(
            linear_flop_per_s=linear,
            expert_flop_per_s=linear if expert_dtype is None else products(expert_dtype),
            wide_flop_per_s=wide * gemm_frac,
            attention_flop_per_s=wide * attention_frac * kernels,
            bytes_per_s=device.hbm_bytes_per_s * calibration.hbm_efficiency_frac,
            ramp_s=device.ramp_s,
            kernel_floor_s=calibration.kernel_floor_s,
            kernel_gap_s=calibration.kernel_floor_s * (software.host_factor - 1.0),
            kernel_drain_s=drain_s,
            kernel_launch_s=calibration.kernel_launch_s * software.host_factor,
            host_bytes_per_s=device.host_bytes_per_s,
            collective_drift_s=software.collective_drift * calibration.kernel_floor_s * (software.host_factor - 1.0)
            + collective_s,
            calibration=calibration,
        )

    def attention_frac(self, head: HeadShape) -> Column:
        """Rate of fused attention at this shape over that at the reference shape (`Calibration`)."""
        half_keys, half_width = self.calibration.attention_half_keys, self.calibration.attention_half_width
        width, lanes = (head.score_width + head.value_width) / 2, self.calibration.attention_lanes
        padded = sum(lanes * ceil(each / lanes) for each in (head.score_width, head.value_width)) / 2
        over_keys: Column = head.keys / (head.keys + half_keys) * (1 + half_keys / REFERENCE_KEYS)
        over_width = width / (width + half_width) * (1 + half_width / REFERENCE_HEAD)
        return over_keys * over_width * width / padded


def operator_time_s(operator: Operator, rates: Rates) -> Column:
    """Seconds of one execution on the device, shape [n].

        t = max(max(FLOP / (peak e) + parts ramp, bytes / (bandwidth e)) + kernels * drain, kernels * floor)
            + kernels * (split - 1) * floor

    peak is that of the operator's dtype, e the calibrated efficiency of large operators. The ramp makes the
    efficiency a saturating curve over size, e FLOP / (FLOP + half size), as measured GEMM sweeps show; at an equal
    FLOP rate a narrower dtype keeps the ramp, which is why fp8 gains less than its peak on small GEMMs.
    split: kernels a stack runs where a fused one would do (Software.host_factor); each pays its floor beside the work.
    drain: between two kernels of a graph the first empties the device and the second fills it; a floor, as measured
    back to back, contains it.
    Left out: shape effects at equal FLOP (tile and wave quantisation), clocks that fall under load, L2 reuse.
    """
    memory_s = operator.lengthened * operator.moved_bytes / rates.bytes_per_s
    floor_s = operator.kernels * rates.kernel_floor_s
    gap_s = operator.kernels * rates.kernel_gap_s + operator.pause_s
    drain_s = operator.kernels * rates.kernel_drain_s
    if operator.math == "none":
        return np.maximum(memory_s + drain_s, floor_s) + gap_s
    if operator.kind == "attention":
        rate = rates.attention_flop_per_s
        if operator.head is not None:
            rate = rate * rates.attention_frac(operator.head)
    else:
        linear = rates.expert_flop_per_s if operator.expert else rates.linear_flop_per_s
        rate = linear if operator.math == "linear" else rates.wide_flop_per_s
    slowdown = operator.slowdown * operator.lengthened
    arithmetic_s = slowdown * operator.flop / rate + operator.parts * rates.ramp_s
    return np.maximum(np.maximum(arithmetic_s, memory_s) + drain_s, floor_s) + gap_s
