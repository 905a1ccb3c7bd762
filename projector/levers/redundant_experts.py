"""Hold busy experts more than once."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="redundant_experts",
    relieves=("imbalance", "exposed_ep"),
    phases=("serving",),
    fields=("redundant_experts",),
    effort="config",
    summary="Change how many copies of busy experts the expert-parallel group holds.",
    mechanism=(
        "Copies let the busiest rank hand tokens over, at their weight bytes on every rank, so they pay while the "
        "expert time * (busiest over mean load - 1) they remove > the KV room and weight reads their bytes take."
    ),
)
