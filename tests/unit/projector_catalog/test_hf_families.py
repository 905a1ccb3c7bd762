"""Families with their own key names, latents, windows and expert layouts, as their config.json files say it."""

import pytest

from projector.catalog import architecture, from_hf_config
from projector.errors import InvalidDescription

DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280, "tie_word_embeddings": False,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_nextn_predict_layers": 1, "ep_size": 1,
    "n_group": 8, "topk_group": 4, "head_dim": 64,
}  # fmt: skip
LLAMA4 = {
    "model_type": "llama4_text", "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
    "vocab_size": 202048, "num_local_experts": 128, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
    "attention_chunk_size": 8192, "moe_layers": list(range(1, 48, 2)), "tie_word_embeddings": False,
}  # fmt: skip
GEMMA2 = {
    "model_type": "gemma2", "num_hidden_layers": 26, "hidden_size": 2304, "num_attention_heads": 8,
    "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "vocab_size": 256128,
    "sliding_window": 4096, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 256,
}  # fmt: skip
FALCON = {
    "model_type": "falcon", "hidden_size": 14848, "num_hidden_layers": 80, "num_attention_heads": 232,
    "num_kv_heads": 8, "new_decoder_architecture": True, "parallel_attn": True, "multi_query": True, "alibi": False,
    "bias": False, "vocab_size": 65024, "apply_residual_connection_post_layernorm": False,
}  # fmt: skip
MPT = {
    "model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4, "max_seq_len": 2048,
    "vocab_size": 50432, "attn_config": {"alibi": True, "attn_type": "multihead_attention", "prefix_lm": False},
    "no_bias": True, "learned_pos_emb": True,
}  # fmt: skip
BLOOM = {
    "model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112, "offset_alibi": 100,
    "vocab_size": 250880, "seq_length": 2048, "pretraining_tp": 4,
}  # fmt: skip
MINIMAX = {
    "model_type": "minimax_m2", "num_hidden_layers": 62, "hidden_size": 3072, "num_attention_heads": 48,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 1536, "vocab_size": 200064,
    "num_local_experts": 256, "num_experts_per_tok": 8, "attn_type_list": [1] * 62, "mlp_intermediate_size": 8192,
    "use_mtp": True, "num_mtp_modules": 3, "mtp_transformer_layers": 1, "shared_intermediate_size": 0,
    "tie_word_embeddings": False, "rotary_dim": 64, "layernorm_mlp_beta": 1.0,
}  # fmt: skip


def read(config):
    return from_hf_config(config, name="m", source="test")


def test_deepseek_has_latents_shared_and_leading_dense_experts():
    model = read(DEEPSEEK_V3)
    assert (model.kv_lora_rank, model.q_lora_rank, model.head_dim, model.value_dim) == (512, 1536, 192, 128)
    assert (model.shared_experts, model.first_dense_layers, model.moe_layers) == (1, 3, 58)
    assert model.parameters == architecture("deepseek-v3").parameters


def test_a_missing_query_latent_is_none():
    model = read(DEEPSEEK_V3 | {"q_lora_rank": None})
    assert model.q_lora_rank == 0
    assert model.attention_parameters == 7168 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168


def test_multi_token_prediction_layers_are_counted_apart():
    assert read(DEEPSEEK_V3).mtp_layers == 1
    assert read(MINIMAX).mtp_layers == 3


def test_llama4_alternates_experts_and_chunked_layers():
    model = read(LLAMA4)
    assert (model.moe_every_layers, model.moe_layers, model.shared_experts) == (2, 24, 1)
    assert (model.intermediate_size, model.moe_intermediate_size) == (16384, 8192)
    assert (model.sliding_window, model.sliding_layers, model.chunked_window) == (8192, 36, True)
    assert model.parameters == architecture("llama-4-maverick").parameters


