"""Sizes of a transformer, read off the shapes its operators were given."""

import re
from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Final, NamedTuple

from traces.facts import Facts, any_case, matching
from traces.summary_types import ModelShapes
from traces.trace import OpInputs

_LINEAR: Final = any_case(r"^aten::linear$")  # weight as (out, in)
_CUSTOM_LINEAR: Final = any_case(r"gemm_a\d+w\d+|unquantized_gemm")  # the same, of serving engines
_PRODUCT: Final = any_case(r"^aten::(?:mm|addmm)$")  # weight as (in, out)
_EMBEDDING: Final = any_case(r"^aten::embedding$")
_NORM: Final = any_case(r"rms_?norm|layer_?norm")
_PACKED_ATTENTION: Final = any_case(r"unified_attention|mha_batch_prefill|flash_attn_varlen|flash_attn_func")
_BATCHED_ATTENTION: Final = any_case(r"^aten::scaled_dot_product_attention$")
_ATTENTION_BACKWARD: Final = any_case(r"^(?:ScaledDotProduct\w*|\w*Attn\w*)Backward\d*$")
_KV_STORE: Final = any_case(r"reshape_and_cache|store_kv|store_cache|concat_and_cache")
_ROTARY: Final = any_case(r"rotary_embedding(?:_kernel)?\b")
# Inductor names pointwise kernels after the operators around them: their shapes are not the router's
_MOE: Final = any_case(r"^(?!triton_).*(?:moe_forward|fused_moe|fused_experts|topk_softmax|topk_sigmoid)")
_ENGINE_STEPS: Final = (any_case(r"^execute_(?:\d+_)?context_"), any_case(r"^step\["))
_WIDEST_MLP = 4


class _Product(NamedTuple):
    """One weight product: tokens x width_in times width_in x width_out."""

    tokens: int
    width_in: int
    width_out: int


def model_shapes(facts: Facts) -> ModelShapes:
    """Sizes one rank shows; None where the trace does not show them (no recorded shapes, graph replay)."""
    embedding = _embedding(facts)
    products = Counter(_products(facts))
    hidden = embedding[1] if embedding else _hidden(facts, products)
    heads, kv_heads, head_dim = _heads(facts)
    q_width = heads * head_dim if heads and head_dim else None
    return ModelShapes(
        hidden_size=hidden,
        layers=_layers(facts, embedding),
        vocab_shard=embedding[0] if embedding else _vocabulary(products, hidden, _passes(facts, embedding)),
        heads_per_rank=heads,
        kv_heads_per_rank=kv_heads,
        head_dim=head_dim,
        intermediate_shard=_intermediate(products, hidden, q_width),
        experts=_experts(facts),
        tokens=embedding[2] if embedding else _tokens(facts, products),
    )


def is_weight_product(operator: str) -> bool:
    """Whether an operator of that name multiplies by a weight."""
    return any(pattern.search(operator) for pattern in (_LINEAR, _CUSTOM_LINEAR, _PRODUCT))


def _inputs(facts: Facts, pattern: re.Pattern[str]) -> Iterator[OpInputs]:
    """Inputs of the operators whose name `pattern` finds."""
    trace = facts.trace
    for row, inputs in trace.inputs.items():
        if pattern.search(trace.name(row)):
            yield inputs


def _embedding(facts: Facts) -> tuple[int, int, int] | None:
    """(vocabulary rows, hidden size, tokens) of the largest table that is looked up; position tables are smaller."""
    tables = [
        (inputs.dims[0][0], inputs.dims[0][1], prod(inputs.dims[1]))
        for inputs in _inputs(facts, _EMBEDDING)
        if len(inputs.dims) > 1 and len(inputs.dims[0]) == 2
    ]
    return max(tables, default=None)


def _products(facts: Facts) -> Iterator[_Product]:
    """Products with a weight, each once: an engine's own operator calls aten::linear or is called by it, and that calls
    aten::mm, as backward passes do too.
    """
    linear, custom = (list(_weight_products(facts, pattern, transposed=True)) for pattern in (_LINEAR, _CUSTOM_LINEAR))
    yield from max(linear, custom, key=len) or _weight_products(facts, _PRODUCT, transposed=False)


def _weight_products(facts: Facts, pattern: re.Pattern[str], *, transposed: bool) -> Iterator[_Product]:
    for inputs in _inputs(facts, pattern):
        operands = [shape for shape in inputs.dims if len(shape) >= 2][:2]
        if len(operands) < 2 or len(operands[1]) != 2:
            continue
        width_out, width_in = operands[1] if transposed else reversed(operands[1])
        if operands[0][-1] == width_in:
            yield _Product(prod(operands[0][:-1]), width_in, width_out)


def _hidden(facts: Facts, products: Counter[_Product]) -> int | None:
    """The width most weight products read or write, if norms work on it too or nothing is known of norms."""
    norms = {inputs.dims[0][-1] for inputs in _inputs(facts, _NORM) if inputs.dims and inputs.dims[0]}
    widths: Counter[int] = Counter()
    for product, count in products.items():
        widths[product.width_in] += count
        widths[product.width_out] += count
    for width, _ in sorted(widths.items(), key=lambda item: (-item[1], item[0])):
        if not norms or width in norms:
            return width
    return None


