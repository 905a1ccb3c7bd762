"""Trade shards of one engine for more engines."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="replicas",
    relieves=("exposed_tp", "latency_bound_collectives", "compute_throughput", "hbm_capacity", "exposed_communication"),
    phases=("serving",),
    fields=("dp",),
    watched=("replicas",),
    effort="relaunch",
    summary="Change how many independent engines share the requests.",
    mechanism=(
        "Each engine reads all weights for its own requests only, so more and smaller engines win when "
        "collectives cost more than the second reading of the weights: collective time a step > weight bytes * (1 "
        "- 1 / shards) over HBM rate, as long as weights and KV cache fit."
    ),
)
