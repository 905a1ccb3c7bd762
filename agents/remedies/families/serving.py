"""Serving: scheduling, prompts, drafts, routers."""

import re

from agents.remedies.facts import Facts
from agents.remedies.rule import Judged, RemedyRule, at_least, at_most

LEAST_ACCEPTANCE = 0.6  # below it a pass with drafts costs more than the tokens it saves, for drafts of three
MOST_DRAFTED = 32.0  # requests in flight; beyond it arithmetic is not free beside the weights that are read


def _speculation(facts: Facts) -> Judged:
    accepted, users = facts.observed.draft_acceptance_frac, facts.get("concurrency")
    if accepted is not None and accepted < LEAST_ACCEPTANCE:
        wasted = Judged("hurts", f"acceptance {accepted:.2f} against {LEAST_ACCEPTANCE}")
    else:
        wasted = at_most("requests in flight", users, MOST_DRAFTED, above="hurts")
    if wasted.direction == "hurts" and re.search(
        r"\b(spec|speculat\w+|mtp|eagle)( decode)? (?!none|off|false)\w", facts.text
    ):
        return Judged("helps", f"{wasted.reads}: switch it off")
    return wasted


def _chunk(facts: Facts) -> Judged:
    given, new = facts.get("input_len"), facts.get("output_len")
    return at_least("prompt tokens a new one", given / new if given and new else None, 2)


SERVING: tuple[RemedyRule, ...] = (
    RemedyRule(
        "scheduler",
        "Fix the queue: admission limits, priorities, order by length, ahead-of-time scheduling",
        ("host_idle", "compute_throughput"),
        "requests wait although the device has room, or latency rises with a queue beyond capacity",
        "the offered load is above capacity at any order: then add replicas",
        0.5,
        0.2,
        "config",
        "refused or delayed requests",
        ("queueing-near-saturation",),
    ),
    RemedyRule(
        "chunked_prefill",
        "Fit the prefill chunk to the prompts: larger for throughput of long prompts, smaller for even decoding",
        ("compute_throughput",),
        "prompts hold twice the generated tokens and are cut into small chunks, or decode steps stall behind them",
        "prompts are short beside what is generated",
        0.5,
        0.3,
        "flag",
        "larger chunks: latency of decoding; smaller: of first tokens",
        ("chunked-prefill", "smallest-useful-prefill-chunk"),
        judge=_chunk,
    ),
    RemedyRule(
        "spec_decode",
        "Speculative decoding: on where decoding waits for weights, off where batches are large",
        ("hbm_bandwidth",),
        "few requests in flight, acceptance above 0.6, and a pass with drafts costs little more than one without",
        "large batches (arithmetic is not free), low acceptance, or a host that sets the pace",
        0.5,
        0.6,
        "flag",
        "memory for drafter and drafts; slower at high load",
        ("speculative-decoding",),
        judge=_speculation,
    ),
    RemedyRule(
        "prefix_cache",
        "Reuse the keys and values of shared prefixes",
        ("compute_throughput",),
        "requests share more than a fifth of their prompt",
        "prompts are all different: lookups and evictions then only cost",
        1.0,
        0.6,
        "flag",
        "cache memory",
        ("prefix-caching",),
        judge=lambda facts: at_least("shared share of prompts", facts.observed.shared_prefix_frac, 0.2),
    ),
    RemedyRule(
        "routing",
        "Route requests by prefix and by load, with a limit to affinity",
        ("compute_throughput", "imbalance"),
        "several replicas, shared prefixes recomputed by each, or one rank hot while others wait",
        "one prefix for all (affinity makes a hot rank), or one replica",
        0.8,
        0.9,
        "config",
        "a router that knows load and cache",
        ("prefix-caching", "data-parallel-ranks-in-lockstep"),
    ),
    RemedyRule(
        "replicas",
        "More, smaller engines: independent replicas, also several on one device",
        ("host_idle", "launch_bound", "hbm_bandwidth"),
        "the model fits a part of the chips and the host or small batches limit each engine",
        "weights or cache fill the device",
        0.5,
        0.7,
        "relaunch",
        "weights once an engine; the gain falls with each further one",
        ("decode-tensor-parallelism-or-replicas",),
        layout=True,
    ),
    RemedyRule(
        "pd_disagg",
        "Separate pools for prefill and decode, sized by which one is full",
        ("compute_throughput",),
        "prompts are long, both latency limits bind, and the load fills both pools",
        "low load or short prompts; the transfer of keys and values then only adds time",
        0.5,
        0.3,
        "relaunch",
        "transfer of keys and values; two pools to size for the ratio of lengths",
        ("disaggregated-prefill-and-decode",),
        layout=True,
    ),
    RemedyRule(
        "attention_dp",
        "Attention data parallelism: each rank keeps the cache of its own requests",
        ("hbm_capacity",),
        "tp exceeds the KV heads (latent attention has one), and many requests are in flight",
        "few requests, or attention weights on every rank leave no room for cache",
        0.6,
        0.7,
        "relaunch",
        "attention weights on every rank; ranks wait for the one with most work",
        ("attention-data-parallelism", "attention-dp-crossover"),
        layout=True,
        judge=lambda facts: (
            Judged("hurts", f"{facts.chips:g} chips: weights on every rank leave little cache")
            if facts.chips is not None and facts.chips <= 4
            else at_least("requests in flight", facts.get("concurrency"), 16, below="hurts")
        ),
    ),
)
