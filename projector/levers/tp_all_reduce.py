"""Choose the algorithm of tensor-parallel all-reduces."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="tp_all_reduce",
    relieves=("exposed_tp", "latency_bound_collectives", "exposed_communication"),
    phases=("serving",),
    fields=("tp_all_reduce",),
    effort="flag",
    summary="Change the algorithm of the all-reduces behind attention and MLP.",
    mechanism=(
        "A ring crosses 2 (tp - 1) hops and moves 2 (tp - 1) / tp of the message, one shot crosses one and moves "
        "(tp - 1) of it, so one shot is shorter while message bytes < hops saved * latency * bandwidth / (extra "
        "copies), that is for decode steps and not for prefill."
    ),
)
