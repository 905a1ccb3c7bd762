"""MaxText's number formats: the dtype of activations, and quantisation schemes that differ by chip."""

from agents.exporters.account import Account, Value
from agents.exporters.exporter import Job

DTYPE = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
QWIX = ("use_qwix_quantization", True)
# TPU schemes run through qwix: without it the framework refuses "fp8_full".
TPU: dict[str, tuple[tuple[str, Value], ...]] = {
    "fp8": (("quantization", "fp8_full"), QWIX),
    "int8": (("quantization", "int8"), QWIX),
    "fp4": (("quantization", "fp4"), QWIX),
}
# The Transformer Engine schemes; plain "fp8" keeps delayed scales and refuses gradient accumulation.
NVIDIA: dict[str, tuple[tuple[str, Value], ...]] = {
    "fp8": (("quantization", "te_fp8_currentscaling"),),
    "int8": (("quantization", "int8"), QWIX),
    "fp4": (("quantization", "te_nvfp4"),),
    "mxfp8": (("quantization", "te_mxfp8"),),
}


def choose_precision(account: Account, job: Job) -> None:
    """Outcome of compute_dtype."""
    dtype = account.plan.compute_dtype
    if dtype in DTYPE:
        account.say("compute_dtype", ("dtype", DTYPE[dtype]))
        return
    account.add("dtype", "bfloat16")
    reason = _obstacle(job)
    schemes = _schemes(job)
    if dtype == "nvfp4" and "mxfp8" in schemes and not job.moe:
        for name, value in schemes["fp4"]:
            account.add(name, value)
        account.refuse("compute_dtype", "te_nvfp4 is what fp4 means here", instead="fp4", inert=True)
    elif reason:
        account.refuse("compute_dtype", reason, instead="bf16")
    else:
        account.say("compute_dtype", *_schemes(job)[dtype])


def _schemes(job: Job) -> dict[str, tuple[tuple[str, Value], ...]]:
    chip = job.hardware
    if chip is None:
        return {}
    return TPU if chip.kind == "tpu" else NVIDIA if chip.vendor == "NVIDIA" else {}


def _obstacle(job: Job) -> str:
    """Why the plan's narrow dtype cannot be said; "" where it can."""
    dtype, schemes = job.plan.compute_dtype, _schemes(job)
    if job.hardware is None:
        return f"which {dtype} scheme runs depends on the chip, which is unknown"
    if dtype not in schemes:
        return f"no {dtype} scheme was checked for {job.hardware.id}"
    if job.moe and schemes[dtype] != TPU["fp8"]:
        return f"grouped expert GEMMs are not quantised by the {dtype} scheme"
    return ""
