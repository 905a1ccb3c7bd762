"""Roofs of one device: the datasheet peaks of its chip, and what of them its calibration says can be had."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from projector.breakdown import OperatorKind
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import Dtype
from projector.units import TERA
from traces.work.element_types import Format

_PEAKS: Final[dict[Format, Dtype]] = {
    "fp32": "fp32",
    "tf32": "bf16",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp8": "fp8",
    "int8": "int8",
    "fp4": "fp4",
    "unknown": "bf16",
}
# on every chip of the catalogue that has TF32 (or XF32) units they run at half the rate of bf16
_TF32_SHARE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Peak:
    """A peak rate of one device and what it is, in words."""

    flop_per_s: float
    label: str


@dataclass(frozen=True, slots=True)
class Roofs:
    """One device of a chip: figures of the chip divided by the devices it shows up as."""

    hardware: HardwareProfile

    def peak(self, number_format: Format) -> Peak | None:
        """Dense peak of a number format; None for vector arithmetic and where the datasheet has none.

        TF32 is taken at half the bf16 peak. Where the format is unknown the bf16 peak stands in, and is called so.
        """
        dtype = _PEAKS.get(number_format)
        figure = self.hardware.peak_flop_per_s.get(dtype) if dtype is not None else None
        if figure is None:
            return None
        value = figure.value / self.hardware.devices_per_chip
        if number_format == "tf32":
            return Peak(value * _TF32_SHARE, "TF32 (half the bf16 peak)")
        return Peak(value, "bf16 (number format not stated)" if number_format == "unknown" else str(dtype))

    @property
    def bytes_per_s(self) -> float:
        """Peak rate of the device's memory."""
        return self.hardware.hbm_bytes_per_s.value / self.hardware.devices_per_chip

    @property
    def kernel_floor_s(self) -> float:
        """Time no kernel goes below."""
        return self.hardware.calibration.kernel_floor_s

    def attainable_s(
        self, kind: OperatorKind, number_format: Format, flop: float | None, moved_bytes: float
    ) -> tuple[float, float]:
        """(seconds the arithmetic, seconds the bytes of a call take) at the rates large kernels reach on the chip.

        t_flop = FLOP / (peak e), t_bytes = bytes / (bandwidth e), e the calibrated efficiencies. Without a peak, or
        without countable FLOP, the arithmetic takes no time.
        """
        calibration = self.hardware.calibration
        efficiency = calibration.attention_efficiency_frac if kind == "attention" else calibration.gemm_efficiency_frac
        peak = self.peak(number_format)
        flop_s = flop / (peak.flop_per_s * efficiency) if peak is not None and flop is not None else 0.0
        return flop_s, moved_bytes / (self.bytes_per_s * calibration.hbm_efficiency_frac)

    def described(self, formats: Iterable[Format]) -> str:
        """The peaks of these formats, each once, and of the memory, in words."""
        peaks = [self.peak(one) for one in dict.fromkeys(formats)]
        told = [f"{one.label} {one.flop_per_s / TERA:.4g} TFLOP/s" for one in peaks if one is not None]
        return f"{self.hardware.id}: {', '.join((*told, f'memory {self.bytes_per_s / TERA:.4g} TB/s'))}"
