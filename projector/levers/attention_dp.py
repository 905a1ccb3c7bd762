"""Let ranks of one engine own whole requests in attention."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="attention_dp",
    relieves=("hbm_capacity", "exposed_tp", "hbm_bandwidth", "exposed_communication"),
    phases=("serving",),
    fields=("attention_dp",),
    effort="config",
    summary="Change over how many ranks of an engine requests, instead of attention heads, are split.",
    mechanism=(
        "Tensor parallelism beyond the KV heads stores every key and value tp / kv_heads times, so splitting "
        "requests instead pays once tp > kv_heads or the batch is large enough to feed every rank: concurrency >= "
        "attention_dp * the batch at which attention saturates."
    ),
)
