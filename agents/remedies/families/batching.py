"""How much work a pass holds: batch, packing, micro-batches, precision of its products."""

from agents.remedies.facts import Facts
from agents.remedies.families.memory import is_full
from agents.remedies.remedy import Direction
from agents.remedies.rule import Judged, RemedyRule, at_least

ENOUGH_TOKENS_A_CHIP = 8192.0  # a step; beyond it large products reach their rate and gathers are small beside them


def _batch(facts: Facts) -> Judged:
    if facts.setting == "serving":
        return Judged("depends")
    if is_full(facts):
        return Judged("hurts", "memory is full")
    tokens = facts.tokens_per_chip
    if tokens is None:
        return Judged("depends")
    side: Direction = "helps" if tokens < ENOUGH_TOKENS_A_CHIP else "neutral"
    return Judged(side, f"{tokens:,.0f} tokens a chip and step against {ENOUGH_TOKENS_A_CHIP:,.0f}")


def _precision(facts: Facts) -> Judged:
    hidden = facts.model.hidden_size if facts.model is not None else None
    return at_least("hidden size", hidden, 4096, below="neutral")


BATCHING: tuple[RemedyRule, ...] = (
    RemedyRule(
        "batch",
        "Give each pass more work: tokens a chip in training, requests in flight in serving and rollouts",
        ("exposed_dp", "hbm_bandwidth", "compute_throughput", "launch_bound"),
        "training: under about 8,192 tokens a chip and step with sharded weights; decoding: batches below the ridge",
        "memory is full (the cliff costs more than the batch gains), or requests already queue for cache",
        0.6,
        0.5,
        "config",
        "training: a larger global batch changes what is learned: allow that first; serving: latency a token",
        ("micro-batch-and-accumulation", "kv-cache-and-decode-batching", "decode-batch-of-a-mixture-of-experts"),
        judge=_batch,
    ),
    RemedyRule(
        "packing",
        "Pack sequences to a budget of tokens instead of padding them",
        ("compute_throughput",),
        "useful tokens / computed tokens < 0.85",
        "lengths are alike already",
        1.0,
        1.5,
        "config",
        "attention must not cross documents; compare useful tokens per second, not steps",
        ("sequence-packing-and-padding",),
        judge=lambda facts: (
            Judged("depends")
            if facts.observed.useful_token_frac is None
            else Judged(
                "helps" if facts.observed.useful_token_frac < 0.85 else "neutral",
                f"useful share {facts.observed.useful_token_frac:.2f} against 0.85",
            )
        ),
    ),
    RemedyRule(
        "microbatches",
        "More micro-batches a step, or more virtual stages, shrink the bubble",
        ("pipeline_bubble",),
        "(pp - 1) / (m vp + pp - 1) is above 15 %",
        "throughput does not move with m: then kernels or the host limit, not the bubble",
        0.6,
        0.2,
        "config",
        "smaller products; more stage transfers",
        ("pipeline-bubble-and-interleaving", "micro-batch-and-accumulation"),
    ),
    RemedyRule(
        "precision",
        "Run large products in 8 bit; keep small ones in 16",
        ("compute_throughput", "hbm_bandwidth"),
        "products are large (hidden size of some thousands, thousands of rows) and take most of the step",
        "products are small: casting and scaling cost more than they save; or weights are widened for every product",
        0.2,
        0.03,
        "config",
        "numerics change: allow that first; the gain holds for one stack and release",
        ("fp8-training", "block-scaled-formats-mxfp8-nvfp4", "weight-only-or-fp8-serving"),
        judge=_precision,
    ),
)
