"""Which model of the catalogue the shapes in a trace belong to. One that fits, or none: never the nearest."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from agents.planning.model_sizes import size_checks
from projector import catalog
from projector.specs.architecture import ModelArchitecture
from traces.summary_types import ModelShapes, TraceSummary

MIN_AGREEING = 2
MAX_TP = 64
LEAST_BELIEVED = 0.5
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
    "class_defaults",
    "encoder_parameters",
    "mtp_layers",
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

    Sizes the trace shows must agree (`size_checks`): hidden size, layers, vocabulary, heads, head size and experts. KV
    heads and MLP width (which kernels fuse) only raise or lower the confidence, 1 - 0.4**agreeing - 0.2 * disagreeing.
    Sizes the trace only hints at (confidence under 0.5) are left out. With `tp` unknown, every power of two up to
    `world_size` is tried.
    Of models that differ only in what no cost depends on, one without encoders is named, and the longest context.
    """
    shapes = _believed(shapes)
    if shapes.hidden_size is None:
        return None, "the trace shows no hidden size"
    best: dict[str, ModelMatch] = {}
    for model in models:
        matches = [match for degree in degrees(tp, world_size) if (match := _compare(shapes, degree, stages, model))]
        if matches:
            best[model.name] = max(matches, key=lambda match: (match.confidence, -match.tp))
    if not best:
        return None, f"no model of the catalogue has hidden size {shapes.hidden_size} and the other sizes in the trace"
    # a model that nothing speaks against goes before one with KV heads or an MLP width that disagree
    least = min(_doubt(match) for match in best.values())
    best = {name: match for name, match in best.items() if _doubt(match) == least}
    if len({_sizes(match.architecture) for match in best.values()}) > 1:
        return None, f"the sizes in the trace fit several models: {', '.join(sorted(best))}"
    match = min(best.values(), key=_preference)
    twins = sorted(set(best) - {match.architecture.name})
    if twins:
        match = replace(match, basis=f"{match.basis}; the sizes are also those of {', '.join(twins)}")
    return match, f"{match.architecture.name} fits: {match.basis}"


def _doubt(match: ModelMatch) -> tuple[int, bool]:
    """What speaks against a match; of layers of several sorts the sizes in a trace tell one."""
    return match.disagreeing, bool(match.architecture.sorts)


def _preference(match: ModelMatch) -> tuple[bool, int, str]:
    model = match.architecture
    return model.encoder_parameters != 0, -(model.max_positions or 0), model.name


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


def degrees(tp: int | None, world_size: int | None) -> Iterator[int]:
    """Tensor-parallel degrees that may be in use: the known one, else every power of two up to the world."""
    if tp is not None:
        yield tp
        return
    degree = 1
    while degree <= min(world_size or 1, MAX_TP):
        yield degree
        degree *= 2


def _believed(shapes: ModelShapes) -> ModelShapes:
    """The sizes without those the trace only hints at, such as by its file name."""
    hints = {name: None for name, sure in shapes.confidences if sure < LEAST_BELIEVED}
    return shapes.model_copy(update=hints) if hints else shapes


def _compare(shapes: ModelShapes, tp: int, stages: int, model: ModelArchitecture) -> ModelMatch | None:
    checks = size_checks(shapes, tp, stages, model)
    if any(check.hard and check.agrees is False for check in checks):
        return None
    agreeing = [check.shown for check in checks if check.agrees]
    disagreeing = [check.shown for check in checks if check.agrees is False]
    if len(agreeing) < MIN_AGREEING:
        return None
    confidence = max(0.05, 1 - 0.4 ** len(agreeing) - 0.2 * len(disagreeing))
    against = f"; against it: {', '.join(disagreeing)}" if disagreeing else ""
    basis = f"{', '.join(agreeing)} (tp {tp}){against}"
    return ModelMatch(model, tp, min(confidence, 0.98), basis, len(disagreeing))
