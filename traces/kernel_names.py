"""What a kernel or operator name says: ordered rules, the first match decides. Names are data, never interpreted.

Each table pairs a meaning with the spellings that carry it: CUDA, ROCm, Triton, CUTLASS, CK, Tensile (Cijk), nvjet,
cuDNN, MIOpen, FlashAttention, vLLM, SGLang, TensorRT-LLM, FBGEMM. A name that no rule knows is unclassified.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from projector.breakdown import OperatorKind

Rules = Sequence[tuple[str, re.Pattern[str]]]

_CACHED_NAMES: Final = 16_384
LONGEST_NAME: Final = 1_000
"""Rules look at so many characters of a name; longer ones are templates whose tail tells nothing more."""


def _rules(*pairs: tuple[str, str]) -> Rules:
    return tuple((meaning, re.compile(pattern, re.IGNORECASE)) for meaning, pattern in pairs)


# Inductor names a fused pointwise kernel after the operators around it (triton_poi_fused_all_gather_...): that is never
# communication.
_INDUCTOR: Final = re.compile(r"triton_(?:poi|red|per|tem|for|mm)_", re.IGNORECASE)

# Kernels of a collective library begin with its name; what they do stands behind it, if anywhere.
_LIBRARY: Final = re.compile(r"(?:void\s+)?\w{0,16}?(?:nccl|rccl|msccl)", re.IGNORECASE)
_COLLECTIVES: Final = _rules(
    ("all_reduce", r"all_?reduce"),
    ("all_gather", r"all_?gather"),
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_to_all", r"all_?to_?all"),
    ("broadcast", r"broadcast"),
    ("send_recv", r"send_?recv"),
    ("reduce", r"kernel_reduce"),
    ("nccl", r""),
)

# "^[^<(]*" keeps the template arguments of another kernel from deciding.
_COMMUNICATION: Final = _rules(
    ("all_reduce", r"multimem_all_?reduce|(?:one|two)_?shot_(?:all_?reduce|car)|cross_device_reduce|quick_?reduce"),
    ("all_reduce", r"custom_all_?reduce|lamport\w{0,30}reduce|all_?reduce_fusion|car_barrier"),
    ("all_gather", r"multimem_all_?gather|custom_all_?gather"),
    ("reduce_scatter", r"multimem_reduce_?scatter|custom_reduce_?scatter"),
    ("all_to_all", r"all_?to_?all(?:v|_v)?_?kernel|moe_?a2a|moealltoall"),
    ("expert_dispatch", r"\bep::(?:inter|intra)node(?:_ll)?::\w{0,30}dispatch"),
    ("expert_dispatch", r"deep_ep::(?:inter|intra)node\w{0,5}::\w{0,30}dispatch"),
    ("expert_combine", r"\bep::(?:inter|intra)node(?:_ll)?::\w{0,30}combine"),
    ("expert_combine", r"deep_ep::(?:inter|intra)node\w{0,5}::\w{0,30}combine"),
    ("expert_notify", r"\bep::(?:inter|intra)node(?:_ll)?::|deep_ep::(?:inter|intra)node"),
    ("expert_dispatch", r"\bep_?dispatch_?(?:intra|inter)_?node|pplx\w{0,30}dispatch"),
    ("expert_combine", r"\bep_?combine_?(?:intra|inter)_?node|pplx\w{0,30}combine"),
    ("one_sided", r"nvshmem|rocshmem|ishmem"),
    ("userbuffers", r"\buserbuffers_"),
    ("symmetric_memory", r"\bsymm_?mem\w{0,30}_kernel|(?:put|wait)_signal_kernel"),
    ("all_reduce", r"^[^<(]*all_?reduce"),
    ("all_gather", r"^[^<(]*all_?gather(?!_copy)"),
    ("reduce_scatter", r"^[^<(]*reduce_?scatter(?!_copy)"),
)

_COPY: Final = _rules(
    ("memset", r"^(?:void\s+)?(?:hip|cuda)?memset\b|^__amd_rocclr_fillbuffer|^fillbuffer"),
    ("memcpy", r"^(?:void\s+)?(?:hip|cuda)?memcpy(?:\w*async)?\b|^__amd_rocclr_copybuffer"),
    ("memcpy", r"^copy(?:host|device)to(?:host|device)"),
)

_KINDS: Final = _rules(
    ("norm", r"^triton_(?:red|per)_fused.*(?:rsqrt|layer_norm|rms_norm|batch_norm)"),
    ("elementwise", r"^triton_(?:poi|red|per|for)_"),
    ("other", r"barrier_?kernel|spin_kernel|nanosleep"),
    ("elementwise", r"rotary|\brope|_rope|mrope"),
    ("embedding", r"split_embedding|embedding|permute_pooled_embs|recat_(?:embedding|copy)|index_?select"),
    (
        "moe",
        r"\bmoe|_moe|moe_|m_grouped|topk_?(?:softmax|sigmoid)|topk_gating|_matmul_ogs|expert|fused_mapping|combined_routing",
    ),
    (
        "moe",
        r"routing|sum_bitmatrix|topk_sum_and|dispatch_layout|expand_to_fused|reduce_fused|unique_group_indices|aux_fi_impl",
    ),
    ("moe", r"^_topk_(?:forward|backward)|finalize_matmul_scatter|expand_?row|permute_tokens|count_and_sort"),
    (
        "attention",
        r"flash_?(?:attn|fwd|bwd|attention|infer|mla)|\bflash::|fmha|attention(?!_?mask)|attn|sdpa|mha_|_mha",
    ),
    (
        "attention",
        r"batch_?(?:prefill|decode)|paged_?(?:kv|attn)|unified_attn|mla_|_mla\b|_fwd_(?:grouped_)?kernel_stage|lean_?att",
    ),
    ("attention", r"reshape_and_cache|store_kv|kv_?cache|concat_and_cache|kv_indices|copy_page_indices|set_kv_buffer"),
    (
        "norm",
        r"rms_?norm|layer_?norm|batch_?norm|group_?norm|instance_?norm|\bln_(?:fwd|bwd)|bn_(?:fw|bw)|gammabeta|norm2d|rowwisemoments",
    ),
    (
        "optimizer",
        r"adam|adagrad|\blamb_|lambfunctor|fusedlamb|fused_?sgd|sgd_?functor|lion_|shampoo|muon|multi_tensor_sgd",
    ),
    (
        "other",
        r"conv(?!er)|winograd|wgrad_|dgrad_|scudnn|igemm_(?:fwd|bwd|wrw)|im2col|col2im|xmma_(?:fprop|dgrad|wgrad)",
    ),
    (
        "other",
        r"nchw|nhwc|batched_transpose|subtensorop|cask_cudnn|cudnn::ops|cnhw|max_?pool|av(?:g|erage)_?pool|miopen|fft2d",
    ),
    ("sampling", r"sampling|sampler|arg_?max|top_?p\b|top_?k_?top_?p|multinomial|gumbel|min_p|penalt|logprob"),
    (
        "gemm",
        r"gemm|gemv|nvjet|cijk_|xmma|matmul|\bbmm_|_bmm|splitkreduce|cublas|hipblas|rocblas|wvsplitk|cutlass(?!::bfl)",
    ),
    ("gemm", r"triton_(?:mm|tem)|_mm_|\bmm_kernel|marlin|wmma|wgmma|scaled_mm|skinny|dot_kernel|epilogue::impl"),
    ("elementwise", r"swiglu|silu|gelu|act_and_mul|relu|sigmoid|tanh|softmax|dropout|threshold"),
    (
        "quantise",
        r"quant|fp8|_to_hfp8|hfp8|int8|mxfp|nvfp4|fp4|per_token_cast|per_channel_cast|cast_back|amax|scale_swizzle",
    ),
    ("elementwise", r"elementwise|at::native::.{0,300}functor|multi_tensor_apply|catarray|copy_?kernel|scal_kernel"),
    (
        "elementwise",
        r"reduce_kernel|gather|scatter|index_|indexfunc|transpose|arange|fill|masked|triu|tril|permute|_copy_tensor|batched_copy",
    ),
    (
        "elementwise",
        r"distribution|nll_?loss|cross_?entropy|classnll|mse_|tensorlist|foreach|where_|clamp|cumsum|pad_|roll_|flip_",
    ),
    (
        "other",
        r"\bcub::|thrust::|rocprim|hipcub|radix|sort|topk|\bscan|histogram|fbgemm_gpu|linearize_index|bounds_check",
    ),
    ("other", r"_position|token_ids|slot_mapping|block_table|to_dense_representation|offsets|tensormaps"),
)

# HLO operators of the CPU backend of XLA: an opcode, and a number where it occurs more than once.
_HLO_END: Final = r"(?:-start|-done)?(?:\.\d+)*$"

_HOST_COMMUNICATION: Final = _rules(
    ("all_reduce", rf"^all-reduce{_HLO_END}"),
    ("all_gather", rf"^all-gather{_HLO_END}"),
    ("reduce_scatter", rf"^reduce-scatter{_HLO_END}"),
    ("all_to_all", rf"^(?:ragged-)?all-to-all{_HLO_END}"),
    ("collective_permute", rf"^collective-permute{_HLO_END}"),
    ("", r"^FSDP::|fused_\w{0,60}matmul|matmul_\w{0,60}fused|_copy_in|_copy_out|copy_bucket|_wrap_tensor|reducer::"),
    ("all_reduce", r":\w{0,30}?all_?reduce"),
    ("all_gather", r":\w{0,30}?all_?gather"),
    ("reduce_scatter", r":\w{0,30}?reduce_?scatter"),
    ("all_to_all", r":\w{0,30}?all_?to_?all"),
    ("broadcast", r"^(?:nccl|gloo|mpi|ucc|xccl|hccl):_?broadcast|^c10d::_?broadcast|^_?c10d_functional::broadcast"),
    ("send_recv", r"^(?:nccl|gloo|mpi|ucc|xccl|hccl):_?(?:send|recv|batch|coalesced)|^c10d::(?:send|recv)"),
    ("expert_dispatch", r"(?:deep_?ep|nvshmem|pplx|mori)\w{0,20}(?:::|\.)?\w{0,20}dispatch"),
    ("expert_combine", r"(?:deep_?ep|nvshmem|pplx|mori)\w{0,20}(?:::|\.)?\w{0,20}combine"),
    ("wait", r"^_?c10d_functional::wait_tensor"),
    (
        "collective",
        r"^record_param_comms$|^(?:nccl|rccl|gloo|mpi|ucc|xccl|hccl):|^c10d::|^_c10d_functional::|^symm_mem::",
    ),
    ("one_sided", r"^nvshmem|^rocshmem|^deep_ep::"),
)

_OPERATOR_KINDS: Final = _rules(
    ("gemm", r"^dot(?:\.\d+)*$"),
    ("elementwise", r"^(?!ynn_)\w+_fusion(?:\.\d+)*$|^wrapped_\w+(?:\.\d+)*$"),
    ("elementwise", r"^(?:copy|transpose|broadcast|concatenate|slice|reduce|select|convert|pad)(?:\.\d+)*$"),
    ("attention", r"scaled_dot_product|flash_attn|flash_attention|efficient_attention|attention|::mha|_mla|flashattn"),
    ("attention", r"reshape_and_cache|kv_cache|store_cache"),
    ("moe", r"moe|expert|grouped_mm"),
    ("embedding", r"^aten::embedding|EmbeddingBackward|embedding_bag|split_embedding"),
    ("elementwise", r"rotary|rope"),
    ("norm", r"rms_?norm|layer_?norm|batch_?norm|group_?norm"),
    ("gemm", r"^aten::(?:mm|addmm|bmm|baddbmm|matmul|linear|_scaled_mm)$|gemm|MmBackward|LinearWithGrad"),
    ("other", r"conv"),
    ("quantise", r"quant|fp8"),
    ("optimizer", r"^Optimizer\.step|adam|_fused_sgd"),
    ("sampling", r"^aten::(?:argmax|multinomial)|sampl"),
    ("elementwise", r"^aten::\w+"),
)


def _first(rules: Rules, name: str) -> str | None:
    for meaning, pattern in rules:
        if pattern.search(name, 0, LONGEST_NAME):
            return meaning or None
    return None


def without_parameters(kernel: str) -> str:
    """A demangled name without its parameter list, whose types say nothing of the kernel."""
    if not kernel.endswith(")"):
        return kernel
    depth = 0
    for position in range(len(kernel) - 1, max(len(kernel) - 10 * LONGEST_NAME, 0), -1):
        depth += {")": 1, "(": -1}.get(kernel[position], 0)
        if not depth:
            return kernel[:position]
    return kernel


@lru_cache(_CACHED_NAMES)
def communication_of(kernel: str) -> str | None:
    """Collective a kernel name stands for ("nccl" where only the library is known), or None."""
    if _INDUCTOR.match(kernel):
        return None
    name = without_parameters(kernel)
    return _first(_COLLECTIVES if _LIBRARY.match(name) else _COMMUNICATION, name)


@lru_cache(_CACHED_NAMES)
def is_copy(kernel: str) -> bool:
    """Whether a kernel name is that of a copy or a memset."""
    return _first(_COPY, kernel) is not None


@lru_cache(_CACHED_NAMES)
def kind_of(kernel: str) -> OperatorKind | None:
    """Kind of computation a kernel name stands for, or None where no rule knows it."""
    return _first(_KINDS, without_parameters(kernel))  # type: ignore[return-value]


@lru_cache(_CACHED_NAMES)
def host_communication_of(operator: str) -> str | None:
    """Collective a host operator or annotation performs, or None."""
    return _first(_HOST_COMMUNICATION, operator)


@lru_cache(_CACHED_NAMES)
def kind_of_operator(operator: str) -> OperatorKind | None:
    """Kind of computation a host operator stands for, or None."""
    return _first(_OPERATOR_KINDS, operator)  # type: ignore[return-value]
