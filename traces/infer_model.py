"""Sizes of a transformer, read off the shapes its operators were given."""

import re
from collections import Counter
from math import prod
from typing import Final, NamedTuple

from traces.facts import Facts, OpCall, any_case, matching
from traces.implied_types import ModelShapes
from traces.infer_attention import PACKED, Heads, attention_layers, heads
from traces.infer_experts import experts
from traces.infer_products import Product, Products, products
from traces.infer_sizes import Seen, agreed, calls_of, shown

_EMBEDDING: Final = any_case(r"^aten::embedding$")
_NORM: Final = any_case(r"rms_?norm|layer_?norm")
_LOSS: Final = any_case(
    r"^aten::cross_entropy_loss$|^_?VocabParallelCrossEntropy$|^CrossEntropyFunction$|^Liger\w{0,30}CrossEntropyFunction$"
)
_ENGINE_STEPS: Final = (any_case(r"^execute_(?:\d{1,9}_)?context_"), any_case(r"^step\["))
_LAYER_MARK: Final = re.compile(r"FSDP::pre_forward \((?:[\w.]{0,80}\.)?(?:layers|layer|blocks|block|h)\.(\d{1,4})\)")
_LABEL: Final = re.compile(r"(?<![a-z])(hidden|seqlen)(\d{2,7})(?![0-9a-z])")
_LABELLED: Final = {"hidden": "hidden_size", "seqlen": "sequence_length"}
_WIDEST_MLP = 4
_LABEL_CONFIDENCE = 0.4


class _Embedding(NamedTuple):
    """The token table: vocabulary rows, hidden size, how often it was looked up, and [sequences, tokens] each time."""

    rows: int
    width: int
    lookups: int
    shapes: Counter[tuple[int, ...]]
    text: str


def model_shapes(facts: Facts) -> ModelShapes:
    """Sizes one rank shows; None where the trace does not show them (no recorded shapes, graph replay).

    Read off the forward pass alone: what a checkpoint recomputes counts once.
    """
    table = _token_table(facts)
    made = products(facts)
    hidden = Seen(table.width, 0.95, table.text) if table else _hidden(facts, made)
    width = hidden.value if hidden else None
    found_heads = heads(facts, made, width)
    found_experts = experts(facts)
    seen = {
        "hidden_size": hidden,
        "layers": _layers(facts, table),
        "vocab_shard": Seen(table.rows, 0.95, table.text) if table else _vocabulary(facts, made, width),
        "heads_per_rank": found_heads.heads,
        "kv_heads_per_rank": found_heads.kv_heads,
        "head_dim": found_heads.head_dim,
        "intermediate_shard": found_experts.width or _intermediate(made, width, _query_width(found_heads)),
        "experts": found_experts.experts,
        "experts_per_token": found_experts.per_token,
        **_batch(facts, table, made),
    }
    return _recorded(seen | {name: one for name, one in labels(facts).items() if seen[name] is None})


def labels(facts: Facts) -> dict[str, Seen]:
    """Sizes whoever made the trace wrote into its name, such as hidden7168_seqlen4096."""
    name = facts.trace.metadata.trace_name.lower().rpartition("/")[2]
    return {
        _LABELLED[word]: Seen(int(size), _LABEL_CONFIDENCE, f"the trace calls itself {name!r}")
        for word, size in _LABEL.findall(name)
    }


def _recorded(seen: dict[str, Seen | None]) -> ModelShapes:
    known = {name: one for name, one in seen.items() if one is not None}
    return ModelShapes(
        **{name: one.value for name, one in known.items()},
        basis=tuple((name, one.basis) for name, one in known.items()),
        confidences=tuple((name, one.confidence) for name, one in known.items()),
    )


def _token_table(facts: Facts) -> _Embedding | None:
    """The largest table that is looked up; tables of positions and segments are smaller."""
    calls = [
        call
        for call in calls_of(facts.forward_calls, _EMBEDDING)
        if len(call.inputs.dims) > 1 and len(call.inputs.dims[0]) == 2
    ]
    if not calls:
        return None
    rows, width = max(call.inputs.dims[0] for call in calls)
    mine = [call for call in calls if call.inputs.dims[0] == (rows, width)]
    widest = max(mine, key=lambda call: prod(call.inputs.dims[1]))
    return _Embedding(rows, width, len(mine), Counter(c.inputs.dims[1] for c in mine), shown(widest, len(mine)))


def _hidden(facts: Facts, made: Products) -> Seen | None:
    """The width most weight products read or write, if norms work on it too or nothing is known of norms."""
    norms = {call.inputs.dims[0][-1] for call in calls_of(facts.forward_calls, _NORM) if any(call.inputs.dims[:1])}
    widths: Counter[int] = Counter()
    for product, count in made.counts.items():
        widths[product.width_in] += count
        widths[product.width_out] += count
    for width, count in sorted(widths.items(), key=lambda item: (-item[1], item[0])):
        if not norms or width in norms:
            beside = " and norms work on it" if norms else ""
            sure = 0.8 if norms else 0.6
            return Seen(width, sure, f"{count:,} sides of {made.counts.total():,} weight products{beside}")
    return None


