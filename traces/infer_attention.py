"""Heads of the attention layers, and how many such layers a forward pass has."""

import re
from collections import Counter
from typing import Final, NamedTuple

from traces.facts import Facts, OpCall, any_case, matching
from traces.infer_products import Products
from traces.infer_sizes import Seen, calls_of, shown

# Packed queries are [tokens, heads, size]; batched ones [batch, heads, tokens, size] or [batch, tokens, heads, size].
PACKED: Final = any_case(r"unified_attention|mha_batch_prefill|flash_attn_varlen|flash_attn_func")
_HEADS_FIRST: Final = any_case(r"^aten::_?scaled_dot_product\w{0,40}attention(?:_for_cpu)?$")
_TOKENS_FIRST: Final = any_case(r"^aten::_flash_attention_forward$|^flash_attn::_flash_attn_forward$|^FlashAttnFunc$")
_SCORES: Final = any_case(r"^aten::_?softmax$")
_OTHER_ATTENTION: Final = any_case(
    r"^FusedAttnFunc|^AttnFuncWithCP|FlashAttnVarlenFunc$|^aten::_efficient_attention_forward$|paged_attention_ragged|_mla_attention"
)
_KV_STORE: Final = any_case(r"reshape_and_cache|store_kv|store_cache|concat_and_cache")
_ROTARY: Final = any_case(r"::rotary_embedding$")
_ROTARY_KERNEL: Final = any_case(r"rotary_embedding(?:_kernel)?\b")
_SPLIT: Final = any_case(r"^aten::split_with_sizes$")
_LATENT: Final = any_case(r"(?:\b|_)mla(?:\b|_)")
_LIST: Final = re.compile(r"\[(\d{1,7}), (\d{1,7}), (\d{1,7})\]")


class Heads(NamedTuple):
    """Heads of one rank, each None where the trace does not show it."""

    heads: Seen | None
    kv_heads: Seen | None
    head_dim: Seen | None


def heads(facts: Facts, projections: Products, hidden: int | None) -> Heads:
    """Heads, key-value heads and head size, from the shapes of attention, rotary positions or the KV cache.

    Batched attention is often given keys repeated to the number of heads; as many key as query heads then say nothing
    of the key-value heads, which the projections before it may tell. Latent attention has no such heads: all None.
    """
    if any(_LATENT.search(name) for name in (*facts.forward_operators, *facts.kernels)):
        return Heads(None, None, None)
    for reading in (_packed, _batched, _rotary):
        found = reading(facts)
        if found is not None:
            if found.kv_heads is None:
                found = found._replace(kv_heads=_projected(facts, projections, hidden, found))
            return found
    scores = _scores(facts)
    return Heads(scores, None, None) if scores is not None else _cached(facts)


def attention_layers(facts: Facts) -> tuple[int, str, bool]:
    """(attention calls of all forward passes, their basis, whether the host shows them); 0 where none is seen.

    Operators that call one another are not added up. What a checkpoint recomputes in the backward pass is left out.
    """
    patterns = (PACKED, _HEADS_FIRST, _TOKENS_FIRST, _OTHER_ATTENTION)
    counts = {
        name: count
        for name, count in facts.forward_operators.items()
        if any(pattern.search(name) for pattern in patterns)
    }
    if counts:
        name = max(counts, key=lambda one: (counts[one], one))
        return counts[name], f"{name[:60]} x {counts[name]:,} outside the backward pass", True
    scores = [call for call in calls_of(facts.forward_calls, _SCORES) if _is_scores(call)]
    outer = Counter(call.name for call in scores)
    if outer:
        name, count = outer.most_common(1)[0]
        return count, f"{name} over attention scores x {count:,} outside the backward pass", True
    for pattern, title in ((_KV_STORE, "writes to the KV cache"), (_ROTARY_KERNEL, "rotary embeddings")):
        count = matching(facts.kernels, pattern)
        if count:
            return count, f"{count:,} kernels of {title}", False
    return 0, "", False


def _packed(facts: Facts) -> Heads | None:
    for call in calls_of(facts.forward_calls, PACKED):
        shapes = [shape for shape in call.inputs.dims if len(shape) == 3]
        if len(shapes) >= 2 and shapes[0][2] == shapes[1][2]:
            text = shown(call)
            return Heads(Seen(shapes[0][1], 0.9, text), Seen(shapes[1][1], 0.9, text), Seen(shapes[0][2], 0.9, text))
    return None


