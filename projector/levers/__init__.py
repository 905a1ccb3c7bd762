"""Levers: one change to a plan a file, in the order of expected impact."""

from projector.errors import InvalidDescription, UnknownName
from projector.levers.attention_backend import LEVER as ATTENTION_BACKEND
from projector.levers.attention_dp import LEVER as ATTENTION_DP
from projector.levers.batching import LEVER as BATCHING
from projector.levers.chunked_prefill import LEVER as CHUNKED_PREFILL
from projector.levers.context_parallelism import LEVER as CONTEXT_PARALLELISM
from projector.levers.cuda_graphs import LEVER as CUDA_GRAPHS
from projector.levers.data_parallelism import LEVER as DATA_PARALLELISM
from projector.levers.disaggregation import LEVER as DISAGGREGATION
from projector.levers.expert_dtype import LEVER as EXPERT_DTYPE
from projector.levers.expert_exchange import LEVER as EXPERT_EXCHANGE
from projector.levers.expert_parallelism import LEVER as EXPERT_PARALLELISM
from projector.levers.fsdp import LEVER as FSDP
from projector.levers.fused_kernels import LEVER as FUSED_KERNELS
from projector.levers.fused_norm import LEVER as FUSED_NORM
from projector.levers.kv_blocks import LEVER as KV_BLOCKS
from projector.levers.kv_cache_dtype import LEVER as KV_CACHE_DTYPE
from projector.levers.kv_pool import LEVER as KV_POOL
from projector.levers.kv_transfer import LEVER as KV_TRANSFER
from projector.levers.lever import Lever
from projector.levers.micro_batch import LEVER as MICRO_BATCH
from projector.levers.overlap import LEVER as OVERLAP
from projector.levers.pipeline_parallelism import LEVER as PIPELINE_PARALLELISM
from projector.levers.precision import LEVER as PRECISION
from projector.levers.quick_reduce import LEVER as QUICK_REDUCE
from projector.levers.recompute import LEVER as RECOMPUTE
from projector.levers.redundant_experts import LEVER as REDUNDANT_EXPERTS
from projector.levers.replicas import LEVER as REPLICAS
from projector.levers.speculation import LEVER as SPECULATION
from projector.levers.tensor_parallelism import LEVER as TENSOR_PARALLELISM
from projector.levers.token_budget import LEVER as TOKEN_BUDGET
from projector.levers.tp_all_reduce import LEVER as TP_ALL_REDUCE
from projector.levers.weight_dtype import LEVER as WEIGHT_DTYPE
from projector.specs.bottleneck import Cause
from projector.specs.plan import ParallelismPlan, Phase

__all__ = ["LEVERS", "Lever", "changed_levers", "find_lever", "levers_for"]

# Expected impact, largest first: layouts, then what a step keeps and how much it does at once, then switches.
LEVERS: tuple[Lever, ...] = (
    TENSOR_PARALLELISM,
    PIPELINE_PARALLELISM,
    DATA_PARALLELISM,
    EXPERT_PARALLELISM,
    FSDP,
    CONTEXT_PARALLELISM,
    RECOMPUTE,
    MICRO_BATCH,
    PRECISION,
    OVERLAP,
    REPLICAS,
    BATCHING,
    ATTENTION_DP,
    WEIGHT_DTYPE,
    EXPERT_DTYPE,
    KV_CACHE_DTYPE,
    SPECULATION,
    DISAGGREGATION,
    CHUNKED_PREFILL,
    TOKEN_BUDGET,
    CUDA_GRAPHS,
    KV_POOL,
    ATTENTION_BACKEND,
    TP_ALL_REDUCE,
    QUICK_REDUCE,
    EXPERT_EXCHANGE,
    REDUNDANT_EXPERTS,
    FUSED_NORM,
    FUSED_KERNELS,
    KV_BLOCKS,
    KV_TRANSFER,
)


def find_lever(name: str) -> Lever:
    """The lever of this name. UnknownName with the nearest ones."""
    for known in LEVERS:
        if known.name == name:
            return known
    raise UnknownName("lever", name, (known.name for known in LEVERS))


def levers_for(cause: Cause, phase: Phase) -> tuple[Lever, ...]:
    """Levers that relieve the cause in this phase, in the order of expected impact; () where none does."""
    return tuple(lever for lever in LEVERS if cause in lever.relieves and phase in lever.phases)


def changed_levers(before: ParallelismPlan, after: ParallelismPlan) -> tuple[Lever, ...]:
    """Levers that were moved between two plans of one phase, in the order of expected impact."""
    if before.phase != after.phase:
        raise InvalidDescription(f"a {before.phase} plan compared with a {after.phase} plan")
    return tuple(
        lever
        for lever in LEVERS
        if before.phase in lever.phases
        and any(getattr(before, name) != getattr(after, name) for name in lever.attributes)
    )
