"""Attention over a paged key-value cache. Its work is known only where shapes and literals settle every length.

A cache tensor has the size of the pool, not of the sequences, so it says nothing of their keys. Operators that get the
lengths as tensors alone (vLLM's unified attention, decode kernels, FlashInfer) have no formula here: their work is
unknown, not guessed.
"""

from traces.work.attention import UNLIMITED, Mask, Sizes, attention_work, pairs_of
from traces.work.call import Call, Work


def batch_prefill(call: Call) -> Work | None:
    """aiter::mha_batch_prefill(q [tokens, H, D], k pages [.., G, D], v pages, cumulative query lengths, page bounds,
    page list, longest query, longest key, dropout, scale, soft cap, zero tensors, causal, left, right, ...).

    Known where all B sequences are prompts of one length without a prefix: tokens = B longest query, and the longest
    key is no longer, since a sequence has at least the keys of its own queries. Equations in `traces.work.attention`.
    """
    query, key, value = (call.element(index) for index in range(3))
    shape, pages, values, bounds = (call.shape(index) for index in range(4))
    longest, longest_key, causal = call.integer(6), call.integer(7), call.flag(12)
    if query is None or key is None or value is None or not shape or not pages or not values or not bounds:
        return None
    if (
        longest is None
        or longest != longest_key
        or causal is None
        or len(shape) != 3
        or min(len(pages), len(values)) < 3
    ):
        return None
    batch = bounds[0] - 1
    tokens, heads, head_size = shape
    if tokens != batch * longest or pages[-1] != head_size or not pages[-2] or heads % pages[-2]:
        return None
    left, right = (UNLIMITED if one is None else one for one in (call.integer(13), call.integer(14)))
    mask = Mask(causal, left, right, "bottom_right")
    sizes = Sizes(heads, pages[-2], head_size, values[-1], tokens, tokens, batch * pairs_of(longest, longest, mask))
    return attention_work(sizes, query, key, query, backward=False)
