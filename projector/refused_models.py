"""Models that are known and not modelled, each with the reason: refused by name rather than priced wrongly."""

from projector.hf.families import REFUSED
from projector.names import normalise
from projector.specs.record import Record

__all__ = ["RefusedModel", "refused_model", "refused_models"]

CONFIGS = "github:ai-dynamo/aiconfigurator@095f58a51c4c:aic-core/src/aiconfigurator_core/model_configs"

# Hub configurations that aiconfigurator holds a copy of: their model_type, and why they are refused.
ON_THE_HUB = {
    "deepseek-ai/DeepSeek-V4-Flash": ("deepseek_v4", REFUSED["deepseek_v4"]),
    "deepseek-ai/DeepSeek-V4-Pro": ("deepseek_v4", REFUSED["deepseek_v4"]),
    "moonshotai/Kimi-K3": ("kimi_linear", "residual attention across layers (attn_res_block_size) and full-rank gates"),
    "stepfun-ai/Step-3.7-Flash": ("step3p7", REFUSED["step3p7"]),
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
            name=hf_id.split("/")[1].lower(),
            hf_id=hf_id,
            model_type=model_type,
            reason=reason,
            source=f"{CONFIGS}/{hf_id.replace('/', '--')}_config.json",
        )
        for hf_id, (model_type, reason) in ON_THE_HUB.items()
    )
    return tuple(sorted((*on_the_hub, MEGASCALE), key=lambda model: model.name))


def refused_model(name: str) -> RefusedModel | None:
    """The refused model of this name or hub id, in any case; None where the name is none of theirs."""
    wanted = normalise(name)
    for model in refused_models():
        if wanted in {normalise(known) for known in (model.name, model.hf_id) if known is not None}:
            return model
    return None
