"""What of an engine exists on whose chips: attention kernels and quantised all-reduces by vendor."""

from typing import Final

from projector.specs.hardware import HardwareProfile
from projector.specs.plan import AttentionBackend

# Attention kernels engines can be told to use (vLLM's and SGLang's lists of backends); "auto" is everywhere. The
# kernels of TRT-LLM and CUTLASS's latent attention are built for Blackwell, which is told by its fp4 units.
NVIDIA_BACKENDS: Final[tuple[AttentionBackend, ...]] = ("flashinfer", "flash_attention", "triton")
BLACKWELL_BACKENDS: Final[tuple[AttentionBackend, ...]] = ("trtllm", "cutlass")
AMD_BACKENDS: Final[tuple[AttentionBackend, ...]] = ("aiter", "ck", "triton")


def attention_backends(hardware: HardwareProfile) -> tuple[AttentionBackend, ...]:
    """Backends that exist on this chip, "auto" first; that alone where the compiler brings its own."""
    if hardware.kind != "gpu":
        return ("auto",)
    if hardware.vendor == "AMD":
        return ("auto", *AMD_BACKENDS)
    if hardware.vendor == "NVIDIA":
        newest = BLACKWELL_BACKENDS if hardware.peak_flop_per_s.keys() & {"fp4", "nvfp4"} else ()
        return ("auto", *NVIDIA_BACKENDS, *newest)
    return ("auto",)


def has_quick_reduce(hardware: HardwareProfile) -> bool:
    """Whether quantised all-reduces exist here: ROCm alone (vLLM pull request 19744, SGLang 6619)."""
    return hardware.kind == "gpu" and hardware.vendor == "AMD"