def _vocabulary(facts: Facts, made: Products, hidden: int | None) -> Seen | None:
    """Output width of a wide product of the hidden state that is done once a pass: the language-model head."""
    passes = _passes(facts, None)
    wide = [
        product
        for product, count in made.counts.items()
        if hidden and product.width_in == hidden and product.width_out >= _WIDEST_MLP * hidden and count <= passes[0]
    ]
    head = max(wide, key=lambda product: product.width_out, default=None)
    return Seen(head.width_out, 0.7, f"{_told(made, head)}, once a pass") if head else None


def _intermediate(made: Products, hidden: int | None, query_width: int | None) -> Seen | None:
    """Width the MLP's last product reads: it writes the hidden state and does not come from attention."""
    widths: Counter[int] = Counter()
    for product, count in made.counts.items():
        if product.width_out == hidden and product.width_in not in (hidden, query_width):
            widths[product.width_in] += count
    width, count = widths.most_common(1)[0] if widths else (0, 0)
    if hidden is None or count <= 1 or width < hidden // 4:
        return None
    product = next(one for one in made.counts if one.width_out == hidden and one.width_in == width)
    return Seen(width, 0.8, _told(made, product))


def _query_width(found: Heads) -> int | None:
    return found.heads.value * found.head_dim.value if found.heads and found.head_dim else None


def _layers(facts: Facts, table: _Embedding | None) -> Seen | None:
    """Attention layers of one forward pass on this rank: what is done once a layer over what is done once a pass.

    None where the division leaves a remainder: the window cuts a pass. Where passes cannot be counted, the layers that
    FSDP's marks number.
    """
    calls, told, on_host = attention_layers(facts)
    passes, each = _passes(facts, table)
    if calls and passes:
        if calls % passes:
            return None
        return Seen(
            calls // passes,
            0.9 if on_host else 0.8,
            f"{told} in {passes:,} {'pass' if passes == 1 else 'passes'} ({each})",
        )
    numbered = {int(match[1]) for name in facts.annotations if (match := _LAYER_MARK.fullmatch(name, 0, 1_000))}
    if len(numbered) > 1 and max(numbered) - min(numbered) == len(numbered) - 1:
        return Seen(len(numbered), 0.8, f"FSDP marks layers {min(numbered)} to {max(numbered)}")
    return None


def _passes(facts: Facts, table: _Embedding | None) -> tuple[int, str]:
    """Forward passes in the trace: lookups of the token table, losses, else steps of a serving engine, one pass each.

    Engines may mark a step twice under different names. A trainer's steps hold any number of passes and do not count.
    """
    if table is not None:
        return table.lookups, "lookups of the token table"
    losses = matching(facts.forward_operators, _LOSS)
    if losses:
        return losses, "losses"
    return max(matching(facts.annotations, pattern) for pattern in _ENGINE_STEPS), "steps of the engine"


def _batch(facts: Facts, table: _Embedding | None, made: Products) -> dict[str, Seen | None]:
    """Tokens of a pass, tokens of a sequence, and sequences. Packed attention hides where sequences end."""
    packed = next((call for call in calls_of(facts.forward_calls, PACKED) if _is_packed(call)), None)
    if table is None:
        return {"tokens": _tokens(packed, made), "sequence_length": None, "micro_batch": None}
    most = max(prod(shape) for shape in table.shapes)
    tokens = Seen(most, 0.9, table.text)
    batches: Counter[int] = Counter()
    lengths: Counter[int] = Counter()
    for shape, count in table.shapes.items():
        if len(shape) == 2:
            batches[shape[0]] += count
            lengths[shape[1]] += count
    batch, length = agreed(batches), agreed(lengths)
    if packed is not None or batch is None or length is None or length <= 1:
        return {"tokens": tokens, "sequence_length": None, "micro_batch": None}
    return {
        "tokens": tokens,
        "sequence_length": Seen(length, 0.85, table.text),
        "micro_batch": Seen(batch, 0.85, table.text),
    }


def _is_packed(call: OpCall) -> bool:
    return bool(call.inputs.dims) and len(call.inputs.dims[0]) == 3


def _tokens(packed: OpCall | None, made: Products) -> Seen | None:
    """Queries of a packed attention call, else rows of the most frequent product if it is done more than once."""
    if packed is not None:
        return Seen(packed.inputs.dims[0][0], 0.85, shown(packed))
    if not made.counts:
        return None
    product, count = made.counts.most_common(1)[0]
    return Seen(product.tokens, 0.6, _told(made, product)) if count > 1 else None


def _told(made: Products, product: Product) -> str:
    return shown(made.examples[product], made.counts[product])
