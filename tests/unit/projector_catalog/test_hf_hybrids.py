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


QWEN35 = {
    "model_type": "qwen3_5_moe", "tie_word_embeddings": False,
    "vision_config": {"depth": 2, "hidden_size": 100, "intermediate_size": 400},
    "text_config": {
        "model_type": "qwen3_5_moe_text", "num_hidden_layers": 8, "hidden_size": 1024, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 32000, "num_experts": 16, "num_experts_per_tok": 2,
        "moe_intermediate_size": 256, "shared_expert_intermediate_size": 256, "full_attention_interval": 4,
        "linear_num_value_heads": 16, "linear_num_key_heads": 8, "linear_key_head_dim": 64,
        "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4, "attn_output_gate": True, "mtp_num_hidden_layers": 1,
    },
}  # fmt: skip
GEMMA4 = {
    "model_type": "gemma4_text", "num_hidden_layers": 6, "hidden_size": 1024, "num_attention_heads": 8,
    "num_key_value_heads": 4, "head_dim": 128, "global_head_dim": 256, "num_global_key_value_heads": 2,
    "attention_k_eq_v": True, "intermediate_size": 2048, "vocab_size": 32000, "sliding_window": 512,
    "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "use_bidirectional_attention": "vision",
    "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
}  # fmt: skip


def test_qwen35_attends_in_every_fourth_layer_and_its_encoder_is_counted_apart():
    model = read(QWEN35)
    assert [(sort.layers, sort.recurrent, sort.mlp) for sort in model.sorts] == [
        (6, True, "experts"), (2, False, "experts"),
    ]  # fmt: skip
    assert (model.attention_gate, model.mtp_layers, model.shared_experts) == (True, 1, 1)
    assert model.encoder_parameters == 2 * (4 * 100**2 + 2 * 100 * 400)
    assert model.parameters == read(QWEN35["text_config"] | {"tie_word_embeddings": False}).parameters


def test_qwen3_next_reads_dense_layers_among_experts():
    config = QWEN35["text_config"] | {"model_type": "qwen3_next", "mlp_only_layers": [0], "intermediate_size": 512}
    assert {(sort.layers, sort.recurrent, sort.mlp) for sort in read(config).sorts} == {
        (1, True, "dense"), (5, True, "experts"), (2, False, "experts"),
    }  # fmt: skip


def test_gemma4_full_layers_have_other_heads_and_one_projection_for_keys_and_values():
    windowed, full = read(GEMMA4).sorts
    assert (windowed.layers, windowed.window, windowed.head_dim) == (5, 512, None)
    assert (full.layers, full.window, full.head_dim, full.kv_heads, full.shared_projection) == (1, None, 256, 2, True)


def test_gemma4_experts_stand_beside_a_dense_mlp_that_counts_as_shared():
    model = read(
        GEMMA4, enable_moe_block=True, num_experts=8, top_k_experts=2, moe_intermediate_size=512
    )  # fmt: skip
    assert (model.experts, model.experts_per_token, model.shared_experts, model.moe_layers) == (8, 2, 4, 6)


def test_gemma4_layers_that_reuse_keys_hold_no_cache_and_embed_each_token_again():
    model = read(GEMMA4, num_kv_shared_layers=2, use_double_wide_mlp=True, hidden_size_per_layer_input=64)
    reusing = [(sort.layers, sort.intermediate_size, sort.window) for sort in model.sorts if sort.reuses_keys]
    assert reusing == [(1, 4096, 512), (1, 4096, None)]
    assert model.layer_embedding_parameters == 32000 * 6 * 64


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"global_head_dim": None}, "lacks global_head_dim"),
        ({"attention_k_eq_v": None}, "lacks attention_k_eq_v"),
        ({"layer_types": ["full_attention"]}, "has to name 6 layers"),
        ({"num_experts": 8, "enable_moe_block": False}, "contradict"),
        ({"num_experts": 8, "enable_moe_block": True}, "lacks top_k_experts"),
        ({"per_layer_config": {"5": {"window": 3}}}, "layer 5 changes window"),
    ],
)
def test_what_a_gemma4_config_lacks_or_contradicts_is_refused(changes, reason):
    with pytest.raises(InvalidDescription, match=reason):
        read(GEMMA4, **changes)


def test_an_encoder_of_unknown_size_is_said_to_be_unknown():
    assert read(QWEN35, vision_config={"patch_size": 14}).encoder_parameters is None


KIMI = {
    "model_type": "kimi_linear", "num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 16,
    "num_key_value_heads": 16, "intermediate_size": 4096, "vocab_size": 32000, "kv_lora_rank": 256, "q_lora_rank": None,
    "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "mla_use_nope": True, "num_experts": 16,
    "num_experts_per_token": 2, "num_shared_experts": 1, "moe_intermediate_size": 512, "first_k_dense_replace": 1,
    "moe_layer_freq": 1, "tie_word_embeddings": False, "num_nextn_predict_layers": 0,
    "linear_attn_config": {
        "full_attn_layers": [4], "kda_layers": [1, 2, 3], "head_dim": 64, "num_heads": 16, "short_conv_kernel_size": 4,
    },
}  # fmt: skip


