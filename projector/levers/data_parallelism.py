"""Trade replicas for model sharding."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="data_parallelism",
    relieves=("exposed_dp", "exposed_tp", "exposed_cp", "compute_throughput", "exposed_communication"),
    phases=("training",),
    fields=("dp",),
    effort="relaunch",
    summary="Change how many replicas share the batch.",
    mechanism=(
        "A replica adds no traffic inside a layer but one gradient reduction a step, so it beats tensor "
        "parallelism while weights fit on a rank and 2 * gradient bytes over the link take less time than the "
        "backward pass they hide under."
    ),
)
