"""Memory: capacity that frees a faster setting, and the cliff near the limit."""

import re

from agents.remedies.facts import Facts
from agents.remedies.rule import Judged, RemedyRule

ROOM_FRAC = 0.80  # of memory in use: below it there is room for what recompute or sharding saves
CLIFF_FRAC = 0.95
HOST_LINK_GAIN = 2.0  # of throughput; host links are 10 to 60 times slower than HBM, and a part of the bytes cross them


def used_frac(facts: Facts) -> float | None:
    """Peak over limit, or over the chip's memory."""
    peak, limit = facts.observed.peak_memory_gb, facts.observed.memory_limit_gb or facts.memory_gb
    return peak / limit if peak is not None and limit is not None else None


def is_full(facts: Facts) -> bool:
    """Whether memory is what stops the run, or close to."""
    used = used_frac(facts)
    said = re.search(r"does not fit|out of memory|\boom\b|allocator limit", facts.text)
    return bool(facts.observed.out_of_memory or (used is not None and used > CLIFF_FRAC) or said)


def _recompute(facts: Facts) -> Judged:
    used = used_frac(facts)
    off = re.search(r"(recompute|ac|remat|checkpointing) (none|off|false)", facts.text)
    if is_full(facts):
        return Judged("helps", "memory stops the run: recompute what costs least")
    if off:
        return Judged("neutral", "nothing is recomputed now, and memory does not stop the run")
    if used is not None:
        return Judged("helps" if used < ROOM_FRAC else "depends", f"memory {used:.0%} full against {ROOM_FRAC:.0%}")
    return Judged("depends")


def _offload(facts: Facts) -> Judged:
    if re.search(r"offload (?!none|off|false)\w", facts.text) and re.search(
        r"every (token|step)|per token|stream", facts.text
    ):
        return Judged("helps", "what is used in every step crosses the host link now: bring it back", HOST_LINK_GAIN)
    if is_full(facts):
        return Judged("depends", "host memory and the host link decide")
    return Judged("hurts", "memory does not stop the run: the host link would only add time")


MEMORY: tuple[RemedyRule, ...] = (
    RemedyRule(
        "memory",
        "Step back from the memory limit: free replicated tensors, buffers and fragments",
        ("hbm_capacity",),
        "peak memory is above 95 % of the limit: allocators retry and compilers recompute there",
        "there is room: memory saved then gains no time",
        0.5,
        0.09,
        "config",
        "the batch or the cache gives up the last few per cent",
        ("memory-cliff-and-fragmentation",),
    ),
    RemedyRule(
        "recompute",
        "Fit recompute to memory: none where it fits, by module where it nearly does, whole layers last",
        ("hbm_capacity", "compute_throughput"),
        "less of it: memory is below 80 % full; more of it: the run does not fit",
        "attention is fused (nothing large is stored), or memory is full and recompute goes away",
        0.7,
        0.15,
        "config",
        "less recompute: activation memory; more: up to a third of the step",
        ("activation-recompute", "selective-recompute-by-module"),
        judge=_recompute,
    ),
    RemedyRule(
        "optimizer",
        "Shrink or shard optimizer state, or its step: 16-bit or 8-bit moments, sharded updates",
        ("hbm_capacity", "compute_throughput"),
        "optimizer state is a large share of memory, or its step a visible share of time",
        "activations fill the memory",
        0.8,
        0.09,
        "config",
        "narrower moments change numerics: allow that first",
        ("zero-stage-and-resharding", "optimizer-state-in-host-memory"),
    ),
    RemedyRule(
        "offload",
        "Move state to host memory, where it fits there and the link keeps up",
        ("hbm_capacity", "copies"),
        "the run does not fit otherwise, and bytes / host link < the time they may hide under",
        "it fits without: the host link is 10 to 60 times slower than HBM",
        0.3,
        0.1,
        "config",
        "host memory; time of the host link unless hidden",
        ("activation-offload-to-host", "optimizer-state-in-host-memory", "kv-cache-in-host-memory"),
        judge=_offload,
    ),
    RemedyRule(
        "kv",
        "Make room for keys and values: narrower cache, larger pool, fewer copies, exact profiling of the peak",
        ("hbm_capacity",),
        "requests are preempted or queue for cache, not for arithmetic",
        "the cache is not full",
        0.6,
        0.7,
        "flag",
        "8-bit caches change numerics a little; a larger pool leaves less for spikes",
        ("kv-cache-and-decode-batching", "quantised-weights-and-kv-cache", "kv-cache-quantisation-accuracy"),
    ),
)
