"""Causes in words, and which of them a change of layout can remove."""

from projector.breakdown import Axis
from projector.specs.bottleneck import Cause

CAUSE_PHRASE: dict[Cause, str] = {
    "compute_throughput": "arithmetic throughput",
    "hbm_bandwidth": "HBM bandwidth",
    "hbm_capacity": "HBM capacity",
    "exposed_tp": "exposed tensor-parallel communication",
    "exposed_dp": "exposed data-parallel communication",
    "exposed_ep": "exposed expert-parallel communication",
    "exposed_cp": "exposed context-parallel communication",
    "exposed_pp": "exposed pipeline transfers",
    "exposed_communication": "exposed communication",
    "latency_bound_collectives": "the latency of small collectives",
    "pipeline_bubble": "pipeline bubbles",
    "launch_bound": "kernel launches",
    "host_idle": "a device that waits for the host",
    "copies": "copies",
    "imbalance": "waiting for a slower rank",
    "unknown": "an unknown cause",
}
AXIS_PHRASE: dict[Axis, str] = {
    "tp": "tensor-parallel",
    "dp": "data-parallel",
    "fsdp": "sharded data-parallel",
    "pp": "pipeline",
    "cp": "context-parallel",
    "ep": "expert-parallel",
    "unknown": "other",
}
# no change of layout removes these: the work is in the host program or in single-device kernels
NOT_LAYOUT: frozenset[Cause] = frozenset({"launch_bound", "host_idle", "copies", "unknown"})

# a limit of the diagnosis that every proposal for such a trace repeats as a risk
PREFILL_ONLY = "the recorded steps prefill prompts and decode nothing: what is said of decode is modelled"
