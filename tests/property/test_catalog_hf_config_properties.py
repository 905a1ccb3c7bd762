"""A config.json with anything in it is read or refused with a typed error, never a crash."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projector.catalog import from_hf_config
from projector.errors import InvalidDescription
from projector.hf.families import FAMILIES
from projector.specs.architecture import ModelArchitecture

KEYS = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size",
    "vocab_size", "max_position_embeddings", "tie_word_embeddings", "sliding_window", "use_sliding_window",
    "max_window_layers", "layer_types", "num_local_experts", "num_experts", "n_routed_experts", "num_experts_per_tok",
    "moe_intermediate_size", "n_shared_experts", "shared_expert_intermediate_size", "decoder_sparse_step",
    "mlp_only_layers", "first_k_dense_replace", "moe_layer_freq", "interleave_moe_layer_step", "moe_layers",
    "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "attention_chunk_size",
    "intermediate_size_mlp", "no_rope_layers", "no_rope_layer_interval", "attn_config", "alibi", "num_kv_heads",
    "new_decoder_architecture", "n_layer", "n_embd", "n_head", "d_model", "attn_type_list", "sliding_window_pattern",
)  # fmt: skip
BASE = {
    "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 128, "vocab_size": 100,
}  # fmt: skip
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-1, 9), st.floats(), st.text(max_size=3))
VALUES = st.one_of(
    SCALARS,
    st.lists(st.one_of(SCALARS, st.sampled_from(["full_attention", "sliding_attention"]), st.just({})), max_size=5),
    st.dictionaries(st.sampled_from(["alibi", "attn_type", "x"]), SCALARS, max_size=2),
)


@given(
    st.sampled_from(sorted(FAMILIES)),
    st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=4)), VALUES, max_size=6),
)
@settings(max_examples=400, deadline=None)
def test_anything_is_read_or_refused(model_type, changes):
    try:
        model = from_hf_config(BASE | changes | {"model_type": model_type}, name="m", source="test")
    except InvalidDescription:
        return
    assert isinstance(model, ModelArchitecture)
    assert 0 < model.active_parameters <= model.parameters


@given(VALUES)
def test_a_model_type_that_is_no_family_is_refused(model_type):
    with pytest.raises(InvalidDescription):
        from_hf_config(BASE | {"model_type": model_type}, name="m", source="test")
