"""Libraries of attention kernels: what each makes of a vendor's chips; `projector.specs.vendors` says which exist."""

from dataclasses import dataclass

import numpy as np

from projector.graph.engine_kernels import ChipKernels
from projector.specs.hardware import HardwareProfile
from projector.specs.plan_batch import PlanBatch


@dataclass(frozen=True)
class Library:
    """Kernels on one vendor's chips: rates in prefill and decode over those of the best kernels there."""

    name: str
    vendor: str
    prefill_frac: float
    decode_frac: float


# The calibration of a chip stands for the best kernels it has, so those are 1. Nothing measured tells the libraries of
# NVIDIA's chips apart over many shapes, so they are equal: FlashInfer (arXiv:2501.01005) and TensorRT-LLM dispatch to
# the same generation of kernels as FlashAttention-3 and CUTLASS. Triton on them: 98.6 to 105.9 % of FlashAttention-3's
# end-to-end latency after tuning (arXiv:2511.11581), less in prefill, where its kernels lack the asynchronous units
# FlashAttention-3 uses (arXiv:2407.08608: 1.5 to 2 times FlashAttention-2 forward). On AMD AITER serves DeepSeek with
# 1.2 to 1.5 times the throughput of Triton's latent attention (vLLM's post on ROCm attention backends, February 2026).
# Single figures out of these ranges are assumed, composable kernel's wholly.
LIBRARIES = (
    Library("flashinfer", "NVIDIA", 1.0, 1.0),
    Library("flash_attention", "NVIDIA", 1.0, 1.0),
    Library("trtllm", "NVIDIA", 1.0, 1.0),
    Library("cutlass", "NVIDIA", 1.0, 1.0),
    Library("triton", "NVIDIA", 0.75, 0.95),
    Library("aiter", "AMD", 1.0, 1.0),
    Library("ck", "AMD", 0.9, 0.9),
    Library("triton", "AMD", 0.7, 0.7),
)


def chip_kernels(batch: PlanBatch, hardware: HardwareProfile) -> ChipKernels:
    """How much longer attention takes with the library each plan names; one the chip lacks is nobody's to price."""
    compiled = hardware.kind != "gpu"
    if compiled or (batch.attention_backend == "auto").all():
        return ChipKernels(compiled=compiled)
    prefill, decode = np.ones(len(batch)), np.ones(len(batch))
    for library in LIBRARIES:
        if library.vendor == hardware.vendor:
            named = batch.attention_backend == library.name
            prefill = np.where(named, 1 / library.prefill_frac, prefill)
            decode = np.where(named, 1 / library.decode_frac, decode)
    return ChipKernels(prefill, decode)
