"""Memory columns, and what both phases share: the reserve nobody may plan with."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from projector.breakdown import MemoryBreakdown
from projector.cost.stages import Stage
from projector.graph.columns import Column, Switch
from projector.graph.operator import Operator
from projector.specs.hardware import HardwareProfile

# Kept free on every device: a fixed part for runtime context, kernels and communicators, and a share for allocator
# fragmentation and transient peaks. Runs planned into the last few per cent were up to six times slower than smaller
# ones. What XLA offers on a TPU (30.75 GiB of the "32 GB" of a v4) is without its reserve, and it knows the peak before
# it runs.
RUNTIME_BYTES = {"gpu": 1.5e9, "tpu": 0.0, "trainium": 0.3e9}
RESERVED_FRAC = {"gpu": 0.02, "tpu": 0.0, "trainium": 0.02}
# Standard deviation of ln(measured / projected) where nobody is told the peak before a run: the published memory of 42
# runs on GPUs. A compiler that plans buffers says before it runs whether a program fits.
MEMORY_SPREAD = {"gpu": 0.05, "tpu": 0.0, "trainium": 0.0}


ITEMS = (
    "weights_bytes",
    "draft_bytes",
    "gradients_bytes",
    "optimizer_bytes",
    "activations_bytes",
    "kv_cache_bytes",
    "prefix_cache_bytes",
    "graphs_bytes",
    "buffers_bytes",
    "reserve_bytes",
)


@dataclass(frozen=True)
class MemoryColumns:
    """Peak bytes of the fullest device a plan, itemised as in `MemoryBreakdown`; columns of shape [n].

    Items that are None are nobody's: nothing of the kind is held. kv_pool_bytes and concurrency_limit (of str) are
    those of an engine; they are no items.
    """

    weights_bytes: Column
    gradients_bytes: Column
    optimizer_bytes: Column
    activations_bytes: Column
    kv_cache_bytes: Column
    buffers_bytes: Column
    reserve_bytes: Column
    capacity_bytes: float
    draft_bytes: Column | None = None
    prefix_cache_bytes: Column | None = None
    graphs_bytes: Column | None = None
    kv_pool_bytes: Column | None = None
    concurrency_limit: NDArray[np.str_] | None = None

    def items(self) -> dict[str, Column]:
        """The items that are held, by name."""
        return {name: column for name in ITEMS if (column := getattr(self, name)) is not None}

    @property
    def total_bytes(self) -> Column:
        """Sum of the items."""
        total: Column = sum(self.items().values(), start=np.zeros_like(self.weights_bytes))
        return total

    @property
    def fits(self) -> Switch:
        """Whether the sum is within the capacity, shape [n]."""
        fits: Switch = self.total_bytes <= self.capacity_bytes
        return fits

    def record(self, index: int) -> MemoryBreakdown:
        """The items of one plan."""
        return MemoryBreakdown(
            **{name: float(column[index]) for name, column in self.items().items()},
            capacity_bytes=self.capacity_bytes,
            kv_pool_bytes=None if self.kv_pool_bytes is None else float(self.kv_pool_bytes[index]),
            concurrency_limit=None if self.concurrency_limit is None else self.concurrency_limit[index].item(),
        )

    def fuller(self, other: "MemoryColumns") -> "MemoryColumns":
        """For each plan the items of the fuller of two devices of a trainer."""
        mine = self.total_bytes >= other.total_bytes
        items = {name: np.where(mine, column, getattr(other, name)) for name, column in self.items().items()}
        return MemoryColumns(**items, capacity_bytes=self.capacity_bytes)


def chance_to_fit(memory: MemoryColumns, hardware: HardwareProfile) -> Column:
    """Probability that the true peak stays within the capacity, where the projected one does; 0 where it does not.

        1 / (1 + (total / capacity)^k),  k = pi / (sqrt(3) spread)

    Measured over projected memory taken as log-logistic about 1 with `MEMORY_SPREAD`. Throughput times this is what a
    plan yields in expectation: one that runs out of memory yields nothing.
    """
    spread = MEMORY_SPREAD[hardware.kind]
    if spread == 0:
        return np.where(memory.fits, 1.0, 0.0)
    steepness = pi / sqrt(3.0) / spread
    odds: Column = np.exp(steepness * np.log(memory.total_bytes / memory.capacity_bytes))
    chance: Column = np.where(memory.fits, 1.0 / (1.0 + odds), 0.0)
    return chance


def reserve_bytes(hardware: HardwareProfile, zero: Column) -> Column:
    """Bytes of a device no plan may count on: a fixed runtime part and a share of the capacity, by kind of chip."""
    capacity_bytes = hardware.hbm_bytes.value / hardware.devices_per_chip
    return zero + runtime_bytes(hardware) + RESERVED_FRAC[hardware.kind] * capacity_bytes


def runtime_bytes(hardware: HardwareProfile) -> float:
    """The part of the reserve that lies outside the framework's allocator: context, kernels, communicators."""
    return RUNTIME_BYTES[hardware.kind] / hardware.devices_per_chip


def device_bytes(hardware: HardwareProfile) -> float:
    """Memory the runtime counts on a device; what the datasheet states where no source says it.

    Datasheets call 2^30 bytes a GB and catalogues read them as 1e9: an "80 GB" chip has 85e9.
    """
    whole = hardware.reported_hbm_bytes or hardware.hbm_bytes
    return whole.value / hardware.devices_per_chip


def stage_parameters(forward: Iterable[Operator], stage: Stage, zero: Column) -> tuple[Column, Column]:
    """(dense, expert) weights a device of the stage holds before data ranks share them out."""
    dense, expert = zero, zero
    for operator in forward:
        if operator.parameters is None:
            continue
        held = stage.places[operator.place] * operator.parameters
        dense, expert = (dense, expert + held) if operator.expert else (dense + held, expert)
    return dense, expert
