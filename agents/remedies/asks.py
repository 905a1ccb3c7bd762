"""Asks: what a request lacks that would decide between remedies or plans, the most decisive first."""

from collections.abc import Callable
from dataclasses import dataclass

from agents.remedies.facts import Facts

MOST_ASKS = 8


@dataclass(frozen=True)
class Ask:
    """One thing to state: the request field(s) it goes in, and what it decides."""

    field: str
    text: str
    settings: tuple[str, ...]
    known: Callable[[Facts], bool]


ALL = ("training", "fine-tuning", "rl", "serving")
TRAINED = ("training", "fine-tuning")

ASKS: tuple[Ask, ...] = (
    Ask(
        "workload.model or architecture",
        "the model, or its layers, sizes and experts: memory and arithmetic rest on it",
        ALL,
        lambda f: f.model is not None or f.params is not None,
    ),
    Ask(
        "cluster.chip, cluster.chips",
        "chip, number of chips and of nodes: every plan multiplies to them",
        ALL,
        lambda f: f.chip is not None and f.chips is not None,
    ),
    Ask(
        "symptom (fabric)",
        "links inside a node and between nodes, and the NVLink domain size: they decide which axis may cross them",
        ALL,
        lambda f: f.link != "unknown",
    ),
    Ask(
        "current_plan",
        "the parallel degrees now (tp, pp, ep, cp, ZeRO stage or FSDP group, EP group span)",
        ALL,
        lambda f: any(f.get(axis) for axis in ("tp", "pp", "ep", "cp", "fsdp", "zero")),
    ),
    Ask(
        "workload.global_batch, seq_len",
        "tokens a chip and step (batch, micro-batch, sequence length), and whether the global batch may change",
        TRAINED,
        lambda f: f.tokens_per_chip is not None,
    ),
    Ask(
        "observed.peak_memory_gb, memory_limit_gb",
        "peak memory against the limit, allocated and reserved: less recompute or sharding needs room",
        (*TRAINED, "rl"),
        lambda f: f.observed.peak_memory_gb is not None,
    ),
    Ask(
        "observed.exposed_communication_frac, idle_frac",
        "exposed communication, idle and host time of a timeline (intervals, not kernel sums)",
        (*TRAINED, "serving"),
        lambda f: f.observed.exposed_communication_frac is not None,
    ),
    Ask(
        "current_plan.grad_accum",
        "gradient accumulation and when gradients are reduced (micro-batches, sync policy)",
        TRAINED,
        lambda f: f.get("grad_accum") is not None,
    ),
    Ask(
        "observed.useful_token_frac",
        "useful tokens a step: padding, packing and the length histogram",
        ("fine-tuning", "rl"),
        lambda f: f.observed.useful_token_frac is not None,
    ),
    Ask(
        "workload.concurrency",
        "concurrency, or offered rate against capacity, and running requests an engine",
        ("serving",),
        lambda f: f.get("concurrency") is not None,
    ),
    Ask(
        "workload.input_len, output_len",
        "input and output lengths (ISL, OSL) and how much of prompts is shared",
        ("serving",),
        lambda f: f.get("input_len") is not None,
    ),
    Ask(
        "slo, objective",
        "the goal: throughput, TTFT or TPOT limits",
        ("serving",),
        lambda f: f.observed.ttft_ms is not None,
    ),
    Ask(
        "architecture.kv_heads",
        "KV heads or latent attention, and KV cache capacity of the startup log",
        ("serving",),
        lambda f: f.get("kv_heads") is not None or f.is_mla,
    ),
    Ask(
        "observed.phases",
        "phase times: generation, log-probabilities, update, weight sync (assembly and wire apart)",
        ("rl",),
        lambda f: f.observed.phases is not None,
    ),
    Ask(
        "symptom (rollouts)",
        "running requests an engine, response lengths a worker (mean and longest), GPU idle in rollouts",
        ("rl",),
        lambda f: f.get("concurrency") is not None,
    ),
    Ask(
        "observed.expert_imbalance",
        "router balance: load of experts and ranks",
        (*TRAINED, "serving"),
        lambda f: not f.is_moe or f.observed.expert_imbalance is not None,
    ),
    Ask(
        "framework",
        "framework, library and engine release, kernels, backend, precision and flags in use",
        ALL,
        lambda f: "release" in f.text or "version" in f.text,
    ),
)


def asks_of(facts: Facts) -> tuple[str, ...]:
    """What is missing, as 'field: what it decides', at most eight."""
    missing = [ask for ask in ASKS if facts.setting in ask.settings and not ask.known(facts)]
    return tuple(f"{ask.field}: {ask.text}" for ask in missing[:MOST_ASKS])
