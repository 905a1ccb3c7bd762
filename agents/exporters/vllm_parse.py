"""vLLM arguments read back as a plan."""

from collections.abc import Sequence

from agents.exporters.arguments import Arguments, divided, flags, plan_of
from agents.exporters.exporter import Known, ParsedLaunch
from agents.exporters.vllm_formats import multiplies_in
from projector.specs.plan import Dtype, ParallelismPlan

SHORT = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-ep": "--enable-expert-parallel",
    "-q": "--quantization",
}
WIDE: dict[str, Dtype] = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "auto": "bf16",
}
NARROW: dict[str, Dtype] = {
    "fp8": "fp8",
    "fp8_per_tensor": "fp8",
    "fp8_per_block": "fp8",
    "fp8_per_channel": "fp8",
    "mxfp8": "fp8",
    "mxfp4": "fp4",
    "gpt_oss_mxfp4": "fp4",
    "modelopt_fp4": "fp4",
}
KV_CACHE: dict[str, Dtype] = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_per_token_head": "fp8",
    "int8_per_token_head": "int8",
    "nvfp4": "fp4",
}
DEFAULTS = ParallelismPlan()


def parse_vllm(arguments: Sequence[str], known: Known) -> ParsedLaunch:
    """The plan of an argument vector; errors as in `Exporter.parse`."""
    given = flags(arguments, SHORT)
    tp = given.count("--tensor-parallel-size")
    pp = given.count("--pipeline-parallel-size")
    attention_dp = given.count("--data-parallel-size")
    engine = attention_dp * tp * pp
    engines = divided(known.devices or engine, engine, "devices of an engine")
    spread = given.has("--enable-expert-parallel")
    ranks = attention_dp * tp
    fields = {
        "phase": "serving",
        "dp": engines * attention_dp,
        "attention_dp": attention_dp,
        "tp": tp,
        "pp": pp,
        "ep": ranks if spread else 1,
        "etp": ranks if known.moe and not spread else 1,
        "max_num_seqs": given.count("--max-num-seqs", DEFAULTS.max_num_seqs) * attention_dp,
        "chunked_prefill_tokens": _chunk(given),
        "cuda_graphs": not given.has("--enforce-eager"),
        **_formats(given, known),
    }
    return ParsedLaunch(plan=plan_of(fields), ignored=given.ignored)


def _chunk(given: Arguments) -> int:
    """Tokens of a step; 0 where prompts are not cut."""
    whole = given.has("--disable-chunked-prefill", "--no-enable-chunked-prefill")
    given.has("--enable-chunked-prefill")
    tokens = given.count_or_fill("--max-num-batched-tokens")
    return 0 if whole else tokens or DEFAULTS.chunked_prefill_tokens


def _formats(given: Arguments, known: Known) -> dict[str, Dtype]:
    activations = given.one_of("--dtype", WIDE, "bf16")
    weights = given.one_of("--quantization", NARROW, activations)
    return {
        "weight_dtype": weights,
        "compute_dtype": multiplies_in(weights, activations, known.hardware),
        "kv_cache_dtype": given.one_of("--kv-cache-dtype", {**KV_CACHE, "auto": activations}, activations),
    }