def _vocabulary(products: Counter[_Product], hidden: int | None, passes: int) -> int | None:
    """Output width of a wide product of the hidden state that is done once a pass: the language-model head."""
    heads = [
        product.width_out
        for product, count in products.items()
        if hidden and product.width_in == hidden and product.width_out >= _WIDEST_MLP * hidden and count <= passes
    ]
    return max(heads, default=None)


def _tokens(facts: Facts, products: Counter[_Product]) -> int | None:
    """Queries of a packed attention call, else rows of the most frequent product if it is done more than once."""
    for inputs in _inputs(facts, _PACKED_ATTENTION):
        if inputs.dims and len(inputs.dims[0]) == 3:
            return inputs.dims[0][0]
    if not products:
        return None
    product, count = products.most_common(1)[0]
    return product.tokens if count > 1 else None


def _heads(facts: Facts) -> tuple[int | None, int | None, int | None]:
    """(heads, key-value heads, head size) of one rank.

    Batched attention is often given keys repeated to the number of heads; as many key as query heads then says nothing
    of the key-value heads, and they stay unknown.
    """
    for inputs in _inputs(facts, _PACKED_ATTENTION):
        shapes = [shape for shape in inputs.dims if len(shape) == 3]
        if len(shapes) >= 2:
            return shapes[0][1], shapes[1][1], shapes[0][2]
    for inputs in _inputs(facts, _BATCHED_ATTENTION):
        batched = [shape for shape in inputs.dims if len(shape) == 4]
        if len(batched) >= 2:
            (_, heads, _, head_dim), (_, key_heads, _, _) = batched[:2]
            return heads, key_heads if key_heads < heads else None, head_dim
    return None, _cached_heads(facts, 1), _cached_heads(facts, 2)


def _cached_heads(facts: Facts, axis: int) -> int | None:
    """Key-value heads (axis 1) or head size (axis 2) of what is written to the KV cache."""
    for inputs in _inputs(facts, _KV_STORE):
        if inputs.dims and len(inputs.dims[0]) == 3:
            return inputs.dims[0][axis]
    return None


def _layers(facts: Facts, embedding: tuple[int, int, int] | None) -> int | None:
    """Attention layers of one forward pass on this rank: what is done once a layer over what is done once a pass.

    None where the division leaves a remainder. With recomputation the forward attention runs twice; the backward one
    does not, and is counted instead.
    """
    passes = _passes(facts, embedding)
    per_layer = (
        matching(facts.operators, _ATTENTION_BACKWARD),
        *(_packed_or_batched(facts)),
        matching(facts.kernels, _KV_STORE),
        matching(facts.kernels, _ROTARY),
    )
    for count in per_layer:
        if count:
            return count // passes if passes and count % passes == 0 else None
    return None


def _packed_or_batched(facts: Facts) -> tuple[int, ...]:
    """Calls of the attention operator of one name; operators that call one another are not added up."""
    counts = [
        count
        for name, count in facts.operators.items()
        if _PACKED_ATTENTION.search(name) or _BATCHED_ATTENTION.search(name)
    ]
    return (max(counts, default=0),)


def _passes(facts: Facts, embedding: tuple[int, int, int] | None) -> int:
    """Forward passes in the trace: lookups of the token table, else steps of a serving engine, which are one pass each.

    Engines may mark a step twice under different names. A trainer's steps hold any number of passes and do not count.
    """
    if embedding is not None:
        return sum(
            1
            for inputs in _inputs(facts, _EMBEDDING)
            if len(inputs.dims) > 1 and inputs.dims[0] == (embedding[0], embedding[1])
        )
    return max(matching(facts.annotations, pattern) for pattern in _ENGINE_STEPS)


def _intermediate(products: Counter[_Product], hidden: int | None, q_width: int | None) -> int | None:
    """Width the MLP's last product reads: it writes the hidden state and does not come from attention."""
    widths: Counter[int] = Counter()
    for product, count in products.items():
        if product.width_out == hidden and product.width_in not in (hidden, q_width):
            widths[product.width_in] += count
    repeated = [(width, count) for width, count in widths.most_common(1) if count > 1]
    return repeated[0][0] if repeated and hidden is not None and repeated[0][0] >= hidden // 4 else None


def _experts(facts: Facts) -> int | None:
    """Experts of one layer: columns of the router's logits, else rows of a stacked expert weight (this rank's)."""
    for inputs in _inputs(facts, _MOE):
        shapes = inputs.dims
        if len(shapes) > 1 and len(shapes[0]) == 2 and len(shapes[1]) == 2 and shapes[0][0] == shapes[1][0]:
            return shapes[1][1]
        stacked = [shape[0] for shape in shapes if len(shape) == 3]
        if stacked:
            return stacked[0]
    return None
