"""Store and read weights in a narrower type."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="weight_dtype",
    relieves=("hbm_bandwidth", "hbm_capacity", "compute_throughput"),
    phases=("serving",),
    fields=("weight_dtype", "compute_dtype"),
    numerics=True,
    effort="relaunch",
    summary="Change the type weights are stored in.",
    mechanism=(
        "Decode time is mostly weight bytes over HBM rate, so halving the bytes gains up to half while weight "
        "reading dominates: weight bytes > KV bytes read a step + activations; accuracy has to be checked."
    ),
)
