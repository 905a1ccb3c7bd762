"""Projections of parts of a batch, put back into its order."""

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.batch_projection import Assumption, ProjectionBatch
from projector.specs.plan_batch import PlanBatch

Part = tuple[NDArray[np.intp], Any]


def interleaved(parts: Sequence[tuple[NDArray[np.intp], ProjectionBatch]], batch: PlanBatch) -> ProjectionBatch:
    """The projection of `batch`, of which each part holds the plans at its indices; together they hold all, once.

    Columns are scattered, those a part lacks are zero there (a kind of operator it has none of); what is no column has
    to be the same in all parts. Sentences of a part hold for its plans alone.
    """
    length = len(batch)
    columns = ("step_time_s", "breakdown", "memory", "metrics", "interval", "links")
    merged = {name: _scattered([(at, getattr(part, name)) for at, part in parts], length) for name in columns}
    sentences = _sentences(parts, length)
    return replace(parts[0][1], batch=batch, assumptions=sentences, **merged)


def _scattered(parts: Sequence[Part], length: int) -> Any:
    first = next((value for _, value in parts if value is not None), None)
    if isinstance(first, np.ndarray) and first.ndim == 1:
        whole = np.zeros(length, dtype=np.result_type(*(value for _, value in parts if value is not None)))
        for at, value in parts:
            whole[at] = 0 if value is None else value
        return whole
    if isinstance(first, dict):
        keys = dict.fromkeys(key for _, value in parts for key in value or ())
        return {key: _scattered([(at, (value or {}).get(key)) for at, value in parts], length) for key in keys}
    if is_dataclass(first) and not isinstance(first, type):
        named = [field.name for field in fields(first)]
        return replace(
            first,
            **{name: _scattered([(at, getattr(value, name, None)) for at, value in parts], length) for name in named},
        )
    if any(isinstance(value, np.ndarray) or value != first for _, value in parts):
        return _scattered([(at, np.broadcast_to(value, at.shape).astype(np.float64)) for at, value in parts], length)
    return first


def _sentences(parts: Iterable[tuple[NDArray[np.intp], ProjectionBatch]], length: int) -> tuple[Assumption, ...]:
    """One sentence a text, for the plans of every part that says it."""
    holds: dict[str, NDArray[np.bool_]] = {}
    for at, part in parts:
        for sentence in part.assumptions:
            of = holds.setdefault(sentence.text, np.zeros(length, dtype=np.bool_))
            of[at] |= True if sentence.plans is None else sentence.plans
    return tuple(Assumption(text, None if of.all() else of) for text, of in holds.items())
