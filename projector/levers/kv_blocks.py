"""Change the size of the blocks of the KV pool."""

from projector.levers.lever import Lever

LEVER = Lever(
    name="kv_blocks",
    relieves=("hbm_capacity",),
    phases=("serving",),
    fields=("kv_block_tokens",),
    effort="flag",
    summary="Change how many tokens a block of the KV pool holds.",
    mechanism=(
        "A request wastes half a block in the mean, so smaller blocks hold more requests while block tokens / 2 "
        "is no longer small, that is > a few percent of the tokens of a request."
    ),
)
