"""What a serving projection takes for granted of the kernels of an engine, said of the plans that rest on it."""

from collections.abc import Iterator

import numpy as np

from projector.batch_projection import Assumption
from projector.cost.attention_kernels import LIBRARIES
from projector.cost.engine import HOST_FACTOR
from projector.graph.columns import DTYPE_BYTES, lookup
from projector.graph.serving_graph import expert_dtypes
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import PlanBatch


def kernel_assumptions(batch: PlanBatch, model: ModelArchitecture, hardware: HardwareProfile) -> Iterator[Assumption]:
    """Sentences about attention libraries, launches, 8-bit sums, experts and their exchange."""
    for library in LIBRARIES:
        named = batch.attention_backend == library.name
        if library.vendor == hardware.vendor and named.any():
            rates = f"{library.prefill_frac:.0%} (prefill) and {library.decode_frac:.0%} (decode)"
            yield Assumption(f"attention kernels of {library.name} reach {rates} of the best on this chip", named)
    launched = ~batch.cuda_graphs.astype(bool) | (batch.cuda_graph_mode == "piecewise")
    if hardware.kind == "gpu":
        yield Assumption(f"a launch through the engine's layers takes {HOST_FACTOR:g} times a bare one", launched)
    yield Assumption(
        "quick_reduce sums activations in 8 bit, which changes results", batch.quick_reduce & (batch.tp > 1)
    )
    if not model.is_moe:
        return
    yield from _stored_experts(batch, hardware)
    yield Assumption(
        "a copy of the busiest expert of each rank halves what that rank lies above the mean",
        (batch.redundant_experts > 0) & (batch.ep > 1),
    )
    yield Assumption(
        "two halves of a batch hide each other's exchange with experts; no measured engine checks it",
        batch.overlap_ep & (batch.ep > 1),
    )


def _stored_experts(batch: PlanBatch, hardware: HardwareProfile) -> Iterator[Assumption]:
    """Of expert dtypes that are storage only; of those of all weights `project_input.math_dtypes` speaks."""
    stored = expert_dtypes(batch)
    own = (batch.expert_dtype != "same") & (stored != batch.weight_dtype)
    narrower = lookup(stored, DTYPE_BYTES) < lookup(batch.compute_dtype, DTYPE_BYTES)
    only = own & narrower & ~np.isin(stored, list(hardware.peak_flop_per_s))
    for dtype in np.unique(stored[only]).tolist():
        yield Assumption(
            f"{hardware.id} has no {dtype} units: routed experts are stored and read in {dtype}, "
            "and multiplied in the compute dtype",
            only & (stored == dtype),
        )
