"""Prefill on engines of their own."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="disaggregation",
    relieves=("imbalance", "compute_throughput", "hbm_bandwidth"),
    phases=("serving",),
    fields=("prefill_replicas", "prefill_tp", "prefill_pp", "prefill_attention_dp", "prefill_ep", "prefill_etp"),
    effort="relaunch",
    summary="Give prompts a pool of engines of its own, and change its layout.",
    mechanism=(
        "Decode steps without prefill chunks are shorter and even, at the price of chips that only prefill and of "
        "moving every prompt's keys and values, so it pays where the time mixed steps add to a token > KV bytes "
        "of a prompt over the link / output tokens and both pools are kept busy."
    ),
)
