"""The sizes a trace shows beside those of one model, under a tensor-parallel degree."""

from typing import NamedTuple

from projector.specs.architecture import ModelArchitecture
from traces.summary_types import ModelShapes

PADDING_FRAC = 0.02
PADDING_ROWS = 128


class SizeCheck(NamedTuple):
    """One size of `ModelShapes`: how to name what the trace shows, what the model has on a rank, whether they agree.

    agrees None: the trace does not show it. hard: no way of running the model changes it; kernels may fuse or copy
    what the soft ones count.
    """

    field: str
    shown: str
    expected: str
    agrees: bool | None
    hard: bool


def _sort_of(shapes: ModelShapes, tp: int, model: ModelArchitecture) -> ModelArchitecture:
    """The sort of layers whose attention the shapes may be of, where layers differ; the first that attends if none."""
    attending = [one for one in model.by_sort() if one.attention_layers] or [model]

    def differences(one: ModelArchitecture) -> int:
        heads = None if shapes.heads_per_rank is None else shapes.heads_per_rank * tp
        return sum(seen not in (None, size) for seen, size in ((heads, one.heads), (shapes.head_dim, one.head_dim)))

    return min(attending, key=differences)


def size_checks(shapes: ModelShapes, tp: int, stages: int, model: ModelArchitecture) -> tuple[SizeCheck, ...]:
    """Every size, hard ones first. Layers may be counted in several passes, and with stages a rank holds a part of
    them; the vocabulary may be padded; of key-value heads each rank has at least one; gate and up projection of an MLP
    may be one product.
    """
    like = _sort_of(shapes, tp, model)
    kv_heads = max(like.kv_heads // tp, 1)
    rows = -(-model.vocab_size // tp)
    widths = sorted({model.intermediate_size, model.moe_intermediate_size} - {0})
    shard = shapes.intermediate_shard
    return (
        _exactly("hidden_size", f"hidden size {shapes.hidden_size}", shapes.hidden_size, model.hidden_size),
        SizeCheck(
            "layers", f"{shapes.layers} layers", f"{model.layers}", _layers(shapes.layers, stages, model.layers), True
        ),
        SizeCheck(
            "vocab_shard",
            f"{shapes.vocab_shard} vocabulary rows a rank",
            f"{rows}",
            _padded(shapes.vocab_shard, tp, model.vocab_size),
            True,
        ),
        SizeCheck(
            "heads_per_rank",
            f"{shapes.heads_per_rank} heads a rank",
            f"{like.heads // tp or 1}",
            None if shapes.heads_per_rank is None else shapes.heads_per_rank * tp == like.heads,
            True,
        ),
        _exactly("head_dim", f"head size {shapes.head_dim}", shapes.head_dim, like.head_dim),
        _exactly("experts", f"{shapes.experts} experts", shapes.experts, model.experts),
        _exactly(
            "experts_per_token",
            f"{shapes.experts_per_token} experts a token",
            shapes.experts_per_token,
            model.experts_per_token,
        ),
        _exactly(
            "kv_heads_per_rank",
            f"{shapes.kv_heads_per_rank} KV heads a rank",
            shapes.kv_heads_per_rank,
            kv_heads,
            hard=False,
        ),
        SizeCheck(
            "intermediate_shard",
            f"MLP width {shard} a rank",
            " or ".join(f"{-(-width // tp)}" for width in widths),
            None if shard is None else any(shard * tp in (width, 2 * width) for width in widths),
            False,
        ),
    )


def _exactly(field: str, shown: str, seen: int | None, expected: int, *, hard: bool = True) -> SizeCheck:
    return SizeCheck(field, shown, f"{expected}", None if seen is None else seen == expected, hard)


def _layers(seen: int | None, stages: int, expected: int) -> bool | None:
    if seen is None:
        return None
    return seen % expected == 0 if stages == 1 else seen < expected or seen % expected == 0


def _padded(shard: int | None, tp: int, vocab_size: int) -> bool | None:
    """Whether tp shards hold the vocabulary, with the rows frameworks add to make it divisible."""
    if shard is None:
        return None
    return vocab_size <= shard * tp <= vocab_size * (1 + PADDING_FRAC) + PADDING_ROWS * tp
