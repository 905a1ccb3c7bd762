"""Let an engine decode more, or fewer, requests at once."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="batching",
    relieves=("hbm_bandwidth", "launch_bound", "hbm_capacity", "compute_throughput"),
    phases=("serving",),
    fields=("max_num_seqs",),
    effort="flag",
    summary="Change how many requests an engine decodes at once.",
    mechanism=(
        "A decode step reads the weights once whatever the batch, so tokens a second grow with the batch while "
        "batch < FLOP rate over HBM rate (in operand bytes) and the KV cache fits; beyond that only latency "
        "grows."
    ),
)
