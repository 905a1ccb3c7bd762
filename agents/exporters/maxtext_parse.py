"""MaxText overrides read back as a plan."""

from collections.abc import Sequence
from math import prod

from agents.exporters.arguments import Arguments, divided, pairs, plan_of
from agents.exporters.exporter import Known, ParsedLaunch
from projector.errors import InvalidDescription

# base.yml: the axes that fill up when they are left out
FILLS = {"ici": "fsdp", "dcn": "data"}
AXES = ("data", "fsdp", "fsdp_transpose", "expert", "pipeline", "context", "tensor", "tensor_sequence")
NARROW = {
    "fp8": "fp8",
    "fp8_full": "fp8",
    "fp8_gpu": "fp8",
    "fp8_e4m3": "fp8",
    "nanoo_fp8": "fp8",
    "te_fp8_delayedscaling": "fp8",
    "te_fp8_currentscaling": "fp8",
    "te_mxfp8": "mxfp8",
    "int8": "int8",
    "fp4": "fp4",
    "te_nvfp4": "fp4",
    "te_nvfp4_no_rht": "fp4",
    "": "",
}
CONTEXT_KIND = {"ring": "ring", "all_gather": "all_gather", "ulysses": "all_to_all"}
WIDE = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def parse_maxtext(arguments: Sequence[str], known: Known) -> ParsedLaunch:
    """The plan of name=value tokens; errors as in `Exporter.parse`."""
    given = pairs(arguments)
    size = _axes(given, known.devices)
    dp = size["data"] * size["fsdp"] * size["fsdp_transpose"] * size["expert"]
    tp = size["tensor"] * size["tensor_sequence"]
    fsdp = size["fsdp"] * size["fsdp_transpose"] * size["expert"]
    moe = size["expert"] > 1 or known.moe
    vp = given.count("num_pipeline_repeats") if size["pipeline"] > 1 else 1
    zero_1 = given.switch("shard_optimizer_over_data", default=False)
    micro_batch, grad_accum = _batch(given, dp, prod(size.values()), size["pipeline"])
    fields = {
        "phase": "training",
        "dp": dp,
        "fsdp": fsdp,
        "zero_stage": 3 if fsdp * size["context"] > 1 else int(zero_1),
        "tp": tp,
        "sp": size["tensor_sequence"] > 1,
        "pp": size["pipeline"],
        "vp": vp,
        "schedule": "interleaved" if vp > 1 else "1f1b",
        "cp": size["context"],
        "cp_kind": given.one_of("context_parallel_strategy", CONTEXT_KIND, "all_gather")
        if size["context"] > 1
        else "ring",
        "ep": size["expert"],
        "etp": tp if moe else 1,
        "micro_batch": micro_batch,
        "grad_accum": grad_accum,
        "recompute": "full" if given.text("remat_policy", "full") == "full" else "selective",
        "compute_dtype": given.one_of("quantization", NARROW, "") or given.one_of("dtype", WIDE, "bf16"),
    }
    return ParsedLaunch(plan=plan_of(fields), ignored=given.ignored)


def _axes(given: Arguments, devices: int | None) -> dict[str, int]:
    """Sizes over all slices. An axis at -1, where base.yml has one, takes what the others leave."""
    across = {axis: _axis(given, "dcn", axis) for axis in AXES}
    inside = {axis: _axis(given, "ici", axis) for axis in AXES}
    slices = prod(size for size in across.values() if size > 0)
    if -1 in across.values():
        _fill(across, given.count("num_slices", slices))
    if -1 in inside.values():
        if devices is None:
            raise InvalidDescription("an ici axis is left to fill up the devices", hint="state the devices")
        _fill(inside, divided(devices, prod(across.values()), "slices of the devices"))
    return {axis: inside[axis] * across[axis] for axis in AXES}


def _axis(given: Arguments, network: str, axis: str) -> int:
    name = f"{network}_{axis}_parallelism"
    if given.text(name) == "-1" or (given.text(name) is None and FILLS[network] == axis):
        return -1
    return given.count(name)


def _fill(sizes: dict[str, int], total: int) -> None:
    """Replace the one -1. InvalidDescription where there are several or they do not divide."""
    open_axes = [axis for axis, size in sizes.items() if size == -1]
    if len(open_axes) > 1:
        raise InvalidDescription(f"{' and '.join(open_axes)} are both left open")
    rest = prod(size for size in sizes.values() if size > 0)
    sizes[open_axes[0]] = divided(total, rest, "axes of the mesh")


def _batch(given: Arguments, dp: int, devices: int, stages: int) -> tuple[int, int]:
    """(micro_batch, grad_accum): a pass over all devices holds int(devices * per_device_batch_size) sequences."""
    sequences = int(devices * given.size("per_device_batch_size", 12.0))
    steps = given.count("gradient_accumulation_steps")
    rounds = given.count("num_pipeline_microbatches", stages) if stages > 1 else 1
    return divided(sequences, dp * rounds, "dp * micro-batches of the sequences of a pass"), steps * rounds
