"""config.json files of models with sparse attention, and of those whose attention layers differ in size."""

import pytest

from projector.catalog import from_hf_config
from projector.errors import InvalidDescription

DSA = {
    "model_type": "glm_moe_dsa", "num_hidden_layers": 4, "hidden_size": 1024, "num_attention_heads": 16,
    "num_key_value_heads": 16, "intermediate_size": 4096, "vocab_size": 32000, "kv_lora_rank": 256, "q_lora_rank": 384,
    "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "v_head_dim": 64, "n_routed_experts": 16, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "moe_intermediate_size": 512, "first_k_dense_replace": 1, "moe_layer_freq": 1,
    "tie_word_embeddings": False, "index_topk": 512, "index_n_heads": 8, "index_head_dim": 64,
    "num_nextn_predict_layers": 1,
}  # fmt: skip
MINIMAX = {
    "model_type": "minimax_m3", "num_hidden_layers": 3, "hidden_size": 1024, "num_attention_heads": 16,
    "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 512, "dense_intermediate_size": 2048,
    "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1,
    "shared_intermediate_size": 512, "moe_layer_freq": [0, 1, 1], "tie_word_embeddings": False,
    "sparse_attention_config": {
        "sparse_attention_freq": [0, 1, 1], "sparse_block_size": 128, "sparse_topk_blocks": 16,
        "sparse_num_index_heads": 4, "sparse_index_dim": 64,
    },
}  # fmt: skip
MIMO = {
    "model_type": "mimo_v2_flash", "num_hidden_layers": 3, "hidden_size": 1024, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 96, "v_head_dim": 64, "intermediate_size": 4096, "vocab_size": 32000,
    "hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": [0, 1, 1], "sliding_window": 128, "swa_num_key_value_heads": 4,
    "swa_num_attention_heads": 16, "swa_head_dim": 96, "swa_v_head_dim": 64, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 512, "tie_word_embeddings": False,
}  # fmt: skip
ATTENDS = {"n_heads_in_group": 8, "no_op": False, "window_length": None}
NAS = {
    "model_type": "nemotron-nas", "num_hidden_layers": 3, "hidden_size": 4096, "num_attention_heads": 32,
    "vocab_size": 32000, "tie_word_embeddings": False,
    "block_configs": [
        {"attention": ATTENDS, "ffn": {"ffn_mult": 5.25, "no_op": False}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 0.5, "no_op": False}},
        {"attention": {"no_op": True}, "ffn": {"no_op": True}},
    ],
}  # fmt: skip


def read(config, **changes):
    return from_hf_config(config | changes, name="m", source="test")


def test_every_layer_chooses_its_keys_unless_told_otherwise():
    model = read(DSA)
    assert (model.index_topk, model.index_heads, model.index_head_dim, model.sorts) == (512, 8, 64, ())
    assert (model.first_dense_layers, model.window, model.windowed_layers, model.mtp_layers) == (1, 512, 4, 1)


def test_layers_that_share_a_choice_have_no_indexer():
    model = read(DSA, indexer_types=["full", "full", "shared", "full"])
    assert [(sort.layers, sort.mlp, sort.selection) for sort in model.sorts] == [
        (1, "dense", "own"), (2, "experts", "own"), (1, "experts", "shared"),
    ]  # fmt: skip
    queries, key_and_weights = 384 * 8 * 64, 1024 * (64 + 8)
    assert read(DSA).parameters - model.parameters == queries + key_and_weights


def test_minimax_chooses_blocks_of_keys_in_most_layers():
    model = read(MINIMAX)
    assert [(sort.layers, sort.mlp, sort.selection) for sort in model.sorts] == [
        (1, "dense", "none"), (2, "experts", "own"),
    ]  # fmt: skip
    assert (model.index_topk, model.intermediate_size, model.moe_intermediate_size) == (2048, 2048, 512)
    assert [one.window for one in model.by_sort()] == [None, 2048]


def test_mimo_has_more_key_heads_in_windowed_layers_and_narrow_values():
    full, windowed = read(MIMO).sorts
    assert (full.window, full.kv_heads, full.mlp) == (None, None, "dense")
    assert (windowed.layers, windowed.window, windowed.kv_heads, windowed.heads) == (2, 128, 4, None)
    assert read(MIMO).value_dim == 64


def test_a_searched_model_counts_what_its_blocks_hold():
    model = read(NAS)
    assert model.layers == 2
    assert [(sort.attention, sort.kv_heads, sort.intermediate_size) for sort in model.sorts] == [
        (True, 4, 14336), (False, None, 1536),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (DSA | {"index_topk": None}, "lacks index_topk"),
        (DSA | {"index_topk_freq": 4}, "lacks indexer_types"),
        (DSA | {"indexer_types": ["full"]}, "has to name 4 layers"),
        (MINIMAX | {"sparse_attention_config": {}}, "lacks index_n_heads or"),
        (MINIMAX | {"layer_types": ["sliding_attention"] * 3}, "minimax_m3_sparse or full_attention"),
        (MINIMAX | {"moe_layer_freq": [0, 1]}, "has to name 3 layers"),
        (MIMO | {"swa_v_head_dim": 32}, "values of another width"),
        (MIMO | {"hybrid_layer_pattern": None}, "lacks hybrid_layer_pattern"),
        (MIMO | {"moe_layer_freq": [0, 1, 2]}, "MLPs by layer"),
        (NAS | {"block_configs": []}, "has to describe 3 layers"),
        (NAS | {"block_configs": [{"attention": {"replace_with_linear": True}, "ffn": {}}] * 3}, "replace_with_linear"),
        (NAS | {"block_configs": [{"attention": ATTENDS, "ffn": {"ffn_mult": None}}] * 3}, "ffn_mult is None"),
    ],
)
def test_what_is_missing_or_other_than_known_is_refused(config, reason):
    with pytest.raises(InvalidDescription, match=reason):
        read(config)
