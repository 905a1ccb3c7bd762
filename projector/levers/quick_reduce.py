"""Reduce in 8 bit."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="quick_reduce",
    relieves=("exposed_tp", "exposed_communication"),
    phases=("serving",),
    fields=("quick_reduce",),
    numerics=True,
    effort="flag",
    summary="Switch quantised all-reduces (AMD's Quick Reduce).",
    mechanism=(
        "Eight-bit blocks with their scales halve the bytes of an all-reduce and add a quantising pass on both "
        "sides, so it gains while bytes saved over the link > time of the passes, which small decode messages are "
        "below."
    ),
)
