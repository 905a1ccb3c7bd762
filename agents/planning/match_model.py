"""Which model of the catalogue the shapes in a trace belong to. One that fits, or none: never the nearest."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from projector import catalog
from projector.specs.architecture import ModelArchitecture
from traces.summary_types import ModelShapes, TraceSummary

MIN_AGREEING = 2
PADDING_FRAC = 0.02
PADDING_ROWS = 128
MAX_TP = 64
# fields of a model that no cost depends on (max_positions where positions are not a learned table)
IDENTITY = {
    "name",
    "hf_id",
    "max_positions",
    "source",
    "retrieved",
    "published_parameters",
    "published_parameters_source",
    "unverified",
    "note",
}


@dataclass(frozen=True)
class ModelMatch:
    """The model, the tensor-parallel degree under which the shapes agree, and what agreed."""

    architecture: ModelArchitecture
    tp: int
    confidence: float
    basis: str
    disagreeing: int = 0


def match_model(
    shapes: ModelShapes,
    tp: int | None,
    world_size: int | None,
    models: Iterable[ModelArchitecture],
    *,
    stages: int = 1,
) -> tuple[ModelMatch | None, str]:
    """The one model whose sizes the shapes show, and a sentence that says why it is that one or none.

    Hidden size, layers, vocabulary, heads, head size and experts must agree wherever the trace shows them; the
    vocabulary may be padded, layers may be counted in several passes, and with pipeline stages a rank holds a part of
    them. KV heads and MLP width (which kernels fuse) only raise or lower the confidence,
    1 - 0.4**agreeing - 0.2 * disagreeing. With `tp` unknown, every power of two up to `world_size` is tried.
    Of models that differ in name and context length only, which no cost depends on, the longest is named.
    """
    if shapes.hidden_size is None:
        return None, "the trace shows no hidden size"
    best: dict[str, ModelMatch] = {}
    for model in models:
        matches = [match for degree in _degrees(tp, world_size) if (match := _compare(shapes, degree, stages, model))]
        if matches:
            best[model.name] = max(matches, key=lambda match: (match.confidence, -match.tp))
    if not best:
        return None, f"no model of the catalogue has hidden size {shapes.hidden_size} and the other sizes in the trace"
    # a model that nothing speaks against goes before one with KV heads or an MLP width that disagree
    least = min(match.disagreeing for match in best.values())
    best = {name: match for name, match in best.items() if match.disagreeing == least}
    if len({_sizes(match.architecture) for match in best.values()}) > 1:
        return None, f"the sizes in the trace fit several models: {', '.join(sorted(best))}"
    match = min(best.values(), key=lambda found: (-(found.architecture.max_positions or 0), found.architecture.name))
    twins = sorted(set(best) - {match.architecture.name})
    if twins:
        match = replace(match, basis=f"{match.basis}; the sizes are also those of {', '.join(twins)}")
    return match, f"{match.architecture.name} fits: {match.basis}"


def _sizes(model: ModelArchitecture) -> str:
    """What costs depend on, as one comparable text."""
    return model.model_dump_json(exclude=IDENTITY - ({"max_positions"} if model.positions == "learned" else set()))


def match_trace(summary: TraceSummary) -> tuple[ModelMatch | None, str]:
    """The catalogue model a trace shows, as `match_model`."""
    implied = summary.implied
    tp = implied.tp.value if implied.tp else None
    world = implied.world_size.value if implied.world_size else len(summary.ranks)
    stages = implied.pp.value if implied.pp else 1
    return match_model(implied.shapes, tp, world, catalog.architectures(), stages=stages)


def _degrees(tp: int | None, world_size: int | None) -> Iterator[int]:
    if tp is not None:
        yield tp
        return
    degree = 1
    while degree <= min(world_size or 1, MAX_TP):
        yield degree
        degree *= 2


def _compare(shapes: ModelShapes, tp: int, stages: int, model: ModelArchitecture) -> ModelMatch | None:
    hard = {
        f"hidden size {shapes.hidden_size}": _equal(shapes.hidden_size, model.hidden_size),
        f"{shapes.layers} layers": _layers(shapes.layers, stages, model.layers),
        f"{shapes.vocab_shard} vocabulary rows a rank": _padded(shapes.vocab_shard, tp, model.vocab_size),
        f"{shapes.heads_per_rank} heads a rank": _equal(_times(shapes.heads_per_rank, tp), model.heads),
        f"head size {shapes.head_dim}": _equal(shapes.head_dim, model.head_dim),
        f"{shapes.experts} experts": _equal(shapes.experts, model.experts),
    }
    if False in hard.values():
        return None
    soft = {
        f"{shapes.kv_heads_per_rank} KV heads a rank": _equal(shapes.kv_heads_per_rank, max(model.kv_heads // tp, 1)),
        f"MLP width {shapes.intermediate_shard} a rank": _mlp(shapes.intermediate_shard, tp, model),
    }
    facts = hard | soft
    agreeing = [name for name, verdict in facts.items() if verdict]
    disagreeing = [name for name, verdict in facts.items() if verdict is False]
    if len(agreeing) < MIN_AGREEING:
        return None
    confidence = max(0.05, 1 - 0.4 ** len(agreeing) - 0.2 * len(disagreeing))
    against = f"; against it: {', '.join(disagreeing)}" if disagreeing else ""
    basis = f"{', '.join(agreeing)} (tp {tp}){against}"
    return ModelMatch(model, tp, min(confidence, 0.98), basis, len(disagreeing))


def _equal(seen: int | None, expected: int) -> bool | None:
    return None if seen is None else seen == expected


def _layers(seen: int | None, stages: int, expected: int) -> bool | None:
    if seen is None:
        return None
    return seen % expected == 0 if stages == 1 else seen < expected or seen % expected == 0


def _times(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _padded(shard: int | None, tp: int, vocab_size: int) -> bool | None:
    """Whether tp shards hold the vocabulary, with the rows frameworks add to make it divisible."""
    if shard is None:
        return None
    return vocab_size <= shard * tp <= vocab_size * (1 + PADDING_FRAC) + PADDING_ROWS * tp


def _mlp(shard: int | None, tp: int, model: ModelArchitecture) -> bool | None:
    """Whether the width is one of the MLP's, with gate and up projection apart or fused."""
    if shard is None:
        return None
    widths = {model.intermediate_size, model.moe_intermediate_size} - {0}
    return any(shard * tp in (width, 2 * width) for width in widths)
