"""Hide collectives under compute."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="overlap",
    relieves=("exposed_communication", "exposed_dp", "exposed_tp", "exposed_ep"),
    phases=("training", "serving"),
    fields=("overlap_grad_reduce", "overlap_param_gather", "overlap_tp", "overlap_ep"),
    effort="flag",
    summary="Switch the overlap of gradient, weight, tensor-parallel or expert collectives with compute.",
    mechanism=(
        "Overlap can remove at most the exposed part of a collective, and slows the kernels beside it that share "
        "SMs and HBM, so it gains while exposed time > slowdown of the compute it runs under."
    ),
)