def test_kimi_linear_mixes_delta_and_latent_attention():
    model = read(KIMI)
    assert [(sort.layers, sort.attention, sort.mlp) for sort in model.sorts] == [
        (1, False, "dense"), (2, False, "experts"), (1, True, "experts"),
    ]  # fmt: skip
    assert (model.is_mla, model.positions, model.shared_experts) == (True, "none", 1)
    assert model.recurrence is not None
    assert (model.recurrence.kind, model.recurrence.inner, model.recurrence.conv_kernel) == ("kimi_delta", 1024, 4)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"linear_attn_config": None}, "lacks linear_attn_config"),
        ({"linear_attn_config": {"full_attn_layers": [1], "kda_layers": [2, 3]}}, "each of 4 layers once"),
        ({"linear_attn_config": {"use_full_rank_gate": True}}, "use_full_rank_gate is not modelled"),
        ({"attn_res_block_size": 12}, "attn_res_block_size"),
    ],
)
def test_what_a_kimi_linear_config_lacks_or_adds_is_refused(changes, reason):
    with pytest.raises(InvalidDescription, match=reason):
        read(KIMI, **changes)


def test_latent_experts_and_a_gate_are_read_where_a_kimi_model_has_them():
    model = read(KIMI, routed_expert_hidden_size=256, mla_use_output_gate=True)
    assert (model.expert_latent_size, model.attention_gate) == (256, True)


SMALL = {
    "num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4,
    "intermediate_size": 2048, "vocab_size": 32000, "tie_word_embeddings": False,
}  # fmt: skip
MAMBA_2 = {
    "mamba_n_heads": 32, "mamba_d_head": 64, "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4,
    "mamba_expand": 2, "mamba_chunk_size": 256,
}  # fmt: skip
JAMBA = SMALL | {
    "model_type": "jamba", "attn_layer_period": 4, "attn_layer_offset": 2, "expert_layer_period": 2,
    "expert_layer_offset": 1, "num_experts": 4, "num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_d_conv": 4,
    "mamba_expand": 2, "mamba_dt_rank": "auto",
}  # fmt: skip
GRANITE = SMALL | MAMBA_2 | {
    "model_type": "granitemoehybrid", "num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 512,
    "shared_intermediate_size": 1024, "position_embedding_type": "nope",
    "layer_types": ["mamba", "attention", "mamba", "mamba"],
}  # fmt: skip
MINIMAX = SMALL | {
    "model_type": "minimax", "head_dim": 64, "num_local_experts": 8, "num_experts_per_tok": 2,
    "attn_type_list": [0, 0, 0, 1], "block_size": 256,
}  # fmt: skip


def test_jamba_scans_channels_and_mixes_experts_in():
    model = read(JAMBA)
    assert [(sort.layers, sort.recurrent, sort.mlp) for sort in model.sorts] == [
        (1, True, "dense"), (2, True, "experts"), (1, False, "dense"),
    ]  # fmt: skip
    mixer = model.recurrence
    assert mixer is not None
    assert (mixer.kind, mixer.heads, mixer.state_size, mixer.step_rank) == ("mamba1", 2048, 16, 64)


def test_granite_has_experts_beside_a_shared_mlp_or_that_mlp_alone():
    model = read(GRANITE)
    assert [(sort.layers, sort.recurrent) for sort in model.sorts] == [(3, True), (1, False)]
    assert (model.shared_experts, model.moe_layers, model.positions) == (2, 4, "none")
    dense = read(GRANITE, num_local_experts=0)
    assert (dense.is_moe, dense.intermediate_size) == (False, 1024)


def test_falcon_h1_has_both_mixers_in_every_layer_and_bamba_one():
    both = read(SMALL | MAMBA_2 | {"model_type": "falcon_h1", "mamba_d_ssm": 2048})
    (sort,) = both.sorts
    assert (sort.layers, sort.attention, sort.recurrent) == (4, True, True)
    bamba = read(SMALL | MAMBA_2 | {"model_type": "bamba", "attn_layer_indices": [1]})
    assert [(sort.layers, sort.attention) for sort in bamba.sorts] == [(3, False), (1, True)]


def test_minimax_attends_by_lightning_in_most_layers():
    model = read(MINIMAX)
    assert [(sort.layers, sort.recurrent) for sort in model.sorts] == [(3, True), (1, False)]
    assert model.recurrence is not None
    assert (model.recurrence.kind, model.recurrence.state_elements) == ("lightning", 16 * 64 * 64)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (JAMBA | {"attn_layer_offset": 4}, "attn_layer_offset 4 is not below"),
        (JAMBA | {"mamba_d_state": None}, "lacks mamba_d_state"),
        (GRANITE | {"mamba_d_head": 32}, "are not the inner width"),
        (GRANITE | {"layer_types": ["mamba"]}, "has to list 4 layers"),
        (GRANITE | {"position_embedding_type": "alibi"}, "position_embedding_type 'alibi'"),
        (SMALL | MAMBA_2 | {"model_type": "bamba"}, "lacks attn_layer_indices"),
        (MINIMAX | {"attn_type_list": [2, 0, 0, 1]}, "attn_type_list has to name 4 layers"),
    ],
)
def test_what_a_mamba_hybrid_lacks_is_refused(config, reason):
    with pytest.raises(InvalidDescription, match=reason):
        read(config)
