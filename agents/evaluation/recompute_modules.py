"""The modules a row's recompute setting names, as a plan says them."""

import re

from projector.specs.plan import RecomputeModule

# what rows call Megatron-Core's modules, beside their own names
NAMES: dict[str, RecomputeModule] = {
    "norm": "layernorm",
    "layernorm": "layernorm",
    "act": "moe_act",
    "moe_act": "moe_act",
    "moe": "moe",
    "mlp": "mlp",
    "core_attn": "core_attn",
    "mla_up_proj": "mla_up_proj",
    "shared_expert": "shared_experts",
    "shared_experts": "shared_experts",
}


def modules_of(printed: str | None) -> str:
    """`recompute_modules` of "selective: layernorm, moe" or "norm, act"; "" where the text is no list of modules."""
    words = re.split(r"[\s,]+", re.sub(r"^selective\s*:", "", (printed or "").lower()).strip())
    if not words or any(word not in NAMES for word in words):
        return ""
    return "+".join(sorted({NAMES[word] for word in words}))
