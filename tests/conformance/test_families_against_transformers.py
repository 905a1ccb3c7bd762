"""Every model_type we read: our parameter count against the model transformers builds from the same config.

The models are built without storage. Biases and norms inside attention are what the counts may differ by.
"""

import warnings

import pytest

from projector.hf.families import FAMILIES
from projector.hf_config import from_hf_config

SIZES = {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 4000}
GQA = SIZES | {"num_key_value_heads": 4, "intermediate_size": 2816}
EXPERTS = GQA | {"num_local_experts": 8, "head_dim": 64}
LATENT = SIZES | {
    "num_key_value_heads": 16, "intermediate_size": 2816, "moe_intermediate_size": 512, "kv_lora_rank": 256,
    "num_experts_per_tok": 6, "first_k_dense_replace": 1, "n_routed_experts": 16,
}  # fmt: skip
CONFIGS = {
    "llama": GQA,
    "mistral": GQA,
    "mixtral": GQA,
    "qwen2": GQA,
    "qwen3": GQA | {"head_dim": 128},
    "qwen3_moe": GQA | {"head_dim": 128, "num_experts": 16, "moe_intermediate_size": 512, "decoder_sparse_step": 2},
    "olmo3": GQA | {"num_hidden_layers": 8, "pad_token_id": 1},
    "gemma": GQA | {"head_dim": 128},
    "gemma2": GQA | {"head_dim": 128},
    "gemma3_text": GQA | {"head_dim": 128, "num_hidden_layers": 7},
    "nemotron": GQA | {"head_dim": 64, "intermediate_size": 4096},
    "nemotron_h": EXPERTS
    | {"hybrid_override_pattern": "MEM-*E", "mamba_num_heads": 32, "mamba_head_dim": 64, "n_groups": 4,
       "n_routed_experts": 8, "moe_intermediate_size": 512, "moe_shared_expert_intermediate_size": 1024,
       "moe_latent_size": 256},
    "qwen3_next": GQA
    | {"head_dim": 128, "num_experts": 16, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
       "linear_num_value_heads": 8, "linear_num_key_heads": 4, "decoder_sparse_step": 2},
    "qwen3_5_text": GQA | {"head_dim": 128, "linear_num_value_heads": 8, "linear_num_key_heads": 4},
    "qwen3_5_moe_text": SIZES
    | {"num_key_value_heads": 4, "head_dim": 128, "num_experts": 16, "moe_intermediate_size": 512,
       "shared_expert_intermediate_size": 512},
    "gemma4_text": GQA
    | {"num_hidden_layers": 12, "head_dim": 128, "global_head_dim": 256, "attention_k_eq_v": False,
       "hidden_size_per_layer_input": 64, "vocab_size_per_layer_input": 4000, "num_kv_shared_layers": 6,
       "use_double_wide_mlp": True},
    "gpt_oss": EXPERTS | {"intermediate_size": 1024, "layer_types": None},
    "minimax_m2": EXPERTS | {"intermediate_size": 512},
    "llama4_text": EXPERTS
    | {"intermediate_size": 512, "intermediate_size_mlp": 2816, "num_hidden_layers": 8, "interleave_moe_layer_step": 2,
       "pad_token_id": 1},
    "deepseek_v2": LATENT | {"q_lora_rank": None},
    "deepseek_v3": LATENT | {"q_lora_rank": 384, "n_group": 4, "topk_group": 2},
    "gpt2": {"n_embd": 1024, "n_layer": 4, "n_head": 16, "vocab_size": 4000},
    "gptj": {"n_embd": 1024, "n_layer": 4, "n_head": 16, "vocab_size": 4000, "rotary_dim": 32},
    "bloom": {"hidden_size": 1024, "n_layer": 4, "n_head": 16, "vocab_size": 4000},
    "mpt": {"d_model": 1024, "n_layers": 4, "n_heads": 16, "vocab_size": 4000},
    "falcon": SIZES | {"num_kv_heads": 4, "new_decoder_architecture": True, "ffn_hidden_size": 4096},
}  # fmt: skip
SPARSE = LATENT | {
    "num_hidden_layers": 6, "q_lora_rank": 384, "index_topk": 512, "index_n_heads": 8, "index_head_dim": 64,
}  # fmt: skip
CONFIGS |= {
    "deepseek_v32": SPARSE | {"n_group": 4, "topk_group": 2},
    "glm_moe_dsa": SPARSE | {"indexer_types": ["full", "full", "shared", "shared", "full", "shared"]},
    "minimax_m3_vl_text": GQA
    | {"head_dim": 64, "intermediate_size": 512, "shared_intermediate_size": 512, "dense_intermediate_size": 2816,
       "num_local_experts": 8, "index_n_heads": 4, "index_head_dim": 64, "pad_token_id": 1,
       "layer_types": ["full_attention"] * 2 + ["minimax_m3_sparse"] * 2,
       "mlp_layer_types": ["dense"] * 2 + ["sparse"] * 2},
    "mimo_v2_flash": GQA
    | {"head_dim": 96, "v_head_dim": 64, "n_routed_experts": 8, "moe_intermediate_size": 512, "num_experts_per_tok": 2,
       "swa_num_key_value_heads": 8},
    "kimi_linear": SIZES
    | {"num_key_value_heads": 16, "intermediate_size": 2816, "moe_intermediate_size": 512, "num_local_experts": 8,
       "num_experts_per_tok": 2, "kv_lora_rank": 256, "q_lora_rank": None, "linear_num_heads": 8,
       "linear_head_dim": 128, "pad_token_id": 1},
}  # fmt: skip
MAMBA_2 = GQA | {"mamba_n_heads": 32, "mamba_d_head": 64}
CONFIGS |= {
    "jamba": GQA
    | {"num_hidden_layers": 8, "attn_layer_period": 4, "attn_layer_offset": 2, "expert_layer_period": 2,
       "expert_layer_offset": 1, "num_experts": 4, "pad_token_id": 1},
    "granitemoehybrid": MAMBA_2
    | {"num_local_experts": 8, "intermediate_size": 512, "shared_intermediate_size": 1024, "pad_token_id": 1,
       "layer_types": ["mamba", "mamba", "attention", "mamba"]},
    "bamba": MAMBA_2 | {"attn_layer_indices": [2]},
    "falcon_h1": MAMBA_2 | {"mamba_d_ssm": 2048, "mamba_rms_norm": True},
    "minimax": EXPERTS
    | {"intermediate_size": 512, "layer_types": ["linear_attention", "full_attention"] * 2},
}  # fmt: skip
# The same model_type in another of its forms.
FORMS = {
    "gemma4_text with experts": GQA
    | {"model_type": "gemma4_text", "num_hidden_layers": 6, "head_dim": 128, "global_head_dim": 256,
       "num_global_key_value_heads": 2, "attention_k_eq_v": True, "hidden_size_per_layer_input": 0,
       "enable_moe_block": True, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 704},
}  # fmt: skip
# Their classes are code beside the checkpoint; kimi_k2 has the sizes of deepseek_v3, mimo of qwen2, internlm of llama,
# minimax_m3 of minimax_m3_vl_text; nemotron-nas is held against a published count.
OUTSIDE_TRANSFORMERS = {"internlm", "kimi_k2", "mimo", "minimax_m3", "nemotron-nas"}
# Language models of multimodal ones, built with their encoders only: the sizes of qwen3 and qwen3_moe.
WITHIN_MULTIMODAL = {"qwen3_vl_text", "qwen3_vl_moe_text"}


def test_every_family_is_held_against_transformers():
    assert set(CONFIGS) | OUTSIDE_TRANSFORMERS | WITHIN_MULTIMODAL == set(FAMILIES)


@pytest.mark.parametrize("form", [*CONFIGS, *FORMS])
def test_parameter_count_is_that_of_the_built_model(form):
    stated = CONFIGS.get(form) or FORMS[form]
    model_type = stated.get("model_type", form)
    sizes = {key: value for key, value in stated.items() if key != "model_type"}
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.AutoConfig.for_model(model_type, **sizes)
        built = transformers.AutoModelForCausalLM.from_config(config)
    counted = sum(parameter.numel() for parameter in built.parameters())
    model = from_hf_config(config.to_dict(), name=model_type, source="transformers")
    assert model.parameters == pytest.approx(counted, rel=1e-3)
