"""Recompute activations in the backward pass, or stop doing so."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="recompute",
    relieves=("hbm_capacity", "compute_throughput"),
    phases=("training",),
    fields=("recompute", "recompute_modules", "recompute_layers"),
    effort="config",
    summary="Change which activations are kept for the backward pass.",
    mechanism=(
        "Full recompute repeats the forward pass, up to a third of the FLOP of a step, so it is worth its time "
        "only where the memory it frees admits a layout or micro-batch that gains more than that, and dropping it "
        "gains up to a quarter wherever peak memory without it stays below capacity."
    ),
)
