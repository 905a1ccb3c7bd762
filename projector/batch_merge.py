"""Projections of parts of a batch, put back into its order."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import Assumption, ProjectionBatch
from projector.specs.plan_batch import PlanBatch

Part = tuple[NDArray[np.intp], Any]
# fields that are not put together from the parts'
WHOLE = ("batch", "assumptions")


def interleaved(parts: Sequence[tuple[NDArray[np.intp], ProjectionBatch]], batch: PlanBatch) -> ProjectionBatch:
    """The projection of `batch`, of which each part holds the plans at its indices; together they hold all, once.

    Columns are scattered; a figure that a part has not is NaN there, as where a plan has none, and a term of a step or
    of memory is zero (a kind of operator it has none of). What is no column has to be the same in all parts, or becomes
    one. Sentences of a part hold for its plans alone.
    """
    length = len(batch)
    merged = {
        field.name: _scattered(
            [(at, getattr(part, field.name)) for at, part in parts], length, np.nan if field.name == "metrics" else 0.0
        )
        for field in fields(ProjectionBatch)
        if field.name not in WHOLE
    }
    return replace(parts[0][1], batch=batch, assumptions=_sentences(parts, length), **merged)


def _scattered(parts: Sequence[Part], length: int, missing: float) -> Any:
    first = next((value for _, value in parts if value is not None), None)
    if isinstance(first, np.ndarray):
        whole = np.zeros(length, dtype=np.result_type(*(value for _, value in parts if value is not None)))
        for at, value in parts:
            whole[at] = missing if value is None else value
        return whole
    if isinstance(first, dict):
        keys = dict.fromkeys(key for _, value in parts for key in value or ())
        return {key: _scattered([(at, (value or {}).get(key)) for at, value in parts], length, missing) for key in keys}
    if is_dataclass(first) and not isinstance(first, type):
        named = {
            field.name: _scattered([(at, getattr(value, field.name, None)) for at, value in parts], length, missing)
            for field in fields(first)
        }
        return replace(first, **named)
    if any(isinstance(value, np.ndarray) or value != first for _, value in parts):
        columns = [(at, None if value is None else np.broadcast_to(value, at.shape) * 1.0) for at, value in parts]
        return _scattered(columns, length, missing)
    return first


def _sentences(parts: Iterable[tuple[NDArray[np.intp], ProjectionBatch]], length: int) -> tuple[Assumption, ...]:
    """One sentence a text, for the plans of every part that says it."""
    holds: dict[str, NDArray[np.bool_]] = {}
    for at, part in parts:
        for sentence in part.assumptions:
            of = holds.setdefault(sentence.text, np.zeros(length, dtype=np.bool_))
            of[at] |= True if sentence.plans is None else sentence.plans
    return tuple(Assumption(text, None if of.all() else of) for text, of in holds.items())
