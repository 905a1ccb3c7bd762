"""Choose the algorithm of the exchange with experts."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="expert_exchange",
    relieves=("exposed_ep", "latency_bound_collectives", "exposed_communication"),
    phases=("serving",),
    fields=("expert_all_to_all",),
    effort="flag",
    summary="Change the algorithm of dispatch and combine.",
    mechanism=(
        "Direct sends go to every rank at once, a hierarchical exchange crosses the network once a node and "
        "forwards inside, so the latter is shorter while copies saved between nodes * token bytes over the "
        "network > the extra hop inside the node."
    ),
)
