"""Split the sequence over ranks."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="context_parallelism",
    relieves=("hbm_capacity", "exposed_cp", "exposed_communication"),
    phases=("training",),
    fields=("cp", "cp_kind"),
    effort="relaunch",
    summary="Change over how many ranks each sequence is split.",
    mechanism=(
        "Each rank keeps 1 / cp of the activations while keys and values travel round the ring, which stays "
        "hidden while the attention arithmetic of a chunk outlasts its transfer: tokens a rank > FLOP rate over "
        "link rate, scaled by KV width over query width."
    ),
)
