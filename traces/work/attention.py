"""Work of scaled dot-product attention from its sizes and its mask.

Symbols: B sequences, H query heads, G key and value heads, q queries and s keys of a sequence, D the size of a query
and key head, V that of a value head, P the (query, key) pairs of one sequence that the mask leaves.

    forward   FLOP = 2 B H P (D + V)            S = Q K', O = softmax(S) V
    backward  FLOP = 2 B H P (3 D + 2 V)        S again, dV, dP, dQ, dK
    bytes     Q, K, V read and O written once; backward also O and dO read, dQ, dK, dV written; a bias once

A causal mask with q = s leaves P = q (q + 1) / 2 pairs, not half of q s. Kernels that compute masked blocks and throw
them away do more arithmetic than this. Left out: the softmax (about 5 operations a pair, no matrix unit), dropout, the
log-sum-exp (4 bytes a query and head).
"""

from dataclasses import dataclass
from typing import Literal

from traces.work.call import Work
from traces.work.element_types import Element, product_format

Corner = Literal["top_left", "bottom_right"]
"""Where a causal mask's diagonal starts when q and s differ: at the first, or at the last query and key."""
UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Mask:
    """Which pairs are computed; a window of UNLIMITED keys to a side leaves all of them."""

    causal: bool = False
    left: int = UNLIMITED
    right: int = UNLIMITED
    corner: Corner = "top_left"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of one call, in the symbols of this module; `pairs` is P summed over the B sequences."""

    heads: int
    kv_heads: int
    head_size: int
    value_size: int
    queries: int
    keys: int
    pairs: int


def attention_work(
    sizes: Sizes, query: Element, key: Element, out: Element, *, backward: bool, bias_bytes: int = 0, assumed: str = ""
) -> Work | None:
    """FLOP and bytes by the formulas above; `queries` and `keys` count those of all sequences."""
    number_format = product_format(query, key)
    if number_format is None:
        return None
    score, value = sizes.head_size, sizes.value_size
    flop = 2 * sizes.heads * sizes.pairs * ((3 * score + 2 * value) if backward else (score + value))
    query_bytes = sizes.queries * sizes.heads * score * query.size_bytes
    output_bytes = sizes.queries * sizes.heads * value * out.size_bytes
    cached_bytes = sizes.keys * sizes.kv_heads * (score + value) * key.size_bytes
    moved = query_bytes + cached_bytes + output_bytes
    if backward:
        moved = 2 * moved + output_bytes
    return Work(flop, moved + bias_bytes, number_format, assumed)


def pairs_of(queries: int, keys: int, mask: Mask) -> int:
    """(query, key) pairs of one sequence that a mask leaves.

    Query i sees the keys from i + shift - left to i + shift + right; a causal mask is right = 0. shift is 0 with the
    diagonal at the top left, s - q at the bottom right, where windows are always counted from.
    """
    right = 0 if mask.causal else mask.right
    if right < 0 and mask.left < 0:
        return queries * keys
    shift = 0 if mask.corner == "top_left" else keys - queries
    visible = _sum_clipped(queries, shift + right + 1, keys) if right >= 0 else queries * keys
    hidden = _sum_clipped(queries, shift - mask.left, keys) if mask.left >= 0 else 0
    return max(visible - hidden, 0)


def _sum_clipped(count: int, first: int, most: int) -> int:
    """Sum over i < count of first + i, each kept between 0 and most."""
    begin, end = min(max(-first, 0), count), min(max(most - first, 0), count)
    rising = end - begin
    return rising * first + (begin + end - 1) * rising // 2 + (count - end) * most
