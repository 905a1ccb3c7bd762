"""What the ranks of a job imply, as one: the best supported value counts, others fill gaps, contradictions are told."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from traces.implied_types import Implied, Inferred, ModelShapes, ProcessGroup
from traces.infer_descriptions import Degree
from traces.infer_layout import Layout, by_description, complete
from traces.rank import RankParts

_GUESS_BELOW = 0.5
_SHOWN = 60
_RANKS_SHOWN = 4

_APART: Final = ("groups", "shapes", "unresolved")
_DEGREES: Final[tuple[Degree, ...]] = ("tp", "dp", "fsdp", "pp", "cp", "ep")

# Of these the ranks of one job should say the same.
_SHARED: Final[dict[str, str]] = {
    "world_size": "the world size",
    "chip_name": "the chip",
    "framework": "the framework",
    "phase": "training or serving",
    "dtype": "the number format",
    **{axis: f"the {axis} degree" for axis in _DEGREES},
}
_SHARED_SIZES: Final = {
    "hidden_size": "the hidden size",
    "heads_per_rank": "the heads of a rank",
    "kv_heads_per_rank": "the key-value heads of a rank",
    "head_dim": "the head size",
    "experts": "the number of experts",
    "experts_per_token": "the experts of a token",
}


def merge_implied(parts: Sequence[RankParts]) -> tuple[Implied, tuple[str, ...]]:
    """One `Implied` for a job, and where its ranks disagree.

    Each value is the one its ranks support most: the sum of their confidences, of equal ones that of the rank with the
    most events; guesses (confidence under 0.5) give way to what a rank knows better. The world size is the surest, of
    equally sure ones the largest, as a group that communicated shows a part of it. Groups are united, and what they
    tell together fills degrees that no rank knows alone. Shapes are those of one rank, completed by ranks that show the
    same model. A value that does not come from the rank with the most events names the rank it comes from.
    """
    ordered = sorted(parts, key=lambda part: -part.event_count)
    values: dict[str, Any] = {name: _chosen(name, ordered) for name in Implied.model_fields if name not in _APART}
    merged = ordered[0].implied.model_copy(update={**values, "groups": _groups(ordered)})
    merged = _with_degrees(merged, ordered)
    merged = merged.model_copy(update={"shapes": _shapes(ordered, merged)})
    told = [_disagreement(name, title, parts, merged) for name, title in _SHARED.items()]
    told += [_of_sizes(name, title, parts, merged) for name, title in _SHARED_SIZES.items()]
    return merged, tuple(one for one in told if one is not None)


def _chosen(name: str, ordered: Sequence[RankParts]) -> Inferred[Any] | None:
    stated = [(part, value) for part in ordered if (value := getattr(part.implied, name)) is not None]
    if not stated:
        return None
    if name == "world_size":
        part, value = min(stated, key=lambda one: (-one[1].confidence, -one[1].value))
    else:
        known = [one for one in stated if one[1].confidence >= _GUESS_BELOW] or stated
        support: dict[Any, float] = defaultdict(float)
        for _, value in known:
            support[value.value] += value.confidence
        # sorting is stable: of equally supported values the one of the rank with the most events comes first
        best = max(support, key=lambda one: support[one])
        part, value = next(one for one in known if one[1].value == best)
    return value if part is ordered[0] else _from(part, value)


def _from(part: RankParts, value: Inferred[Any]) -> Inferred[Any]:
    return value.model_copy(update={"basis": f"{value.basis} ({_title(part)})"})


def _title(part: RankParts) -> str:
    rank = part.summary.rank
    return f"rank {rank}" if rank is not None else part.summary.file


def _groups(ordered: Sequence[RankParts]) -> tuple[ProcessGroup, ...]:
    """Every group once, those of the rank that shows most first; what one rank lacks of a group another may add."""
    found: dict[tuple[str, int, str, tuple[int, ...]], ProcessGroup] = {}
    for part in ordered:
        for group in part.implied.groups:
            key = (group.name, group.size, group.description, group.ranks)
            found[key] = _united(found[key], group) if key in found else group
    listed = {key[:3] for key in found if key[3]}
    return tuple(group for key, group in found.items() if key[3] or key[:3] not in listed)


def _united(one: ProcessGroup, other: ProcessGroup) -> ProcessGroup:
    uses = {one.use, other.use} - {"unused"}
    return one.model_copy(
        update={
            "axis": other.axis if one.axis == "unknown" else one.axis,
            "use": uses.pop() if len(uses) == 1 else "many" if uses else "unused",
        }
    )


def _with_degrees(merged: Implied, ordered: Sequence[RankParts]) -> Implied:
    """Degrees no rank knows, from the groups of all; and why those that stay unknown do."""
    known: dict[Degree, Inferred[int]] = {
        axis: value for axis in _DEGREES if (value := getattr(merged, axis)) is not None
    }
    layout = Layout(degrees=dict(known))
    world = merged.world_size.value if merged.world_size else None
    by_description(layout, merged.groups, world)
    if layout.degrees.keys() > known.keys():
        complete(layout, world)
    found: dict[str, Any] = {
        axis: value for axis, value in layout.degrees.items() if axis in _DEGREES and axis not in known
    }
    unresolved = dict(why for part in ordered for why in reversed(part.implied.unresolved))
    left = tuple(
        (axis, why) for axis, why in unresolved.items() if axis not in found and getattr(merged, axis, None) is None
    )
    return merged.model_copy(update={**found, "unresolved": left})


def _shapes(ordered: Sequence[RankParts], merged: Implied) -> ModelShapes:
    """Shapes of the first rank that shows a hidden size, its gaps filled by ranks with the same one.

    Stages of a pipeline show different parts of a model: only one has the table of tokens.
    """
    if merged.is_transformer_lm is not None and not merged.is_transformer_lm.value:
        return ModelShapes()
    shown = [part for part in ordered if part.implied.shapes != ModelShapes()]
    sized = [part for part in shown if part.implied.shapes.hidden_size is not None]
    if not sized:
        return shown[0].implied.shapes if shown else ModelShapes()
    shapes = sized[0].implied.shapes
    for part in sized[1:]:
        if part.implied.shapes.hidden_size == shapes.hidden_size:
            shapes = _completed(shapes, part)
    return shapes


def _completed(shapes: ModelShapes, part: RankParts) -> ModelShapes:
    other = part.implied.shapes
    gaps = {
        name: value
        for name in ModelShapes.model_fields
        if name not in ("basis", "confidences")
        and getattr(shapes, name) is None
        and (value := getattr(other, name)) is not None
    }
    if not gaps:
        return shapes
    basis = tuple((name, f"{text} ({_title(part)})") for name, text in other.basis if name in gaps)
    sure = tuple((name, one) for name, one in other.confidences if name in gaps)
    return shapes.model_copy(
        update={**gaps, "basis": (*shapes.basis, *basis), "confidences": (*shapes.confidences, *sure)}
    )


def _disagreement(name: str, title: str, parts: Iterable[RankParts], merged: Implied) -> str | None:
    """Ranks that are sure of another value than the chosen one; guesses and lower bounds are no contradiction."""
    chosen = getattr(merged, name)
    if chosen is None or chosen.confidence <= _GUESS_BELOW:
        return None
    others = [
        (part, value.value)
        for part in parts
        if (value := getattr(part.implied, name)) is not None
        and value.confidence > _GUESS_BELOW
        and value.value != chosen.value
    ]
    return _told(title, chosen.value, others)


def _of_sizes(name: str, title: str, parts: Iterable[RankParts], merged: Implied) -> str | None:
    chosen = getattr(merged.shapes, name)
    if chosen is None:
        return None
    others = [
        (part, value)
        for part in parts
        if (value := getattr(part.implied.shapes, name)) is not None
        and value != chosen
        and dict(part.implied.shapes.confidences).get(name, 0.0) > _GUESS_BELOW
    ]
    return _told(title, chosen, others)


def _told(title: str, chosen: object, others: Sequence[tuple[RankParts, object]]) -> str | None:
    if not others:
        return None
    ranks = ", ".join(_title(part) for part, _ in others[:_RANKS_SHOWN]) + (
        ", ..." if len(others) > _RANKS_SHOWN else ""
    )
    values = sorted({ascii(value)[:_SHOWN] for _, value in others})
    return (
        f"the files disagree on {title}: {ascii(chosen)[:_SHOWN]} was taken, "
        f"{' and '.join(values[:_RANKS_SHOWN])} stands in {len(others)} of them ({ranks})"
    )
