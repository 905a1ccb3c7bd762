"""Shard weights, gradients and optimizer state over data-parallel ranks."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="fsdp",
    relieves=("hbm_capacity", "exposed_dp", "exposed_communication"),
    phases=("training",),
    fields=("fsdp", "zero_stage"),
    effort="config",
    summary="Change over how many ranks weights and optimizer state are sharded.",
    mechanism=(
        "Sharding frees (1 - 1 / fsdp) of the state a rank holds but gathers the weights anew for every "
        "micro-batch, so it is free only while a layer's gather is shorter than its compute, that is while tokens "
        "a rank and micro-batch > FLOP rate over link rate at two bytes a weight; a group inside the fast domain "
        "raises that link rate."
    ),
)
