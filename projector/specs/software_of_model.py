"""What of a software stack applies to a model, and what of a model a stack trains."""

from projector.specs.architecture import ModelArchitecture
from projector.specs.software import MEGATRON_RECIPES, Software

OF_FUSED_EXPERTS = ("clamped_passes", "expert_passes", "expert_pause_s", "expert_products")


def software_of_model(software: Software, model: ModelArchitecture) -> Software:
    """The stack without what it has for other layers than the model's.

    Megatron's one kernel for all experts, activation and casts is written for gated experts; its exchange of tokens
    beside another micro-batch's compute is written for transformer layers, not for stacks of single mixers.
    """
    changed: dict[str, object] = {}
    fused = software.expert_products == "together" and software.narrow_weight_gather
    if not model.gated_mlp and fused:
        changed |= {name: getattr(MEGATRON_RECIPES, name) for name in OF_FUSED_EXPERTS}
    if model.recurrence is not None and software.expert_overlap:
        changed["expert_overlap"] = False
    return software.model_copy(update=changed) if changed else software


def model_of_software(model: ModelArchitecture, software: Software) -> ModelArchitecture:
    """The model with the prediction layers of its checkpoint, where the stack trains them and nobody said how many."""
    if not software.trains_mtp or model.trained_mtp_layers or not model.mtp_layers:
        return model
    if model.parallel_block or not model.attention_layers:
        return model
    return model.model_copy(update={"trained_mtp_layers": model.mtp_layers})
