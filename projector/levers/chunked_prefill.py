"""Bound how many prompt tokens share a step with decoding."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="chunked_prefill",
    relieves=("compute_throughput", "hbm_bandwidth", "imbalance"),
    phases=("serving",),
    fields=("chunked_prefill_tokens",),
    effort="flag",
    summary="Change how many prompt tokens a step mixes with decoding.",
    mechanism=(
        "A chunk delays every decoding request in its step, so smaller chunks lower inter-token latency and raise "
        "time to first token: the best chunk is the smallest whose GEMMs saturate the chip, tokens > FLOP rate "
        "over HBM rate (in operand bytes)."
    ),
)
