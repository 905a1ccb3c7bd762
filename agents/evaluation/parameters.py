"""Parameters: every constant of the training model that was chosen on published step times, in one table.

Nothing here is keyed by a model, a workload, a row or a source: a parameter belongs to a family of chips that share
silicon, or to a habit of a software stack. Its present value stands in the chip files or `projector.specs.software`;
here stand the value it would have without any fit, how far it may reasonably lie from there, and its bounds. Constants
that are not listed come from datasheets or documents, or are assumed and never fitted.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from agents.evaluation.cases import Case
from projector.specs.hardware import Calibration
from projector.specs.software import (
    CURRENT,
    INTERNEVO,
    LLM_FOUNDRY,
    MEGATRON_2022,
    MEGATRON_DEEPSPEED,
    MEGATRON_RECIPES,
    MEGATRON_RECIPES_2025,
    MEGATRON_RECIPES_FUSED_EXPERTS,
    NATURAL_IMBALANCE,
    XLA,
    Software,
)

AMPERE = ("a100-80-sxm", "a100-40-sxm", "a100-80-pcie")
HOPPER = ("h100-sxm", "h200", "h800", "h100-nvl", "h100-pcie")
HOPPER_500_W = ("h100-sxm-96gb-hbm2e(500w)",)
BLACKWELL = ("b200", "gb200")
BLACKWELL_ULTRA = ("b300", "gb300")
CDNA3 = ("mi300x", "mi325x", "mi355x")
GPUS = (*AMPERE, *HOPPER, *HOPPER_500_W, *BLACKWELL, *BLACKWELL_ULTRA, *CDNA3)
V4, V5E, V5P, V6E, V7X = (("tpu-v4",), ("tpu-v5e",), ("tpu-v5p",), ("tpu-v6e",), ("tpu-v7x-ironwood",))
TPUS = (*V4, *V5E, *V5P, *V6E, *V7X)
FRACTION = (0.05, 1.0)


@dataclass(frozen=True)
class Parameter:
    """One constant and what it may be.

    owner    "chip": a calibration value of the chips in `members`; "software": a field of stacks whose present value is
             `at` (None: of all)
    prior    its value without any fit, spread: standard deviation of its logarithm around that
    low, high   bounds
    basis    where the prior comes from
    """

    name: str
    owner: Literal["chip", "software"]
    field: str
    prior: float
    spread: float
    low: float
    high: float
    basis: str
    members: tuple[str, ...] = ()
    at: float | None = None

    def touches(self, case: Case) -> bool:
        """Whether a case depends on it."""
        if self.owner == "chip":
            return case.hardware.id in self.members
        return self.at is None or bool(getattr(case.software, self.field) == self.at)

    def present(self, case: Case) -> float:
        """Its value in a case."""
        return float(getattr(self._record(case), self.field))

    def scaled(self, case: Case, factor: float) -> Case:
        """The case with the value multiplied, not beyond the bounds."""
        value = min(max(self.present(case) * factor, self.low), self.high)
        changed = _changed(self._record(case), self.field, value)
        if isinstance(changed, Software):
            return replace(case, software=changed)
        return replace(case, hardware=case.hardware.model_copy(update={"calibration": changed}))

    def _record(self, case: Case) -> Calibration | Software:
        return case.hardware.calibration if self.owner == "chip" else case.software


def _changed(record: Any, field: str, value: float) -> Any:
    return record.model_copy(update={field: value})


def _of_chips(name: str, field: str, members: tuple[str, ...], prior: float, spread: float, basis: str) -> Parameter:
    low, high = FRACTION if field.endswith("_frac") else (0.01 * prior, 100 * prior)
    return Parameter(f"{name}: {field}", "chip", field, prior, spread, low, high, basis, members=members)


def _of_stack(
    name: str,
    field: str,
    stack: Software | float | None,
    prior: float,
    spread: float,
    low: float,
    high: float,
    basis: str,
) -> Parameter:
    at = getattr(stack, field) if isinstance(stack, Software) else stack
    return Parameter(f"{name}: {field}", "software", field, prior, spread, low, high, basis, at=at)


BEST_MATMUL = (
    "best bf16 matmul found on the chip (stas00/ml-engineering) is in gemm_efficiency_frac; a step sustains less"
)
FLASH = "between the rates the kernels' papers print for the backward and the forward pass"
PARAMETERS: tuple[Parameter, ...] = (
    *(
        _of_chips(name, "sustained_frac", members, 0.85, 0.1, BEST_MATMUL)
        for name, members in (
            ("Ampere", AMPERE),
            ("Hopper", HOPPER),
            ("Hopper at 500 W", HOPPER_500_W),
            ("Blackwell", BLACKWELL),
            ("Blackwell Ultra", BLACKWELL_ULTRA),
        )
    ),
    _of_chips("CDNA 3 and 4", "gemm_efficiency_frac", CDNA3, 0.6, 0.15, "vendor GEMM benchmarks reach 0.5 to 0.7"),
    *(
        _of_chips(name, "gemm_efficiency_frac", members, 0.72, 0.08, "best published whole steps of MaxText")
        for name, members in (("v4", V4), ("v5e", V5E), ("v5p", V5P), ("v6e", V6E), ("v7x", V7X))
    ),
    _of_chips("Ampere", "attention_efficiency_frac", AMPERE, 0.6, 0.15, FLASH),
    _of_chips("Hopper", "attention_efficiency_frac", (*HOPPER, *HOPPER_500_W), 0.55, 0.15, FLASH),
    _of_chips("Blackwell", "attention_efficiency_frac", BLACKWELL, 0.5, 0.2, FLASH),
    _of_chips("Blackwell Ultra", "attention_efficiency_frac", BLACKWELL_ULTRA, 0.55, 0.2, FLASH),
    _of_chips("v5", "attention_efficiency_frac", (*V4, *V5E, *V5P), 0.5, 0.2, "24 to 72 % in public profiles"),
    _of_chips("v6 and v7", "attention_efficiency_frac", (*V6E, *V7X), 0.4, 0.2, "a wider matrix unit, half filled"),
    _of_chips(
        "GPU", "attention_half_keys", GPUS, 435.0, 0.1, "curve over length of FlashAttention-3, arXiv:2407.08608"
    ),
    _of_chips("Ampere", "attention_half_width", AMPERE, 30.0, 0.5, "heads of 64 and 128 in FlashAttention-2"),
    _of_chips(
        "Hopper", "attention_half_width", (*HOPPER, *HOPPER_500_W), 80.0, 0.5, "heads of 64 to 256 in FlashAttention-3"
    ),
    _of_chips("Blackwell", "attention_half_width", BLACKWELL, 300.0, 0.5, "exponentials bound heads of 128 and less"),
    _of_chips("Hopper", "flash2_frac", (*HOPPER, *HOPPER_500_W), 0.65, 0.1, "FlashAttention-2 over 3 on H100"),
    _of_chips("Hopper", "narrow_gemm_frac", (*HOPPER, *HOPPER_500_W), 0.88, 0.1, "fp8 over bf16 of large products"),
    _of_chips("Blackwell", "narrow_gemm_frac", (*BLACKWELL, *BLACKWELL_ULTRA), 0.88, 0.04, "as on Hopper"),
    _of_chips("GPU", "scale_loss", GPUS, 0.15, 0.15, "two to four switch levels and their stragglers"),
    _of_chips(
        "GPU", "contention_frac", GPUS, 0.3, 0.5, "a collective takes 16 to 32 of 132 cores, and memory bandwidth"
    ),
    _of_chips("TPU", "contention_frac", TPUS, 0.1, 0.5, "links with engines of their own share the memory"),
    _of_chips("Ampere", "gemm_half_size_flop", AMPERE, 2e9, 0.3, "a wave of tiles over all cores"),
    _of_chips("Hopper", "gemm_half_size_flop", (*HOPPER, *HOPPER_500_W), 5e9, 0.3, "a wave of tiles over all cores"),
    _of_chips("Blackwell", "gemm_half_size_flop", (*BLACKWELL, *BLACKWELL_ULTRA), 1.2e10, 0.3, "a wave of tiles"),
    _of_stack("any stack", "hiding_frac", None, 0.8, 0.2, 0.1, 1.0, "all but the first and last layer"),
    _of_stack(
        "module by module", "pointwise_passes", LLM_FOUNDRY, 2.0, 0.3, 1.0, 8.0, "an intermediate written and read"
    ),
    _of_stack("InternEvo", "pointwise_passes", INTERNEVO, 2.0, 0.3, 1.0, 8.0, "an intermediate written and read"),
    _of_stack(
        "recipes of 2025", "expert_passes", MEGATRON_RECIPES_2025, 3.0, 0.6, 1.0, 20.0, "permutation, casts, padding"
    ),
    _of_stack(
        "recipes of 26.01 on", "expert_passes", MEGATRON_RECIPES, 3.0, 0.6, 1.0, 20.0, "permutation, casts, padding"
    ),
    _of_stack("fused experts", "expert_passes", MEGATRON_RECIPES_FUSED_EXPERTS, 1.0, 0.6, 0.5, 20.0, "one kernel"),
    _of_stack("unnamed stack", "expert_passes", CURRENT, 2.0, 0.6, 1.0, 20.0, "between the others"),
    _of_stack(
        "Megatron", "clamped_passes", CURRENT, 9.0, 0.3, 1.0, 40.0, "19 tensors moved forward, 49 back, 7.5 where fused"
    ),
    _of_stack(
        "fused experts",
        "clamped_passes",
        MEGATRON_RECIPES_FUSED_EXPERTS,
        5.0,
        0.5,
        1.0,
        40.0,
        "a part of the chain in the kernel of the products",
    ),
    _of_stack("compiled", "expert_passes", XLA, 3.0, 0.6, 1.0, 20.0, "sorting tokens by expert, and back"),
    _of_stack("recipes of 2025", "expert_pause_s", MEGATRON_RECIPES_2025, 5e-4, 0.7, 1e-5, 5e-3, "tens of launches"),
    _of_stack(
        "recipes of 26.01 on", "expert_pause_s", MEGATRON_RECIPES, 2e-4, 0.7, 1e-5, 5e-3, "partly in CUDA graphs"
    ),
    _of_stack(
        "fused experts", "expert_pause_s", MEGATRON_RECIPES_FUSED_EXPERTS, 1e-4, 0.7, 1e-5, 5e-3, "in CUDA graphs"
    ),
    _of_stack("unnamed stack", "expert_pause_s", CURRENT, 5e-4, 0.7, 1e-5, 5e-3, "tens of launches"),
    _of_stack(
        "natural routing", "expert_imbalance", NATURAL_IMBALANCE, 1.3, 0.3, 1.0, 3.0, "auxiliary losses balance roughly"
    ),
    _of_stack("DeepSpeed's engine", "pipeline_pause_s", MEGATRON_DEEPSPEED, 0.05, 1.0, 1e-3, 1.0, "assumed"),
    _of_stack("Megatron of 2022", "host_factor", MEGATRON_2022, 8.0, 0.5, 1.0, 40.0, "unfused element-wise kernels"),
    _of_stack(
        "any stack", "collective_drift", None, 4.0, 0.5, 0.5, 20.0, "gaps a collective, 7 to 13 in vTrain's runs"
    ),
    _of_stack("ALiBi", "bias_slowdown", None, 1.5, 0.3, 1.0, 4.0, "a bias read for every score"),
    _of_stack("InternEvo", "broadcast_s", INTERNEVO, 2.5e-3, 0.5, 1e-4, 1e-1, "slope over the ZeRO-1 group"),
)
