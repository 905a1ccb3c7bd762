"""Models that are known and not modelled, each with the reason: refused by name rather than priced wrongly."""

from projector.hf.families import REFUSED
from projector.names import normalise
from projector.specs.record import Record

__all__ = ["RefusedModel", "refused_model", "refused_models"]

CONFIGS = "github:ai-dynamo/aiconfigurator@095f58a51c4c:aic-core/src/aiconfigurator_core/model_configs"

# model_type of hub configurations that aiconfigurator holds a copy of: the reason is that of the type.
ON_THE_HUB = {
    "MiniMaxAI/MiniMax-M3": "minimax_m3",
    "XiaomiMiMo/MiMo-V2-Flash": "mimo_v2_flash",
    "deepseek-ai/DeepSeek-V3.2": "deepseek_v32",
    "deepseek-ai/DeepSeek-V4-Flash": "deepseek_v4",
    "deepseek-ai/DeepSeek-V4-Pro": "deepseek_v4",
    "moonshotai/Kimi-K3": "kimi_linear",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "nemotron-nas",
    "stepfun-ai/Step-3.7-Flash": "step3p7",
    "zai-org/GLM-5": "glm_moe_dsa",
    "zai-org/GLM-5.1": "glm_moe_dsa",
    "zai-org/GLM-5.2": "glm_moe_dsa",
}
# Names that are not the last part of the hub id.
NAMES = {
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": "nemotron-super-49b-v1",
}


class RefusedModel(Record):
    """A model the projector does not price. `source` says where its configuration was read, `retrieved` when."""

    name: str
    hf_id: str | None = None
    model_type: str
    reason: str
    source: str
    retrieved: str = "2026-11-30"


MEGASCALE = RefusedModel(
    name="megascale-175b",
    model_type="gpt",
    reason="sliding-window attention whose window its paper does not state",
    source="arXiv:2402.15627, table 1",
)


def refused_models() -> tuple[RefusedModel, ...]:
    """Every refused model, by name."""
    on_the_hub = (
        RefusedModel(
            name=NAMES.get(hf_id, hf_id.split("/")[1].lower()),
            hf_id=hf_id,
            model_type=model_type,
            reason=REFUSED[model_type],
            source=f"{CONFIGS}/{hf_id.replace('/', '--')}_config.json",
        )
        for hf_id, model_type in ON_THE_HUB.items()
    )
    return tuple(sorted((*on_the_hub, MEGASCALE), key=lambda model: model.name))


def refused_model(name: str) -> RefusedModel | None:
    """The refused model of this name or hub id, in any case; None where the name is none of theirs."""
    wanted = normalise(name)
    for model in refused_models():
        if wanted in {normalise(known) for known in (model.name, model.hf_id) if known is not None}:
            return model
    return None
