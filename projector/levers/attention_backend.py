"""Choose the kernels attention runs in."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="attention_backend",
    relieves=("compute_throughput", "hbm_bandwidth"),
    phases=("serving",),
    fields=("attention_backend",),
    effort="flag",
    summary="Change the attention kernels.",
    mechanism=(
        "Backends differ in the share of peak and of HBM rate their kernels reach, so another one gains "
        "attention's share of the step * (1 - time there / time here), which is large only where context * KV "
        "bytes of the running requests > the weight bytes a step reads."
    ),
)
