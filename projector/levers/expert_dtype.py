"""Store routed experts in a narrower type than the other weights."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="expert_dtype",
    relieves=("hbm_capacity", "hbm_bandwidth", "compute_throughput"),
    phases=("serving",),
    fields=("expert_dtype",),
    numerics=True,
    effort="relaunch",
    summary="Change the type of the routed experts alone.",
    mechanism=(
        "Experts are most of a mixture's bytes and a decode step reads those its tokens chose, so a narrower type "
        "shortens the step by their share of the bytes read, and gains while bytes of the experts read * (1 - "
        "narrow / wide) > what unpacking adds where the chip has no units for the type."
    ),
)
