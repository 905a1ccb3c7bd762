"""A chip of which plans may take a part of the memory: others use the rest, or a margin is wanted."""

from projector.specs.constraints import Constraints
from projector.specs.hardware import Figure, HardwareProfile
from projector.units import GIGA


def with_memory_limit(hardware: HardwareProfile, constraints: Constraints) -> HardwareProfile:
    """The chip with `constraints.max_memory_gb` for its memory; unchanged without a limit or beyond what it has.

    Everything that memory decides follows: which plans fit, the KV pool of an engine, the plan that is best.
    """
    limit = constraints.max_memory_gb
    if limit is None or limit * GIGA >= hardware.hbm_bytes.value:
        return hardware
    figure = Figure(
        value=limit * GIGA,
        source=f"constraints.max_memory_gb; datasheet {hardware.hbm_bytes.value / GIGA:g} GB",
        retrieved=hardware.hbm_bytes.retrieved,
    )
    return hardware.model_copy(update={"hbm_bytes": figure, "reported_hbm_bytes": None})
