"""config.json files of models whose layers differ."""

import pytest

from projector.catalog import from_hf_config
from projector.errors import InvalidDescription

NEMOTRON_H = {
    "model_type": "nemotron_h", "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 2,
    "head_dim": 64, "intermediate_size": 4096, "vocab_size": 32000, "hybrid_override_pattern": "MEM*-E",
    "mamba_num_heads": 32, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4,
    "chunk_size": 128, "n_routed_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 512,
    "moe_shared_expert_intermediate_size": 1024, "n_shared_experts": 1, "moe_latent_size": 256,
    "tie_word_embeddings": False, "max_position_embeddings": 8192, "num_nextn_predict_layers": 1,
    "mtp_hybrid_override_pattern": "*E", "mamba_ssm_cache_dtype": "float32", "expand": 2, "use_conv_bias": True,
}  # fmt: skip


def read(config, **changes):
    return from_hf_config(config | changes, name="m", source="test")


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def test_nemotron_h_layers_are_single_mixers():
    model = read(NEMOTRON_H)
    sorts = [(sort.layers, sort.attention, sort.recurrent, sort.mlp) for sort in model.sorts]
    assert sorts == [
        (2, False, True, "none"), (2, False, False, "experts"), (1, True, False, "none"), (1, False, False, "dense"),
    ]  # fmt: skip
    assert (model.layers, model.moe_layers, model.attention_layers, model.positions) == (6, 2, 1, "none")
    assert (model.shared_experts, model.expert_latent_size, model.mtp_layers) == (2, 256, 1)
    assert model.recurrence is not None
    assert (model.recurrence.kind, model.recurrence.inner, model.recurrence.key_features) == ("mamba2", 2048, 1024)


def test_nemotron_h_layers_by_name_are_those_by_letter():
    named = without(NEMOTRON_H, "hybrid_override_pattern") | {
        "layers_block_type": ["mamba", "moe", "mamba", "attention", "mlp", "moe"]
    }
    assert read(named) == read(NEMOTRON_H)


def test_sizes_left_to_the_class_are_said():
    model = read(without(NEMOTRON_H, "n_groups", "chunk_size"))
    assert model.class_defaults == ("n_groups", "chunk_size")
    assert model.recurrence == read(NEMOTRON_H).recurrence


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hybrid_override_pattern": None}, "lacks hybrid_override_pattern or layers_block_type"),
        ({"hybrid_override_pattern": "MEX"}, "hybrid_override_pattern holds X"),
        ({"hybrid_override_pattern": 3}, "not a list of layers"),
        ({"num_hidden_layers": 7}, "num_hidden_layers 7 and a pattern of 6 layers"),
        ({"layers_block_type": ["mamba"] * 6}, "name different layers"),
        ({"n_groups": 5}, "groups 5 does not divide"),
        ({"mamba_num_heads": 0}, "mamba_num_heads is 0"),
        ({"moe_shared_expert_intermediate_size": 700}, "no multiple of an expert"),
    ],
)
def test_what_a_nemotron_h_config_lacks_or_contradicts_is_refused(changes, reason):
    with pytest.raises(InvalidDescription, match=reason):
        read(NEMOTRON_H, **changes)
