"""Draft several tokens and verify them in one step."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="speculation",
    relieves=("hbm_bandwidth", "launch_bound", "latency_bound_collectives"),
    phases=("serving",),
    fields=("speculation", "speculative_tokens"),
    effort="config",
    summary="Change how tokens are drafted, and how many a step.",
    mechanism=(
        "A verifying step reads the weights once for all drafted tokens and yields (1 - a^(k + 1)) / (1 - a) of "
        "them at acceptance a, so it pays while that count > (verifying step + k drafts) / plain step, which a "
        "batch that already fills the chip reverses."
    ),
)
