"""Work on more sequences at once, in fewer rounds."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="micro_batch",
    relieves=("launch_bound", "host_idle", "compute_throughput", "pipeline_bubble", "hbm_capacity", "exposed_dp"),
    phases=("training",),
    fields=("micro_batch", "grad_accum"),
    effort="config",
    summary="Change how many sequences a rank pushes through at once at an unchanged global batch.",
    mechanism=(
        "A larger micro-batch means fewer launches and weight gathers and larger GEMMs but fewer rounds to fill a "
        "pipeline, so it helps while a kernel takes less time than its launch or its GEMMs are below the size "
        "that saturates the chip, and hurts once (pp - 1) / rounds grows faster than that gain."
    ),
)
