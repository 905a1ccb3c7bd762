"""Pointers to the levers a plan expresses: the proposals work them out, these say when they bear on a cause."""

import re

from agents.remedies.facts import Facts
from agents.remedies.families.memory import is_full
from agents.remedies.number_signs import BYTES_A_TRAINED_PARAMETER
from agents.remedies.rule import Judged, RemedyRule

PCIE_GAIN = 1.0  # of throughput, where all-reduces of activations leave PCIe
FITS_FRAC = 0.7  # of a chip's memory, for weights and optimizer state; the rest is for activations


def _fits_alone(facts: Facts) -> bool | None:
    """Whether the states fit without splitting the model itself (they may be sharded over data parallelism)."""
    if facts.params is None or facts.memory_gb is None:
        return None
    if facts.setting == "serving":
        return 2 * facts.params / 1e9 < FITS_FRAC * facts.memory_gb
    return BYTES_A_TRAINED_PARAMETER * facts.params / (facts.chips or 1) / 1e9 < FITS_FRAC * facts.memory_gb


def _tensor(facts: Facts) -> Judged:
    fits, tp = _fits_alone(facts), facts.degree("tp")
    if tp > 1 and facts.link == "pcie":
        return Judged("helps", f"tp {tp:g} over PCIe: split layers instead, or less", PCIE_GAIN)
    if tp > 1:
        return Judged("depends", f"tp {tp:g} now")
    if fits and facts.setting != "serving":
        return Judged("hurts", "the states fit without tensor parallelism")
    return Judged("depends")


def _pipeline(facts: Facts) -> Judged:
    fits, pp = _fits_alone(facts), facts.degree("pp")
    staged = pp > 1 or re.search(r"1f1b|gpipe|bubble|stages|pipeline", facts.text)
    if not staged and fits and not is_full(facts) and facts.degree("tp") <= 1:
        return Judged("hurts", "the model fits without stages: they only add a bubble")
    return Judged("depends", f"pp {pp:g} now" if pp > 1 else "")


def _context(facts: Facts) -> Judged:
    seq = facts.get("seq_len")
    if seq is not None and seq < 8192 and facts.degree("cp") <= 1:
        return Judged("hurts", f"sequences of {seq:g} tokens against 8,192")
    return Judged("depends")


def _experts(facts: Facts) -> Judged:
    if facts.degree("ep") <= 1 and _fits_alone(facts) and facts.setting != "serving":
        return Judged("hurts", "experts fit without an exchange of tokens")
    return Judged("depends")


def _zero(facts: Facts) -> Judged:
    if is_full(facts):
        return Judged("helps", "memory stops the run")
    return Judged("depends")


def _hybrid(facts: Facts) -> Judged:
    nodes = facts.nodes
    if nodes is not None and nodes <= 1:
        return Judged("neutral", "one node: nothing crosses between nodes")
    if nodes is not None and nodes <= 2 and re.search(r"\b\d\db\b", facts.text):
        return Judged("neutral", "two nodes: the replica all-reduce costs what the gathers save")
    return Judged("depends")


LAYOUT: tuple[RemedyRule, ...] = (
    RemedyRule(
        "tp",
        "Another tensor-parallel degree: inside the fast links, no wider than memory or latency ask for",
        ("exposed_tp", "hbm_capacity", "latency_bound_collectives"),
        "lower: it fits with less; higher: one chip cannot hold or decode it in time",
        "beyond the fast links, or beyond the KV heads",
        0.6,
        0.4,
        "reshard",
        "memory a chip (lower) or all-reduces (higher)",
        ("decode-tensor-parallelism-or-replicas", "tensor-parallelism-with-sequence-parallelism", "gpus-on-pcie-only"),
        True,
        _tensor,
    ),
    RemedyRule(
        "pp",
        "Another pipeline degree or schedule: stages across slow links, more virtual stages",
        ("pipeline_bubble", "exposed_tp", "exposed_communication"),
        "the model does not fit a node, or links between nodes are slow",
        "the model fits without: a bubble and small kernels remain",
        0.6,
        0.25,
        "reshard",
        "bubble; uneven stages",
        ("pipeline-bubble-and-interleaving", "pipeline-across-slow-links", "uneven-pipeline-stages"),
        True,
        _pipeline,
    ),
    RemedyRule(
        "ep",
        "Another expert-parallel degree: inside the fast domain",
        ("exposed_ep", "hbm_capacity", "imbalance"),
        "experts do not fit, or each sees too few tokens",
        "the group leaves the fast domain, or experts fit without",
        0.5,
        0.2,
        "reshard",
        "experts a chip (lower) or exchange (higher)",
        ("expert-parallelism-all-to-all", "expert-parallelism-beyond-the-fast-domain"),
        True,
        _experts,
    ),
    RemedyRule(
        "cp",
        "Another context-parallel degree",
        ("exposed_cp", "hbm_capacity"),
        "activations of long sequences fill the memory",
        "sequences are short: weights, not activations, fill the memory",
        0.5,
        0.1,
        "relaunch",
        "exchange of keys and values",
        ("context-parallelism-ring-attention", "long-context-training"),
        True,
        _context,
    ),
    RemedyRule(
        "zero_stage",
        "Shard as far as fitting asks, no farther: parameters whole where they fit (ZeRO 1 or 2, DDP)",
        ("exposed_dp", "hbm_capacity"),
        "states fit with less sharding, or the run does not fit and more is needed",
        "memory is nearly full (less sharding), or there is room (more)",
        0.7,
        0.2,
        "relaunch",
        "memory (less) or gathers (more)",
        ("zero-stage-and-resharding", "fsdp-full-sharding"),
        True,
        _zero,
    ),
    RemedyRule(
        "hsdp",
        "Shard inside the node and replicate across nodes",
        ("exposed_dp", "exposed_communication"),
        "gathers cross slow links and the states fit a node",
        "the replica all-reduce is not hidden, or one node holds all",
        0.6,
        0.3,
        "relaunch",
        "memory; one more all-reduce of gradients",
        ("hybrid-sharding",),
        True,
        _hybrid,
    ),
    RemedyRule(
        "dp",
        "More data parallelism in place of model splits",
        ("exposed_tp", "hbm_bandwidth"),
        "the model fits with a smaller split",
        "memory is full",
        0.5,
        0.35,
        "reshard",
        "memory a chip",
        ("decode-tensor-parallelism-or-replicas", "fsdp-full-sharding"),
        True,
    ),
)
