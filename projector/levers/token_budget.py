"""Bound the tokens of a step, decoding ones included."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="token_budget",
    relieves=("imbalance", "hbm_capacity", "compute_throughput"),
    phases=("serving",),
    fields=("max_batched_tokens",),
    effort="flag",
    summary="Change how many tokens a step may hold.",
    mechanism=(
        "The budget caps the prefill chunk at what the decoding requests leave, so a lower one shortens mixed "
        "steps and lengthens prefill, and it binds only while budget < chunk + decoding requests of a rank."
    ),
)
