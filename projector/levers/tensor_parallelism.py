"""Split every layer over the ranks of a fast domain."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="tensor_parallelism",
    relieves=(
        "hbm_capacity",
        "exposed_tp",
        "latency_bound_collectives",
        "hbm_bandwidth",
        "compute_throughput",
        "exposed_communication",
    ),
    phases=("training", "serving"),
    fields=("tp", "sp"),
    effort="relaunch",
    summary="Change how many devices share each layer, with sequence parallelism in training.",
    mechanism=(
        "Two collectives a layer and pass move bytes that grow with tokens while the arithmetic a rank keeps "
        "shrinks with tp, so a larger degree pays only while 2 * tokens * hidden bytes over the link take less "
        "time than the FLOP it takes away, which in practice means tp <= chips of the fast domain and tp <= KV "
        "heads."
    ),
)
