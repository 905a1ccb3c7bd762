"""The words a diagnosis and a knowledge note share: bottleneck classes and finer causes."""

from typing import Literal, get_args

Bottleneck = Literal["compute", "memory", "communication"]

Cause = Literal[
    "compute_throughput",
    "hbm_bandwidth",
    "hbm_capacity",
    "exposed_tp",
    "exposed_dp",
    "exposed_ep",
    "exposed_cp",
    "exposed_pp",
    "exposed_communication",
    "latency_bound_collectives",
    "pipeline_bubble",
    "launch_bound",
    "host_idle",
    "copies",
    "imbalance",
    "unknown",
]

BOTTLENECKS: tuple[str, ...] = get_args(Bottleneck)
CAUSES: tuple[str, ...] = get_args(Cause)

BOTTLENECK_OF: dict[Cause, Bottleneck] = {
    "compute_throughput": "compute",
    "hbm_bandwidth": "memory",
    "hbm_capacity": "memory",
    "exposed_tp": "communication",
    "exposed_dp": "communication",
    "exposed_ep": "communication",
    "exposed_cp": "communication",
    "exposed_pp": "communication",
    "exposed_communication": "communication",
    "latency_bound_collectives": "communication",
    # host-bound work, bubbles and padding count as compute: no byte moved would be saved by memory or network changes
    "pipeline_bubble": "compute",
    "launch_bound": "compute",
    "host_idle": "compute",
    "copies": "memory",
    "imbalance": "communication",
    "unknown": "compute",
}
