"""Change the share of memory an engine takes."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="kv_pool",
    relieves=("hbm_capacity",),
    phases=("serving",),
    fields=("hbm_frac",),
    effort="flag",
    summary="Change which share of HBM the engine takes for weights, working set and KV pool.",
    mechanism=(
        "What the share adds goes to the KV pool alone, so a larger one raises the requests held at once and "
        "helps while requests in flight > requests the pool holds; what is left has to exceed what the runtime "
        "takes outside of it."
    ),
)
