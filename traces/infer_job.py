"""What kind of job a trace is of: training or serving, which framework, a transformer language model or not."""

from collections import Counter
from typing import Final

from projector.specs.plan import Phase
from traces.facts import Facts, any_case, matching
from traces.implied_types import Inferred

_BACKWARD_OPS: Final = any_case(r"backward|autograd::engine|AccumulateGrad|transpose\(jvp\(")
_OPTIMIZER: Final = any_case(r"^Optimizer\.(?:step|zero_grad)#|^##\s*optimizer")
_TRAINING_KERNELS: Final = any_case(
    r"bwd|backward|dgrad|wgrad|wrw_gtc|_bw_|gammabeta|adam(?:w|_|functor)|adagrad|multi_tensor_(?:sgd|adam|lamb)"
)
_SERVING_MARKS: Final = any_case(r"^execute_(?:\d+_)?context_|^step\[(?:decode|extend|prefill|mixed|idle)")
_SERVING_OPS: Final = any_case(
    r"^vllm::|^sgl|^_c_cache_ops|paged_attention|batch_prefill|batch_decode|unified_attention"
)
_SERVING_KERNELS: Final = any_case(
    r"paged_?attention|paged_?kv|reshape_and_cache|store_kv|batch_?(?:prefill|decode)|unified_attention|kv_indices"
)

_ATTENTION: Final = any_case(
    r"scaled_dot_product|flash_?att|fused_?attn|attnfunc|efficient_attention|unified_attention|paged_attention|\bmha_|fmha|attn_fwd"
    r"|flash_fwd|flash_bwd|mla_(?:decode|prefill)|splash_?(?:att|mha)|dot_product_attention|/(?:self_)?attention(?:/|_\d)"
)
_ROPE: Final = any_case(r"rotary|rope(?!rt)")
_KV_CACHE: Final = any_case(r"reshape_and_cache|store_kv|store_cache|kv_cache|paged_?kv|concat_and_cache")
_NORM: Final = any_case(r"rms_?norm|layer_?norm|\bln_fwd|aten::rsqrt|rsqrt_kernel|fused.{0,200}rsqrt")
_EMBEDDING: Final = any_case(r"^aten::embedding$|^EmbeddingBackward|indexselectlargeindex|/\w*embed(?:der|ding)?s?/")
_MOE: Final = any_case(r"moe|expert|m_grouped|topk_(?:softmax|sigmoid)|\bep::(?:inter|intra)node|deep_ep")
_CONVOLUTION: Final = any_case(
    r"conv(?:olution|_general|_fwd|_bwd|[123]d)|cudnn_batch_norm|batch_norm|winograd|igemm_|dgrad_engine|max_pool"
)
_RECOMMENDER: Final = any_case(r"fbgemm|split_embedding|All2All_Pooled|embedding_bag|torchrec|pooled_emb")
_MATMUL: Final = any_case(r"^aten::(?:mm|addmm|linear|bmm)$|gemm|cijk_|nvjet")

_MASK, _IS_CAUSAL = 3, 5  # arguments of aten::scaled_dot_product_attention
_FEW = 3
_MANY_OPERATORS = 20

# Framework, names that only it writes, how sure they make. The first that is found decides: SGLang runs vLLM kernels,
# NeMo runs Megatron's, torchtitan runs FSDP, and FSDP runs beside DDP helpers, not the other way round.
_FRAMEWORKS: Final = (
    (
        "sglang",
        any_case(r"^sgl(?:ang|_kernel|_hip)?(?:::|_profiler)|^step\[(?:decode|extend|prefill|mixed)|sgl_hip"),
        0.95,
    ),
    ("vllm", any_case(r"^vllm::|^_C_cache_ops::|\bvllm::\w{0,80}_kernel|^execute_(?:\d{1,9}_)?context_"), 0.95),
    ("tensorrt_llm", any_case(r"^trtllm::|tensorrt_llm::(?:executor|batch_manager|runtime)"), 0.9),
    ("nemo", any_case(r"(?:^|[^a-z])nemo(?:[^a-z]|$)"), 0.7),
    (
        "megatron",
        any_case(
            r"megatron|LinearWithGradAccumulationAndAsyncCommunication$|^TENSOR_MODEL_PARALLEL_GROUP|^_ReduceFromModelP"
        ),
        0.8,
    ),
    (
        "deepspeed",
        any_case(r"deepspeed|^(?:Pre|Post)BackwardFunction(?:For)?Module|LinearFunctionForZeroStage3"),
        0.8,
    ),
    ("torchtitan", any_case(r"torchtitan|^mesh_(?:dp_shard_cp|dp_shard_(?:mod|in)_ep|loss|batch|efsdp)"), 0.7),
    ("torchrec", any_case(r"torchrec|All2All_Pooled|PooledEmbeddingsAwaitable"), 0.8),
    ("pytorch_fsdp", any_case(r"^FSDP::|^fsdp::|FullyShardedDataParallel"), 0.95),
    ("pytorch_ddp", any_case(r"DistributedDataParallel|distributed\.ddp\.reducer|torch::distributed::reducer"), 0.9),
    ("hf_transformers", any_case(r"transformers[./](?:models|trainer)|^accelerate\."), 0.8),
)
_MAXTEXT: Final = any_case(r"maxtext|TransformerLinenPure")


