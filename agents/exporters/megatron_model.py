"""The model's shape as Megatron-LM arguments: what the catalogue knows, and placeholders for what it must not guess."""

from agents.exporters.account import Account
from agents.exporters.exporter import Job
from agents.exporters.identifiers import model_identifier
from projector.specs.architecture import ModelArchitecture

# what the catalogue calls positions -> --position-embedding-type
POSITIONS = {"rope": "rope", "learned": "learned_absolute", "none": "none"}
OPEN = (
    "Left to you: data, tokenizer settings beyond the model, learning rate and its schedule, train iterations, "
    "checkpoints. Append their arguments."
)


def describe_model(account: Account, job: Job) -> None:
    """Shape, sequence length, tokenizer, and notes on what the catalogue does not hold."""
    model = job.architecture
    if model is None:
        account.note("The model is unknown: append the arguments of its shape (--num-layers, --hidden-size, ...).")
    else:
        _shape(account, model)
        _attention(account, model)
        _mlp(account, model)
    _sequence(account, job)
    account.add("--tokenizer-type", "HuggingFaceTokenizer")
    account.add("--tokenizer-model", model_identifier(account, model))
    account.note(OPEN)
    if job.documents_note is not None:
        account.note(job.documents_note)


def _shape(account: Account, model: ModelArchitecture) -> None:
    account.add("--num-layers", model.layers)
    account.add("--hidden-size", model.hidden_size)
    account.add("--vocab-size", model.vocab_size)
    if not model.tied_embeddings:
        account.add("--untie-embeddings-and-output-weights")
    account.add("--normalization", account.fill("NORMALIZATION", "LayerNorm or RMSNorm, as the model's publisher says"))
    if model.positions in POSITIONS:
        account.add("--position-embedding-type", POSITIONS[model.positions])
    else:
        account.note(f"Megatron-LM has no {model.positions} position embedding.")
    if model.sorts:
        account.note(
            "Layers of this model differ and their order is not in the catalogue: these are the arguments of a GPT "
            "model. Write the pattern of layers, and the sizes of state-space or linear-attention mixers, yourself."
        )
    if model.expert_latent_size:
        account.note(f"Its routed experts work on a latent of {model.expert_latent_size} features: say so yourself.")
    if model.parallel_block or model.post_norms:
        account.note("Norms or blocks of this model stand in other places than in Megatron-LM's GPT layer.")
    account.note(
        "The catalogue holds no normalisation, rotary base, router scoring or activation: check those arguments "
        "against the model's own configuration."
    )


def _attention(account: Account, model: ModelArchitecture) -> None:
    account.add("--num-attention-heads", model.heads)
    if model.is_mla:
        _latent_attention(account, model)
    else:
        account.add("--kv-channels", model.head_dim)
        if model.kv_heads < model.heads:
            account.add("--group-query-attention")
            account.add("--num-query-groups", model.kv_heads)
    if not model.attention_bias:
        account.add("--disable-bias-linear")
        account.note(
            "Attention has no biases in the catalogue; --disable-bias-linear takes the MLP to have none either."
        )
    if model.sliding_window is not None:
        account.note(
            f"{model.sliding_layers} layers attend to {model.sliding_window} tokens; which ones is not in the "
            "catalogue: set --window-size and --window-attn-skip-freq."
        )


def _latent_attention(account: Account, model: ModelArchitecture) -> None:
    account.add("--multi-latent-attention")
    if model.q_lora_rank:
        account.add("--q-lora-rank", model.q_lora_rank)
    account.add("--kv-lora-rank", model.kv_lora_rank)
    account.add("--qk-head-dim", model.qk_nope_head_dim)
    account.add("--qk-pos-emb-head-dim", model.qk_rope_head_dim)
    account.add("--v-head-dim", model.v_head_dim)


def _mlp(account: Account, model: ModelArchitecture) -> None:
    account.add("--ffn-hidden-size", model.intermediate_size)
    if model.gated_mlp:
        account.add("--swiglu")
        account.note("The gated MLP is written as --swiglu; use --quick-geglu where the model's gate is a GELU.")
    if model.is_moe:
        _mixture(account, model)


def _mixture(account: Account, model: ModelArchitecture) -> None:
    account.add("--num-experts", model.experts)
    account.add("--moe-router-topk", model.experts_per_token)
    account.add("--moe-ffn-hidden-size", model.moe_intermediate_size)
    account.add("--moe-grouped-gemm")
    account.note("Grouped expert GEMMs are set because the projection assumes them.")
    if model.experts_per_token == 1:
        account.add("--moe-router-pre-softmax")
        account.note("With one expert a token Megatron-LM asks for --moe-router-pre-softmax.")
    if model.shared_experts:
        account.add("--moe-shared-expert-intermediate-size", model.shared_experts * model.moe_intermediate_size)
    if model.first_dense_layers:
        account.add("--moe-layer-freq", f"([0]*{model.first_dense_layers}+[1]*{model.moe_layers})")
    elif model.moe_every_layers > 1:
        account.add("--moe-layer-freq", model.moe_every_layers)
        account.note(
            f"Experts in one of {model.moe_every_layers} layers, the first one first: check the model's own order."
        )


def _sequence(account: Account, job: Job) -> None:
    length = None if job.workload is None else job.workload.seq_len
    if length is None:
        token = account.fill("SEQ_LENGTH", "tokens a sequence")
        account.add("--seq-length", token)
        account.add("--max-position-embeddings", token)
        return
    account.add("--seq-length", length)
    longest = None if job.architecture is None else job.architecture.max_positions
    if longest is not None and longest < length:
        account.note(f"Sequences of {length} tokens pass the model's {longest} positions.")
    account.add("--max-position-embeddings", max(length, longest or length))
