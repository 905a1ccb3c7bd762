"""Collectives that could be hidden, merged, sent by another algorithm, or need not be there."""

from agents.remedies.facts import Facts
from agents.remedies.rule import Judged, RemedyRule, at_least

OVERLAP_WORTH_FRAC = 0.10  # of the step exposed: below it what overlap adds in launches and contention eats the gain


def _exposed(facts: Facts) -> float | None:
    return facts.observed.exposed_communication_frac


def _overlap(facts: Facts) -> Judged:
    if (facts.observed.host_frac or 0.0) > OVERLAP_WORTH_FRAC:
        return Judged("hurts", f"the host takes {facts.observed.host_frac:.0%} of the step: more launches lengthen it")
    return at_least("exposed share", _exposed(facts), OVERLAP_WORTH_FRAC)


def _algorithm(facts: Facts) -> Judged:
    return at_least("exposed share", _exposed(facts), OVERLAP_WORTH_FRAC)


def _dispatch(facts: Facts) -> Judged:
    if facts.is_moe and facts.get("ep") == 1:
        return Judged("hurts", "ep 1: no token leaves its device now")
    return Judged("depends")


def _accumulation(facts: Facts) -> Judged:
    steps = facts.get("grad_accum") or facts.get("microbatches")
    if steps is None:
        return Judged("depends")
    return Judged("helps" if steps > 1 else "neutral", f"{steps:g} micro-batches a step against 1")


def _strong_scaling(facts: Facts) -> Judged:
    tokens = facts.tokens_per_chip
    return Judged("hurts", f"{tokens:,.0f} tokens a chip and step, at a fixed batch" if tokens else "a fixed batch")


COLLECTIVES: tuple[RemedyRule, ...] = (
    RemedyRule(
        "sharding",
        "Restore the sharding that the software lost: annotations, axis rules, a reshard in two hops",
        ("exposed_communication", "exposed_dp", "exposed_tp", "hbm_capacity"),
        "the program moves or replicates tensors that the mesh does not ask for (compiler log, profile)",
        "every collective of the profile is one the layout needs",
        0.8,
        0.9,
        "code",
        "a change of model or framework code; check the numbers afterwards",
        ("collectives-the-layout-does-not-need", "vocabulary-parallel-loss"),
    ),
    RemedyRule(
        "overlap",
        "Hide the exposed collectives: prefetch, chunk, run them beside compute",
        ("exposed_tp", "exposed_dp", "exposed_ep", "exposed_communication"),
        "exposed communication is above 10 % of the step, and there is compute to hide it under",
        "the host sets the pace (more launches), or kernels slow down beside the collectives by more than is hidden",
        0.5,
        0.12,
        "flag",
        "buffers; compute kernels beside collectives run slower; some flags are silent no-ops: check the trace",
        (
            "overlap-slows-the-kernels-beside-it",
            "two-micro-batch-overlap-of-the-exchange",
            "gradient-reduction-overlap",
        ),
        judge=_overlap,
    ),
    RemedyRule(
        "grad_accum",
        "Reduce gradients once a step, not once a micro-batch",
        ("exposed_dp",),
        "gradients are accumulated over more than one micro-batch and reduced each time",
        "parameters are sharded: every further micro-batch gathers them again",
        0.7,
        0.35,
        "config",
        "unreduced gradients stay in memory until the last micro-batch",
        ("accumulation-without-deferred-reduction", "micro-batch-and-accumulation"),
        judge=_accumulation,
    ),
    RemedyRule(
        "ep_dispatch",
        "Choose the token exchange by payload and domain: plain all-to-all, ring, or a fused dispatcher",
        ("exposed_ep", "latency_bound_collectives", "imbalance"),
        "the exchange reaches a small part of the link, or its set-up outweighs top-k x hidden x tokens",
        "the exchange is bound by the link itself, or there is none",
        0.3,
        0.09,
        "config",
        "buffers; SMs or cores that the exchange keeps; releases differ much",
        ("expert-parallelism-all-to-all", "narrow-experts-and-token-permutation"),
        judge=_dispatch,
    ),
    RemedyRule(
        "collective_algo",
        "Tune the collective library: algorithm, protocol, channels, bucket sizes",
        ("exposed_communication", "latency_bound_collectives"),
        "exposed collectives take more than 10 % of the step and reach a small part of the link",
        "collectives are hidden, or bound by the link",
        0.15,
        0.02,
        "flag",
        "holds for one fabric, message size and release",
        ("gradient-buckets", "small-collectives-latency", "quantised-all-reduce"),
        judge=_algorithm,
    ),
    RemedyRule(
        "load_balance",
        "Balance the load: redundant or moved experts, a balancing loss, requests by length",
        ("imbalance",),
        "the busiest rank has more than 1.3 x the mean",
        "ranks are even: copies of experts then only take memory",
        0.7,
        0.3,
        "config",
        "memory for redundant experts; moving weights now and then",
        ("expert-load-imbalance", "stragglers-and-uneven-ranks"),
        judge=lambda facts: at_least("busiest rank over mean", facts.observed.expert_imbalance, 1.3),
    ),
    RemedyRule(
        "scaling",
        "Do not add chips at this batch: efficiency falls with the tokens a chip gets",
        ("exposed_dp", "exposed_communication"),
        "the global batch may grow with the chips",
        "the batch is fixed: each doubling halves the work a chip has, and keeps the traffic",
        0.0,
        -0.05,
        "config",
        "a longer run on fewer chips",
        ("scaling-out-at-a-fixed-batch",),
        judge=_strong_scaling,
    ),
)
