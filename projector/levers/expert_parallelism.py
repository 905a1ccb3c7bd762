"""Spread experts over devices instead of slicing each of them."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="expert_parallelism",
    relieves=("hbm_capacity", "exposed_ep", "exposed_tp", "hbm_bandwidth", "imbalance", "exposed_communication"),
    phases=("training", "serving"),
    fields=("ep", "etp", "expert_dispatch"),
    effort="relaunch",
    summary="Change over how many devices the experts are spread.",
    mechanism=(
        "Whole experts keep their GEMMs wide and their weights off the other ranks, at two all-to-alls a layer "
        "whose bytes grow with top-k tokens, so it pays while that exchange costs less than slicing each expert: "
        "(ep - 1) / ep * top_k * token bytes over the link < the GEMM time lost on narrow shards."
    ),
)
