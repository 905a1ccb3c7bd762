"""NVIDIA's measured kernel tables, through the facade of `aiconfigurator-core` (extra "kernel-tables", 114 MB).

The package is imported when first asked. Models are those whose configuration it bundles: for others it would ask a
hub, which an answer must not depend on.
"""

import logging
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.kernel_tables.tables import StepQuestion, TabledSteps, Untabled
from projector.errors import InvalidDescription
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan

PACKAGE = "aiconfigurator-core"
# chips and engines by its names, number formats of weights and caches by its names
SYSTEMS = {
    "h100-sxm": "h100_sxm", "h200": "h200_sxm", "b200": "b200_sxm", "b300": "b300_sxm", "gb200": "gb200",
    "gb300": "gb300", "a100-80-sxm": "a100_sxm", "l40s": "l40s",
}  # fmt: skip
BACKENDS = {"tensorrt-llm": "trtllm", "trtllm": "trtllm", "vllm": "vllm", "sglang": "sglang"}
DEFAULT_BACKEND = "trtllm"
WEIGHTS = {"bf16": "bfloat16", "fp8": "fp8", "fp4": "nvfp4"}
CACHES = {"bf16": "bfloat16", "fp8": "fp8", "int8": "int8"}


class Aiconfigurator:
    """The tables of the installed package."""

    name = "aiconfigurator"

    def __init__(self) -> None:
        """InvalidDescription where the package is not installed."""
        try:
            handle = import_module("aiconfigurator_core.sdk").EngineHandle
        except ImportError as missing:
            raise InvalidDescription(
                f"kernel tables of {self.name} need {PACKAGE}", hint="pip install 'shardwise[kernel-tables]'"
            ) from missing
        # what it warns of is in the reason of an Untabled
        logging.getLogger("aiconfigurator_core").setLevel(logging.CRITICAL)
        self._handle: Any = handle
        self._bundled = _bundled_models()

    def steps(
        self,
        question: StepQuestion,
        plan: ParallelismPlan,
        model: ModelArchitecture,
        hardware: HardwareProfile,
        engine: str | None,
    ) -> TabledSteps | Untabled:
        """The decode and the mixed step of a plan's engine; Untabled where a kernel was not measured."""
        system, backend = SYSTEMS.get(hardware.id), _backend(engine)
        path = self._bundled.get((model.hf_id or "").lower())
        if system is None or backend is None:
            return Untabled(reason=f"no tables of {hardware.id if system is None else engine}")
        if path is None:
            return Untabled(reason=f"no bundled configuration of {model.hf_id or model.name}")
        if plan.weight_dtype not in WEIGHTS or plan.kv_cache_dtype not in CACHES:
            return Untabled(reason=f"no tables of {plan.weight_dtype} weights with {plan.kv_cache_dtype} caches")
        try:
            compiled = self._handle.compile(path, system, backend, **_layout(plan, model))
            decode_ms = compiled.decode_step_latency(question.decoding, question.input_len, question.output_len)
            mixed_ms = compiled.mixed_step_latency(
                question.prompt_tokens, question.decoding, question.input_len, question.output_len
            )
        except Exception as fault:  # its errors have no common root of their own
            # its messages end with the path of a file
            said = (str(fault).splitlines() or [type(fault).__name__])[0].split(" at /")[0]
            return Untabled(reason=f"{self.name}: {said[:200]}")
        release = f"{PACKAGE} {metadata.version(PACKAGE)}"
        return TabledSteps(tables=f"{release}, {backend} on {system}", decode_ms=decode_ms, mixed_ms=mixed_ms)


def _backend(engine: str | None) -> str | None:
    if engine is None:
        return DEFAULT_BACKEND
    words = engine.lower().split()
    return BACKENDS.get(words[0]) if words else None


def _layout(plan: ParallelismPlan, model: ModelArchitecture) -> dict[str, object]:
    experts = {"moe_tp_size": plan.etp, "moe_ep_size": plan.ep} if model.is_moe else {}
    weights = WEIGHTS[plan.weight_dtype]
    return {
        "tp_size": plan.tp,
        "pp_size": plan.pp,
        "attention_dp_size": plan.attention_dp,
        "gemm_quant_mode": weights,
        "moe_quant_mode": weights if model.is_moe else None,
        "kvcache_quant_mode": CACHES[plan.kv_cache_dtype],
        # its kernels of latent attention were measured in 16 bit
        "fmha_quant_mode": "bfloat16" if model.is_mla else None,
        **experts,
    }


def _bundled_models() -> dict[str, str]:
    """Hub ids of the configurations inside the package, lower-cased -> as it spells them."""
    found = find_spec("aiconfigurator_core")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent / "model_configs"
    names = [path.name.removesuffix("_config.json") for path in sorted(folder.glob("*_config.json"))]
    return {name.replace("--", "/").lower(): name.replace("--", "/") for name in names if "hf_quant" not in name}
