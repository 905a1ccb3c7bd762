"""Attention operators of frameworks and libraries: where each keeps its tensors, its mask and its sequence lengths."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from traces.work.attention import UNLIMITED, Corner, Mask, Sizes, attention_work, pairs_of
from traces.work.call import Call, Shape, Work

Layout = Literal["heads_first", "tokens_first"]
"""[B, H, S, D] or [B, S, H, D]; packed sequences are [tokens, H, D]."""


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of the inputs of one operator; None: it has no such input.

    causal is a literal truth value, causal_kind a literal number (0 none, 1 top left, 2 bottom right). lengths are the
    cumulative lengths of packed queries and keys, longest the literal longest lengths. A bias adds to the scores; pairs
    it masks out are computed and count. hiding: inputs that, where given, limit the keys in a way the trace hides.
    """

    query: int = 0
    key: int = 1
    value: int = 2
    out: int | None = None
    causal: int | None = None
    causal_kind: int | None = None
    corner: Corner = "top_left"
    window: tuple[int, int] | None = None
    lengths: tuple[int, int] | None = None
    longest: tuple[int, int] | None = None
    bias: int | None = None
    hiding: tuple[int, ...] = ()
    backward: bool = False


def attention_call(places: Places, layout: Layout) -> Callable[[Call], Work | None]:
    """A formula for the operator with its inputs at these places; equations in `traces.work.attention`.

    None where the mask's literal or a packed sequence's length is not visible. Lengths of packed sequences are tensors,
    which the profiler does not write; they follow from the shapes only if all are the longest: tokens = B longest.
    """

    def formula(call: Call) -> Work | None:
        query, key, value = (call.element(index) for index in (places.query, places.key, places.value))
        mask = _mask(call, places)
        if query is None or key is None or value is None or mask is None:
            return None
        # an empty tensor of lengths stands for none
        packed = places.lengths is not None and call.elements(places.lengths[0])
        sizes = _packed_sizes(call, places, mask) if packed else _batched_sizes(call, places, mask, layout)
        out = call.element(places.out) if places.out is not None else None
        bias_bytes = call.bytes_of(places.bias) or 0 if places.bias is not None else 0
        if sizes is None:
            return None
        return attention_work(sizes, query, key, out or query, backward=places.backward, bias_bytes=bias_bytes)

    return formula


def _mask(call: Call, places: Places) -> Mask | None:
    """The mask from literals; None where the operator has a literal for it that the trace does not show."""
    left = right = UNLIMITED
    corner = places.corner
    causal: bool | None = False
    if places.causal is not None:
        causal = call.flag(places.causal)
    if places.causal_kind is not None:
        kind = call.integer(places.causal_kind)
        causal = None if kind not in (0, 1, 2) else kind > 0
        corner = "bottom_right" if kind == 2 else "top_left"
    if places.window is not None:
        found = [call.integer(index) for index in places.window]
        left, right = (UNLIMITED if one is None else one for one in found)
    hidden = any(call.element(index) is not None or call.integer(index) is not None for index in places.hiding)
    if causal is None or hidden:
        return None
    return Mask(causal, left, right, "bottom_right" if max(left, right) >= 0 else corner)


def _batched_sizes(call: Call, places: Places, mask: Mask, layout: Layout) -> Sizes | None:
    """Sizes of four-dimensional tensors; fewer key than query heads are grouped-query attention."""
    shapes = [call.shape(index) for index in (places.query, places.key, places.value)]
    if any(shape is None or len(shape) != 4 for shape in shapes):
        return None
    query, key, value = (_tokens_first(shape or (), layout) for shape in shapes)
    batch, queries, heads, head_size = query
    if key[0] != batch or key[:3] != value[:3] or key[3] != head_size or not key[2] or heads % key[2]:
        return None
    return Sizes(
        heads=heads,
        kv_heads=key[2],
        head_size=head_size,
        value_size=value[3],
        queries=batch * queries,
        keys=batch * key[1],
        pairs=batch * pairs_of(queries, key[1], mask),
    )


def _tokens_first(shape: Shape, layout: Layout) -> Shape:
    return shape if layout == "tokens_first" else (shape[0], shape[2], shape[1], shape[3])


def _packed_sizes(call: Call, places: Places, mask: Mask) -> Sizes | None:
    """Sizes of packed sequences of one length each; None where the shapes allow different lengths."""
    shapes = [call.shape(index) for index in (places.query, places.key, places.value)]
    if places.lengths is None or places.longest is None or any(shape is None for shape in shapes):
        return None
    query, key, value = (_packed(shape or ()) for shape in shapes)
    bounds = call.shape(places.lengths[0])
    longest_query, longest_key = (call.integer(index) for index in places.longest)
    if not bounds or longest_query is None or longest_key is None or not query or not key or not value:
        return None
    batch = bounds[0] - 1
    equal = query[0] == batch * longest_query and key[0] == batch * longest_key
    if not equal or key[:2] != value[:2] or not key[1] or query[1] % key[1]:
        return None
    return Sizes(
        heads=query[1],
        kv_heads=key[1],
        head_size=query[2],
        value_size=value[2],
        queries=query[0],
        keys=key[0],
        pairs=batch * pairs_of(longest_query, longest_key, mask),
    )


def _packed(shape: Shape) -> Shape:
    """[tokens, H, D]; () for another shape. The framework keeps a batch of one before packed sequences."""
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    return shape if len(shape) == 3 else ()
