"""vLLM arguments read back as a plan."""

import json
from collections.abc import Sequence

from agents.exporters.arguments import Arguments, divided, flags, plan_of
from agents.exporters.exporter import Known, ParsedLaunch
from agents.exporters.vllm_engine import BACKENDS, LATENT_BACKENDS, METHODS
from agents.exporters.vllm_formats import multiplies_in
from agents.wording import quoted
from projector.errors import InvalidDescription
from projector.specs.plan import AttentionBackend, Dtype, ExpertDispatch, ParallelismPlan, Speculation

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
BACKEND_NAMES: dict[str, AttentionBackend] = {
    name: backend for names in (BACKENDS, LATENT_BACKENDS) for backend, name in names.items()
}
DRAFTERS: dict[str, Speculation] = {name: method for method, name in METHODS.items()} | {"eagle": "eagle"}
DISPATCH: dict[str, ExpertDispatch] = {
    "allgather_reducescatter": "all_gather",
    "deepep_low_latency": "deepep",
    "deepep_high_throughput": "deepep",
    "deepep_v2": "deepep",
}
DEFAULTS = ParallelismPlan()
# share of memory this release takes unasked
ENGINE_FRAC = 0.92


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
        "hbm_frac": given.size("--gpu-memory-utilization", ENGINE_FRAC),
        "kv_block_tokens": given.count("--block-size", DEFAULTS.kv_block_tokens),
        "attention_backend": given.one_of("--attention-backend", BACKEND_NAMES, "auto"),
        "expert_dispatch": given.one_of("--all2all-backend", DISPATCH, "auto"),
        "overlap_ep": given.has("--enable-dbo"),
        **_compiled(given),
        **_drafted(given),
        **_copies(given),
        **_formats(given, known),
    }
    return ParsedLaunch(plan=plan_of(fields), ignored=given.ignored)


def _chunk(given: Arguments) -> int:
    """Tokens of a step; 0 where prompts are not cut."""
    whole = given.has("--disable-chunked-prefill", "--no-enable-chunked-prefill")
    given.has("--enable-chunked-prefill")
    tokens = given.count_or_fill("--max-num-batched-tokens")
    return 0 if whole else tokens or DEFAULTS.chunked_prefill_tokens


def _compiled(given: Arguments) -> dict[str, str | bool]:
    """Graphs and fusions named in --compilation-config; whatever else it holds is not read."""
    chosen = _document(given, "--compilation-config")
    passes = chosen.get("pass_config")
    return {
        "cuda_graph_mode": "piecewise" if chosen.get("cudagraph_mode") == "PIECEWISE" else "full",
        "fuse_all_reduce_norm": isinstance(passes, dict) and passes.get("fuse_allreduce_rms") is True,
    }


def _drafted(given: Arguments) -> dict[str, str | int]:
    method = given.one_of("--spec-method", DRAFTERS, "none")
    given.text("--spec-model")
    return {"speculation": method, "speculative_tokens": given.count("--spec-tokens") if method != "none" else 0}


def _copies(given: Arguments) -> dict[str, int]:
    """Redundant experts, which only exist with the balancer on."""
    copies = _document(given, "--eplb-config").get("num_redundant_experts", 0)
    if not given.has("--enable-eplb"):
        return {}
    if isinstance(copies, bool) or not isinstance(copies, int) or copies < 0:
        raise InvalidDescription("--eplb-config: num_redundant_experts is no whole number of at least 0")
    return {"redundant_experts": copies}


def _document(given: Arguments, name: str) -> dict[str, object]:
    """The JSON object an argument holds; {} where it is absent. InvalidDescription for anything else."""
    text = given.text(name)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidDescription(f"{name} is {quoted(text)!r}, not a JSON object")
    return found


def _formats(given: Arguments, known: Known) -> dict[str, Dtype]:
    activations = given.one_of("--dtype", WIDE, "bf16")
    weights = given.one_of("--quantization", NARROW, activations)
    return {
        "weight_dtype": weights,
        "compute_dtype": multiplies_in(weights, activations, known.hardware),
        "kv_cache_dtype": given.one_of("--kv-cache-dtype", {**KV_CACHE, "auto": activations}, activations),
    }
