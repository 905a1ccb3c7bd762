"""vLLM's number formats: activations, stored weights, KV cache.

Narrow weights are quantised when a 16-bit checkpoint is loaded ("online"); the type of the multiplication follows from
them and from the chip, no argument sets it.
"""

from agents.exporters.account import Account
from agents.exporters.exporter import Job
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import Dtype

WIDE: dict[Dtype, str] = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
# The method called "fp8" only reads checkpoints that are quantised already.
ONLINE: dict[Dtype, str] = {"fp8": "fp8_per_tensor", "fp4": "mxfp4"}
KV_CACHE: dict[Dtype, str] = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "auto",
    "fp8": "fp8",
    "int8": "int8_per_token_head",
    "fp4": "nvfp4",
}


def choose_formats(account: Account, job: Job) -> None:
    """Outcomes of weight_dtype, compute_dtype and kv_cache_dtype."""
    plan = job.plan
    weights, activations = _weights(account)
    runs = multiplies_in(weights, activations, job.hardware)
    if plan.compute_dtype == runs:
        account.imply("compute_dtype", "follows from the weights and the chip")
    else:
        account.refuse("compute_dtype", "follows from the weights and the chip", instead=runs)
    _kv_cache(account, activations)


def multiplies_in(weights: Dtype, activations: Dtype, hardware: HardwareProfile | None) -> Dtype:
    """Type the GEMMs run in: that of the weights where the chip has units for it, else that of the activations.

    Of an unknown chip the units are taken to be there.
    """
    return weights if hardware is None or weights in hardware.peak_flop_per_s else activations


def _weights(account: Account) -> tuple[Dtype, Dtype]:
    """(stored weights, activations) that the arguments ask for."""
    dtype = account.plan.weight_dtype
    if dtype in WIDE:
        account.say("weight_dtype", ("--dtype", WIDE[dtype]), note="a checkpoint that is quantised already stays so")
        return dtype, dtype
    account.add("--dtype", "bfloat16")
    if dtype not in ONLINE:
        account.refuse(
            "weight_dtype",
            f"{dtype} weights of all layers need a checkpoint that is quantised already",
            instead="bf16",
        )
        return "bf16", "bf16"
    account.say("weight_dtype", ("--quantization", ONLINE[dtype]), note="from a 16-bit checkpoint, while it is loaded")
    account.note("Leave --quantization out for a checkpoint that is quantised already: its own scheme is read.")
    return dtype, "bf16"


def _kv_cache(account: Account, activations: Dtype) -> None:
    """A wide cache has the type of the activations; narrow ones are free."""
    dtype = account.plan.kv_cache_dtype
    if dtype in WIDE and dtype != activations:
        account.add("--kv-cache-dtype", KV_CACHE[activations])
        account.refuse("kv_cache_dtype", "a cache that is not quantised has the activations' type", instead=activations)
    else:
        account.say("kv_cache_dtype", ("--kv-cache-dtype", KV_CACHE[dtype]))
    if dtype in ("int8", "fp4"):
        account.note(f"Not every attention backend and chip has a {dtype} KV cache; vLLM says so at start.")
