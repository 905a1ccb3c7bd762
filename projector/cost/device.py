"""Device: the rates of one device, from the datasheet figures and calibration of its chip."""

from dataclasses import dataclass

import numpy as np

from projector.errors import InvalidDescription
from projector.graph.columns import DTYPE_BYTES, lookup
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ComputeDtype
from projector.specs.plan_batch import Column as AnyColumn

# What runs in place of a dtype the chip has no units for. Narrow formats are widened, never the other way round.
WIDER: dict[ComputeDtype, tuple[ComputeDtype, ...]] = {
    "nvfp4": ("fp4", "mxfp8", "fp8", "bf16", "fp16"),
    "mxfp8": ("fp8", "bf16", "fp16"),
    "fp4": ("fp8", "bf16", "fp16"),
    "fp8": ("bf16", "fp16"),
    "int8": ("bf16", "fp16"),
    "fp16": ("bf16",),
    "bf16": ("fp16",),
    "fp32": (),
}


@dataclass(frozen=True)
class Device:
    """Rates of one device: the chip's figures over its devices_per_chip. Base SI, efficiencies as fractions.

    peak_flop_per_s   dense peak a dtype
    ramp_s            fixed cost of a GEMM: the time its half-size FLOP take at the efficiency of a large 16-bit GEMM,
                      so a GEMM of gemm_half_size_flop reaches half the efficiency of a large one
    host_bytes_per_s  attainable, to host memory and back, each; infinite where the chip file states no figure, which
                      `project` says of every plan that needs it
    """

    hardware: HardwareProfile
    peak_flop_per_s: dict[ComputeDtype, float]
    hbm_bytes: float
    hbm_bytes_per_s: float
    ramp_s: float
    host_bytes_per_s: float

    @classmethod
    def of(cls, hardware: HardwareProfile) -> "Device":
        """The device of a chip. InvalidDescription where it offers no 16-bit dtype."""
        share = hardware.devices_per_chip
        peaks = {dtype: figure.value / share for dtype, figure in hardware.peak_flop_per_s.items()}
        calibration = hardware.calibration
        wide = peaks.get("bf16", peaks.get("fp16"))
        if wide is None:
            raise InvalidDescription(f"{hardware.id} states neither a bf16 nor an fp16 peak")
        return cls(
            hardware=hardware,
            peak_flop_per_s=peaks,
            hbm_bytes=hardware.hbm_bytes.value / share,
            hbm_bytes_per_s=hardware.hbm_bytes_per_s.value / share,
            ramp_s=calibration.gemm_half_size_flop / (wide * calibration.gemm_efficiency_frac),
            host_bytes_per_s=_host_bytes_per_s(hardware),
        )

    def runs(self, dtype: ComputeDtype) -> ComputeDtype:
        """The dtype GEMMs of `dtype` run in here: itself where the chip offers it, otherwise the next wider one.

        InvalidDescription where there is none (fp32 on a chip without an fp32 figure).
        """
        if dtype in self.peak_flop_per_s:
            return dtype
        for wider in WIDER[dtype]:
            if wider in self.peak_flop_per_s:
                return wider
        offered = ", ".join(sorted(self.peak_flop_per_s))
        raise InvalidDescription(f"{self.hardware.id} does not offer {dtype}", hint=f"offered: {offered}")

    def wide_peaks(self) -> dict[str, float]:
        """Peak of what stays wide (attention, head) beside each compute dtype: fp32 for fp32, 16 bit otherwise."""
        half = self.peak_flop_per_s[self.runs("bf16")]
        return dict.fromkeys(DTYPE_BYTES, half) | {"fp32": self.peak_flop_per_s.get("fp32", half)}

    def linear_peaks(self) -> dict[str, float]:
        """Peak of GEMMs in each compute dtype this chip can run, itself or widened."""
        peaks: dict[str, float] = {}
        for dtype in WIDER:
            try:
                peaks[dtype] = self.peak_flop_per_s[self.runs(dtype)]
            except InvalidDescription:
                continue
        return peaks


def product_dtypes(stored: AnyColumn, compute: AnyColumn, device: Device) -> AnyColumn:
    """What products with weights stored so run in: the narrower of both dtypes where the chip has units for it,
    otherwise the compute dtype, or what runs in its place. InvalidDescription where no dtype is wide enough."""
    narrower = lookup(stored, DTYPE_BYTES) < lookup(compute, DTYPE_BYTES)
    units = np.isin(stored, list(device.peak_flop_per_s))
    distinct, inverse = np.unique(np.where(narrower & units, stored, compute), return_inverse=True)
    return np.array([device.runs(dtype.item()) for dtype in distinct])[inverse]


def _host_bytes_per_s(hardware: HardwareProfile) -> float:
    """The host link derated like the chip's other links: nobody measured it apart."""
    if hardware.host is None:
        return float("inf")
    rate = hardware.host.bytes_per_s_one_way.value / hardware.devices_per_chip
    return rate * hardware.calibration.link_efficiency_frac