def phase(facts: Facts, transformer: Inferred[bool] | None) -> Inferred[Phase] | None:
    """Training where something runs backward, serving where requests or a paged KV cache are handled."""
    backward = matching(facts.operators, _BACKWARD_OPS) + matching(facts.kernels, _TRAINING_KERNELS)
    steps = matching(facts.annotations, _OPTIMIZER)
    marks = matching(facts.annotations, _SERVING_MARKS)
    cached = matching(facts.operators, _SERVING_OPS) + matching(facts.kernels, _SERVING_KERNELS)
    if (backward >= _FEW or steps) and not marks:
        basis = f"{backward:,} backward operators or kernels, {steps:,} optimizer marks"
        return Inferred(value="training", confidence=0.95 if backward >= _FEW else 0.7, basis=basis)
    if marks + cached:
        basis = f"{marks:,} engine iterations, {cached:,} serving or KV-cache operators or kernels"
        return Inferred(value="serving", confidence=0.95 if marks and cached else 0.85, basis=basis)
    if transformer is not None and transformer.value and facts.operators:
        return Inferred(value="serving", confidence=0.4, basis="forward operators only; no KV cache, no engine marks")
    return None


def framework(facts: Facts) -> Inferred[str] | None:
    """The framework the profile names or whose own names occur; plain PyTorch where only its operators do."""
    stated = facts.trace.metadata.framework
    if stated:
        ran = matching(facts.operators, _MAXTEXT) if stated == "jax" else 0
        if ran:
            return Inferred(value="maxtext", confidence=0.7, basis=f"{ran:,} operators under MaxText's module names")
        return Inferred(value=stated, confidence=0.95, basis="the profile names its version or programs it compiled")
    described = Counter(group.description for group in facts.trace.metadata.groups)
    for name, pattern, confidence in _FRAMEWORKS:
        tables = (facts.operators, facts.annotations, facts.kernels, described)
        counts = [matching(table, pattern) for table in tables]
        if sum(counts):
            groups = f", {counts[3]:,} process groups" if counts[3] else ""
            told = f"{counts[0]:,} operators, {counts[1]:,} annotations, {counts[2]:,} kernels{groups} bear its names"
            sure = confidence if counts[0] + counts[1] + counts[3] else 0.6
            return Inferred(value=name, confidence=sure, basis=told)
    if any(name.startswith("aten::") for name in facts.operators):
        return Inferred(value="pytorch", confidence=0.7, basis="aten operators, and no names of a framework above it")
    return None


def transformer_lm(facts: Facts) -> Inferred[bool] | None:
    """Whether the model is a transformer language model; None where too little of a model is seen to tell."""
    tables = (facts.operators, facts.kernels)
    seen = {
        name: sum(matching(table, pattern) for table in tables)
        for name, pattern in (
            ("attention", _ATTENTION),
            ("rotary embedding", _ROPE),
            ("KV cache", _KV_CACHE),
            ("norm", _NORM),
            ("token embedding", _EMBEDDING),
            ("experts", _MOE),
        )
    }
    named = (facts.operators,) if facts.kernels_are_opcodes else tables
    convolution = sum(matching(table, _CONVOLUTION) for table in named)
    recommender = sum(matching(table, _RECOMMENDER) for table in tables)
    if recommender >= _FEW:
        return Inferred(value=False, confidence=0.9, basis=f"{recommender:,} operators of sharded embedding tables")
    if seen["attention"]:
        return _with_attention(seen, convolution, looks_both_ways=_looks_both_ways(facts))
    if convolution >= _FEW:
        return Inferred(value=False, confidence=0.95, basis=f"{convolution:,} convolutions or poolings, no attention")
    matmuls = matching(facts.operators, _MATMUL)
    whole_step = (
        matching(facts.annotations, _OPTIMIZER) and matmuls and sum(facts.operators.values()) >= _MANY_OPERATORS
    )
    if whole_step:
        return Inferred(value=False, confidence=0.7, basis=f"an optimizer step, {matmuls:,} products, no attention")
    return None


def _looks_both_ways(facts: Facts) -> bool:
    """Whether all attention with recorded arguments is neither causal nor masked, as in an encoder."""
    calls = [
        inputs
        for row, inputs in facts.trace.inputs.items()
        if facts.trace.name(row) == "aten::scaled_dot_product_attention"
    ]
    return bool(calls) and all(
        inputs.values[_IS_CAUSAL : _IS_CAUSAL + 1] == ("False",) and not any(inputs.dims[_MASK : _MASK + 1])
        for inputs in calls
    )


def _with_attention(seen: dict[str, int], convolution: int, *, looks_both_ways: bool) -> Inferred[bool] | None:
    support = [name for name, count in seen.items() if count and name != "attention"]
    if not support:
        return None
    counted = ", ".join(f"{seen[name]:,} x {name}" for name in ("attention", *support))
    if convolution and not seen["rotary embedding"] + seen["KV cache"]:
        if not seen["token embedding"]:
            basis = f"{counted}; {convolution:,} convolutions and no token embedding: a vision model, perhaps"
            return Inferred(value=False, confidence=0.6, basis=basis)
        if convolution >= _FEW:
            basis = (
                f"{counted}; {convolution:,} convolutions, no rotary embedding, no KV cache: it makes images, perhaps"
            )
            return Inferred(value=False, confidence=0.6, basis=basis)
    if looks_both_ways and not seen["rotary embedding"] + seen["KV cache"]:
        basis = f"{counted}; the attention is neither causal nor masked: an encoder, perhaps"
        return Inferred(value=False, confidence=0.6, basis=basis)
    return Inferred(value=True, confidence=(0.6, 0.8, 0.95)[min(len(support), 3) - 1], basis=counted)
