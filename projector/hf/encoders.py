"""The language model inside a multimodal config, and how large the encoders in front of it are."""

from projector.errors import InvalidDescription
from projector.hf.fields import Config, first_count

ENCODERS = ("vision_config", "audio_config")
# A multimodal config says these for its language model.
OF_THE_WHOLE = ("tie_word_embeddings", "quantization_config")


def language_part(config: Config) -> tuple[Config, int | None]:
    """(config of the language model, weights of the encoders): 0 without any, None where their sizes are not stated.

    The blocks of an encoder are counted, 4 h^2 + 2 h f a layer of width h and MLP width f; patch embedding, merger and
    projection to the language model, about a tenth of it, are not.
    """
    text = config.get("text_config")
    if text is None:
        return config, 0
    if not isinstance(text, dict) or not isinstance(text.get("model_type"), str):
        raise InvalidDescription("text_config of a multimodal config has no model_type")
    inherited = {key: config[key] for key in OF_THE_WHOLE if config.get(key) is not None}
    sizes = [_blocks(config[key]) for key in ENCODERS if config.get(key) is not None]
    found = [size for size in sizes if size is not None]
    return text | inherited, sum(found) if len(found) == len(sizes) else None


def _blocks(encoder: object) -> int | None:
    if not isinstance(encoder, dict):
        raise InvalidDescription("the encoder's config of a multimodal config is no object")
    layers = first_count(encoder, "depth", "num_hidden_layers", "vt_num_hidden_layers")
    hidden = first_count(encoder, "hidden_size", "vt_hidden_size", "embed_dim")
    width = first_count(encoder, "intermediate_size", "vt_intermediate_size")
    if not layers or not hidden or not width:
        return None
    return layers * (4 * hidden * hidden + 2 * hidden * width)
