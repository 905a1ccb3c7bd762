import pytest

from projector.catalog import architecture, from_hf_config
from projector.errors import InvalidDescription, UnknownName

LLAMA = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": False, "hidden_act": "silu", "rope_theta": 5e5, "pretraining_tp": 1, "mlp_bias": False,
    "rope_scaling": {"factor": 8.0}, "attention_dropout": 0.0, "bos_token_id": 128000, "torch_dtype": "bfloat16",
    "attention_bias": False, "rms_norm_eps": 1e-5, "initializer_range": 0.02, "use_cache": True,
}  # fmt: skip
GPT_OSS = {
    "model_type": "gpt_oss", "num_hidden_layers": 4, "hidden_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088,
    "num_local_experts": 128, "num_experts_per_tok": 4, "experts_per_token": 4, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 2, "router_aux_loss_coef": 0.9,
    "quantization_config": {"quant_method": "mxfp4"}, "swiglu_limit": 7.0, "initial_context_length": 4096,
}  # fmt: skip
QWEN2 = LLAMA | {
    "model_type": "qwen2", "use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28,
}  # fmt: skip


def read(config):
    return from_hf_config(config, name="m", source="test")


def test_llama():
    model = read(LLAMA)
    assert model.parameters == architecture("llama-3.1-8b").parameters
    assert (model.head_dim, model.gated_mlp, model.tied_embeddings, model.attention_bias) == (128, True, False, False)


def test_llama_without_kv_heads_has_as_many_as_heads():
    config = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    assert read(config).kv_heads == 32


def test_gpt_oss_has_experts_bias_and_alternating_windows():
    model = read(GPT_OSS)
    assert (model.experts, model.experts_per_token, model.moe_intermediate_size) == (128, 4, 2880)
    assert (model.sliding_window, model.sliding_layers, model.attention_bias) == (128, 2, True)


def test_mixtral_experts_are_as_wide_as_intermediate_size():
    model = read(LLAMA | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2})
    assert (model.experts, model.moe_intermediate_size) == (8, 14336)


def test_qwen3_moe_with_leading_dense_layers():
    moe = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1}
    model = read(LLAMA | moe | {"model_type": "qwen3_moe", "head_dim": 128, "mlp_only_layers": [0, 1]})
    assert (model.first_dense_layers, model.moe_layers) == (2, 30)


def test_a_qwen2_window_counts_only_when_switched_on():
    assert read(QWEN2).sliding_window is None
    model = read(QWEN2 | {"use_sliding_window": True})
    assert (model.sliding_window, model.sliding_layers) == (131072, 4)


def test_a_mistral_window_holds_in_every_layer():
    model = read(LLAMA | {"model_type": "mistral", "sliding_window": 4096})
    assert (model.sliding_window, model.sliding_layers) == (4096, 32)


GPT2 = {
    "model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "n_ctx": 1024,
    "vocab_size": 50257, "n_inner": None, "attn_pdrop": 0.1, "summary_type": "cls_index",
}  # fmt: skip


def test_gpt2_under_its_own_key_names():
    model = read(GPT2)
    assert (model.intermediate_size, model.gated_mlp, model.tied_embeddings) == (3072, False, True)
    assert model.parameters == pytest.approx(124.4e6, rel=0.01)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "mamba2"}, "state-space"),
        ({"model_type": "zamba2"}, "hybrid"),
        ({"model_type": "deepseek_v4"}, "compressed keys"),
        ({"model_type": "step3p5"}, "layers that differ"),
        ({"model_type": "bert"}, "encoder"),
        ({"hidden_size": 1}, "no model_type"),
        (LLAMA | {"text_config": {}}, "text_config of a multimodal config has no model_type"),
        (LLAMA | {"is_encoder_decoder": True}, "encoder-decoder"),
        (LLAMA | {"kv_lora_rank": 512}, "kv_lora_rank"),
        (LLAMA | {"num_nextn_predict_layers": 1}, "num_nextn_predict_layers"),
        (LLAMA | {"position_embedding_type": "alibi"}, "ALiBi"),
        (LLAMA | {"hidden_size": "4096"}, "not a whole number"),
        (LLAMA | {"hidden_size": True}, "not a whole number"),
        (LLAMA | {"hidden_size": 4095}, "does not divide"),
        (LLAMA | {"num_key_value_heads": 7}, "kv_heads 7 does not divide heads 32"),
        (LLAMA | {"tie_word_embeddings": "no"}, "not true or false"),
        ({key: value for key, value in LLAMA.items() if key != "vocab_size"}, "lacks vocab_size"),
        ({key: value for key, value in GPT_OSS.items() if key != "head_dim"}, "lacks head_dim"),
        (GPT_OSS | {"layer_types": ["linear_attention"] * 4}, "linear_attention"),
        (GPT_OSS | {"layer_types": ["full_attention"]}, "has to list 4 layers"),
        (LLAMA | {"model_type": "mixtral"}, "lacks num_local_experts"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(config, says):
    with pytest.raises(InvalidDescription, match=says):
        read(config)


def test_an_unknown_family_names_the_known_ones():
    with pytest.raises(UnknownName) as caught:
        read(LLAMA | {"model_type": "qwen33"})
    assert "qwen3" in caught.value.nearest


@pytest.mark.parametrize(
    ("quantization", "dtype"),
    [
        ({"quant_method": "mxfp4"}, "fp4"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8"),
        ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        ({"quant_method": "awq", "bits": 4}, None),
        (None, None),
    ],
)
def test_the_dtype_a_checkpoint_is_stored_in(quantization, dtype):
    assert read(LLAMA | {"quantization_config": quantization}).checkpoint_dtype == dtype


def test_a_quantization_config_has_to_be_an_object():
    with pytest.raises(InvalidDescription, match="quantization_config is 'fp8', not an object"):
        read(LLAMA | {"quantization_config": "fp8"})


def test_published_checkpoints_say_their_dtype():
    stored = {name: architecture(name).checkpoint_dtype for name in ("gpt-oss-120b", "deepseek-v3", "llama-3.1-8b")}
    assert stored == {"gpt-oss-120b": "fp4", "deepseek-v3": "fp8", "llama-3.1-8b": None}