def test_listed_layers_count_like_the_rule_they_follow():
    listed = ["chunked_attention", "chunked_attention", "chunked_attention", "full_attention"] * 12
    assert read(LLAMA4 | {"layer_types": listed}) == read(LLAMA4)
    assert read(LLAMA4 | {"no_rope_layers": [1, 1, 1, 0] * 12, "no_rope_layer_interval": 4}) == read(LLAMA4)


def test_gemma2_slides_in_every_other_layer_and_has_norms_behind_blocks():
    model = read(GEMMA2)
    assert (model.sliding_window, model.sliding_layers, model.post_norms, model.tied_embeddings) == (
        4096,
        13,
        True,
        True,
    )
    assert model.parameters == architecture("gemma-2-2b").published_parameters


def test_gemma3_slides_in_five_of_six_layers():
    config = GEMMA2 | {"model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window_pattern": 6}
    assert read(config).sliding_layers == 29


def test_falcon_runs_attention_and_mlp_side_by_side():
    model = read(FALCON)
    assert (model.kv_heads, model.parallel_block, model.positions, model.gated_mlp) == (8, True, "rope", False)
    assert model.intermediate_size == 4 * 14848


def test_an_older_falcon_has_one_key_value_head():
    config = FALCON | {"new_decoder_architecture": False, "num_kv_heads": 232}
    assert read(config).kv_heads == 1
    assert read(config | {"multi_query": False, "parallel_attn": False, "alibi": True}).positions == "alibi"


def test_mpt_and_bloom_have_alibi_positions():
    mpt, bloom = read(MPT), read(BLOOM)
    assert (mpt.positions, mpt.layers, mpt.hidden_size, mpt.intermediate_size) == ("alibi", 32, 4096, 16384)
    assert (bloom.positions, bloom.layers, bloom.hidden_size, bloom.kv_heads) == ("alibi", 70, 14336, 112)
    assert bloom.parameters == pytest.approx(176_247_271_424, rel=1e-4)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (DEEPSEEK_V3 | {"index_topk": 2048}, "index_topk"),
        (DEEPSEEK_V3 | {"moe_layer_freq": 2}, "moe_layer_freq 2"),
        (DEEPSEEK_V3 | {"moe_layer_freq": [0] * 2 + [1] * 59}, "moe_layer_freq"),
        (DEEPSEEK_V3 | {"num_hidden_layers": 10**17}, "num_hidden_layers is above"),
        (DEEPSEEK_V3 | {"first_k_dense_replace": 10**17}, "first_k_dense_replace is above"),
        (DEEPSEEK_V3 | {"num_experts": 64}, "n_routed_experts 256 and num_experts 64"),
        (DEEPSEEK_V3 | {"kv_lora_rank": None}, "lacks kv_lora_rank"),
        (DEEPSEEK_V3 | {"n_routed_experts": None}, "lacks num_local_experts"),
        (LLAMA4 | {"moe_layers": [0, 2, 4]}, "moe_layers other than every 2th layer"),
        (LLAMA4 | {"no_rope_layers": [1, 0] * 24}, "no_rope_layers"),
        (LLAMA4 | {"layer_types": ["chunked_attention"] * 24 + ["sliding_attention"] * 24}, "in one model"),
        (LLAMA4 | {"shared_expert_intermediate_size": 4096}, "shared experts of width 4096"),
        (GEMMA2 | {"use_bidirectional_attention": True}, "use_bidirectional_attention"),
        (MPT | {"attn_config": {"alibi": False}}, "without attn_config.alibi"),
        (MPT | {"attn_config": {"alibi": True, "attn_type": "grouped_query_attention"}}, "grouped_query_attention"),
        (MINIMAX | {"attn_type_list": [0, 1] * 31}, "attn_type_list"),
        (BLOOM | {"hidden_size": 4096}, "hidden_size 4096 and n_embed 14336"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(config, says):
    with pytest.raises(InvalidDescription, match=says):
        read(config)