def _batched(facts: Facts) -> Heads | None:
    for pattern, axis in ((_HEADS_FIRST, 1), (_TOKENS_FIRST, 2)):
        for call in calls_of(facts.forward_calls, pattern):
            shapes = [shape for shape in call.inputs.dims if len(shape) == 4]
            if len(shapes) < 2 or shapes[0][3] != shapes[1][3]:
                continue
            query, key, text = shapes[0][axis], shapes[1][axis], shown(call)
            kv_heads = Seen(key, 0.9, text) if key < query else None
            return Heads(Seen(query, 0.9, text), kv_heads, Seen(shapes[0][3], 0.9, text))
    return None


def _rotary(facts: Facts) -> Heads | None:
    """rotary_embedding(positions, query [tokens, heads x size], key [tokens, kv heads x size], size, ...)."""
    for call in calls_of(facts.forward_calls, _ROTARY):
        dims, values = call.inputs.dims, call.inputs.values
        if len(dims) < 4 or len(dims[1]) != 2 or len(dims[2]) != 2 or len(values) < 4 or not values[3].isdecimal():
            continue
        size = int(values[3][:7])
        if size and dims[1][1] % size == 0 and dims[2][1] % size == 0:
            text = f"{shown(call)}, head size {size}"
            return Heads(
                Seen(dims[1][1] // size, 0.85, text), Seen(dims[2][1] // size, 0.85, text), Seen(size, 0.85, text)
            )
    return None


def _is_scores(call: OpCall) -> bool:
    """Whether a softmax is over attention scores: [batch, heads, queries, keys]."""
    dims = call.inputs.dims
    return bool(dims) and len(dims[0]) == 4 and dims[0][2] > 1 and dims[0][2] == dims[0][3]


def _scores(facts: Facts) -> Seen | None:
    for call in calls_of(facts.forward_calls, _SCORES):
        if _is_scores(call):
            return Seen(call.inputs.dims[0][1], 0.7, shown(call))
    return None


def _cached(facts: Facts) -> Heads:
    """What is written to the KV cache: [tokens, kv heads, size]."""
    for call in calls_of(facts.forward_calls, _KV_STORE):
        if call.inputs.dims and len(call.inputs.dims[0]) == 3:
            _, count, size = call.inputs.dims[0]
            return Heads(None, Seen(count, 0.9, shown(call)), Seen(size, 0.9, shown(call)))
    return Heads(None, None, None)


def _projected(facts: Facts, projections: Products, hidden: int | None, found: Heads) -> Seen | None:
    """Key-value heads from the products that make queries, keys and values of the hidden state.

    A split of one product into [queries, keys, values] tells them. Otherwise one product for each attention call makes
    (heads + 2 kv heads) x size columns, or three of them do apart, two of kv heads x size; only where one number fits.
    """
    if found.heads is None or found.head_dim is None or hidden is None:
        return None
    query, size = found.heads.value, found.head_dim.value
    widths = {product.width_out for product in projections.counts if product.width_in == hidden}
    for call in calls_of(facts.forward_calls, _SPLIT):
        match = next((m for value in call.inputs.values if (m := _LIST.fullmatch(value))), None)
        if match and call.inputs.dims and call.inputs.dims[0][-1] in widths:
            parts = [int(part) for part in match.groups()]
            if parts[0] == query * size and parts[1] == parts[2] and parts[1] % size == 0:
                return Seen(parts[1] // size, 0.85, f"{shown(call)} into {match[0]}")
    calls, _, on_host = attention_layers(facts)
    if not calls or not on_host:
        return None
    made: Counter[int] = Counter()
    for product, count in projections.counts.items():
        made[product.width_out] += count if product.width_in == hidden else 0
    together = {k for k in range(1, query + 1) if query % k == 0 and made[(query + 2 * k) * size] == calls}
    candidates = together | _kept_apart(made, calls, hidden, query, size)
    if len(candidates) != 1:
        return None
    how = "queries, keys and values together" if together else "keys and values apart"
    return Seen(candidates.pop(), 0.7, f"projections of {how} beside {query} heads of {size}")


def _kept_apart(made: Counter[int], calls: int, hidden: int, query: int, size: int) -> set[int]:
    """Key-value heads where queries, keys and values have products of their own, of which an attention call has one.

    Where queries are as wide as the hidden state the output projection looks like theirs.
    """
    of_queries = calls if query * size != hidden else 2 * calls
    if made[query * size] == of_queries + 2 * calls:
        return {query}
    if made[query * size] != of_queries:
        return set()
    return {k for k in range(1, query) if query % k == 0 and made[k * size] == 2 * calls}
