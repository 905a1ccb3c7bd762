"""Store keys and values in a narrower type."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="kv_cache_dtype",
    relieves=("hbm_capacity", "hbm_bandwidth"),
    phases=("serving",),
    fields=("kv_cache_dtype",),
    numerics=True,
    effort="flag",
    summary="Change the type of the KV cache.",
    mechanism=(
        "Half the bytes a token double the requests the pool holds and halve the attention reads, which matters "
        "once concurrency * context * KV bytes a token is no longer small against the weight bytes; accuracy at "
        "long context has to be checked."
    ),
)
