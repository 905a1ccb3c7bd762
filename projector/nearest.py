"""The known names nearest to a wrong one."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

# what other planners and engines call a key of a plan or a workload, where letters do not lead there
OTHER_NAMES: Final[Mapping[str, str]] = {
    "arrival_model": "arrivals",
    "batch_size": "max_num_seqs",
    "chunked_prefill_size": "chunked_prefill_tokens",
    "cudagraph_mode": "cuda_graph_mode",
    "data_parallel_size": "dp",
    "decode_attention_dp": "attention_dp",
    "decode_ep": "ep",
    "decode_replicas": "dp",
    "decode_tp": "tp",
    "disaggregate": "prefill_replicas",
    "ep_a2a_algo": "expert_all_to_all",
    "ep_load_balance": "expert_imbalance",
    "fuse_rmsnorm_allreduce": "fuse_all_reduce_norm",
    "gpu_memory_utilization": "hbm_frac",
    "kv_block_size": "kv_block_tokens",
    "kv_cache_memory_fraction": "hbm_frac",
    "linear_weight_dtype": "weight_dtype",
    "max_concurrency": "concurrency",
    "max_num_batched_tokens": "max_batched_tokens",
    "mem_fraction_static": "hbm_frac",
    "moe_expert_dtype": "expert_dtype",
    "pipeline_parallel_size": "pp",
    "prefix_cache_hit_rate": "prefix_hit_frac",
    "request_rate": "request_rate_per_s",
    "speculative_acceptance_rate": "draft_acceptance_frac",
    "speculative_num_tokens": "speculative_tokens",
    "tensor_parallel_size": "tp",
    "tp_allreduce_algo": "tp_all_reduce",
    "transfer_backend": "kv_transfer",
    "use_turbo_deepep": "expert_dispatch",
}
MOST = 3


def nearest_names(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """Up to three known names, the likeliest first: what others call so, then those spelled alike; () for none."""
    lower = name.lower()
    meant = OTHER_NAMES.get(lower)
    close = get_close_matches(lower, known, n=MOST, cutoff=0.4)
    if meant is not None and meant in known:
        close = [meant, *(one for one in close if one != meant)]
    return tuple(close[:MOST])
