"""The stages of the pipelines of a batch: which differ, in which order they stand, and what their devices hold."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from projector.cost.layer_split import Counts, Split, chunks
from projector.cost.stages import Stage, in_flight
from projector.graph.columns import Column
from projector.graph.operator import Operator, Place, in_layers
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan_batch import PlanBatch

Index = NDArray[np.int64]
ORDER = ("layer", "dense_layer", "moe_layer", "full_attention_layer", "sliding_attention_layer", "embedding", "head")


@dataclass(frozen=True)
class Run:
    """Stages of one kind that follow each other: which kind, and how many (0: the plan has fewer runs)."""

    kind: Index
    length: Column


@dataclass(frozen=True)
class Pipeline:
    """The pipelines of a batch. A plan with fewer kinds than others repeats its first.

    kinds        the stages that differ, with all the chunks a device holds of them
    first_chunks, last_chunks    of each kind the chunk it begins and the one it ends with
    runs         the stages in their order, from the first to the last
    """

    kinds: tuple[Stage, ...]
    first_chunks: tuple[Stage, ...]
    last_chunks: tuple[Stage, ...]
    runs: tuple[Run, ...]
    pp: Column
    virtual_stages: Column

    def kind(self, index: Index) -> Stage:
        """For each plan the kind of this number."""
        chosen = self.kinds[0]
        for number, stage in enumerate(self.kinds[1:], start=1):
            chosen = chosen.where(index == number, stage)
        return chosen


def places_of(operators: Iterable[Operator]) -> tuple[Place, ...]:
    """Places that layers and ends of the operators' model have, layers first: sums have one order in every batch."""
    found = {"layer", *(operator.place for operator in operators)}
    return tuple(
        sorted(found, key=lambda place: (not in_layers(place), ORDER.index(place) if place in ORDER else 0, place))
    )


def pipeline(
    batch: PlanBatch, model: ModelArchitecture, places: tuple[Place, ...], virtual_stages: Column, pp: Column
) -> Pipeline:
    """The pipelines of a batch, as `layer_split` cuts the model; `places` are those of its operators.

    Distinct splits are laid out one by one, in whole numbers (as many as degrees and switches combine to, whatever the
    number of plans), then looked up for every plan. In flight is what the first device of a kind holds, which of all of
    that kind holds most.
    """
    columns = [
        column.astype(np.int64) for column in (pp, virtual_stages, batch.first_stage_layers, batch.last_stage_layers)
    ]
    key = np.zeros(len(batch), dtype=np.int64)
    for column in columns:
        key = key * (int(column.max()) + 1) + column
    _, chosen, of_plan = np.unique(key, return_index=True, return_inverse=True)
    found = [_laid_out(model, places, Split(*(int(column[plan]) for column in columns))) for plan in chosen]
    kinds, runs = max(len(one.positions) for one in found), max(len(one.lengths) for one in found)
    table = _Tables.of(found, kinds, runs)
    sends = (pp > 1) * 1.0

    def stage(counts: Counts, kind: int) -> Stage:
        held = {place: counts[of_plan, kind, number] for number, place in enumerate(places)}
        rank = table.positions[of_plan, kind]
        return Stage(
            held | {"stage": sends}, in_flight(pp, virtual_stages, batch.grad_accum.astype(np.float64), rank=rank)
        )

    whole = tuple(stage(table.whole, kind) for kind in range(kinds))
    one_chunk = bool((virtual_stages == 1).all())
    return Pipeline(
        kinds=whole,
        first_chunks=whole if one_chunk else tuple(stage(table.first, kind) for kind in range(kinds)),
        last_chunks=whole if one_chunk else tuple(stage(table.last, kind) for kind in range(kinds)),
        runs=tuple(Run(table.run_kinds[of_plan, run], table.run_lengths[of_plan, run]) for run in range(runs)),
        pp=pp,
        virtual_stages=virtual_stages,
    )


@dataclass(frozen=True)
class _LaidOut:
    """One split: places passed by each kind of stage and by its first and last chunk, [kinds, places]; the first
    position of each kind, [kinds]; kind and length of each run, [runs]."""

    whole: Counts
    first: Counts
    last: Counts
    positions: Counts
    run_kinds: Index
    lengths: Counts


@lru_cache(maxsize=4096)
def _laid_out(model: ModelArchitecture, places: tuple[Place, ...], split: Split) -> _LaidOut:
    held = chunks(model, places, split)
    by_stage = held.transpose(1, 0, 2).reshape(split.pp, -1)
    _, positions, kind_of = np.unique(by_stage, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(positions)
    kind_at = np.argsort(order)[kind_of.reshape(-1)]
    positions = positions[order]
    starts = np.flatnonzero(np.concatenate([[True], kind_at[1:] != kind_at[:-1]]))
    return _LaidOut(
        whole=held.sum(axis=0)[positions],
        first=held[0, positions],
        last=held[-1, positions],
        positions=positions.astype(np.float64),
        run_kinds=kind_at[starts],
        lengths=np.diff(np.concatenate([starts, [split.pp]])).astype(np.float64),
    )


@dataclass(frozen=True)
class _Tables:
    """What was laid out, filled up to one size: [splits, kinds, places], [splits, kinds] and [splits, runs]."""

    whole: Counts
    first: Counts
    last: Counts
    positions: Counts
    run_kinds: Index
    run_lengths: Counts

    @classmethod
    def of(cls, found: list[_LaidOut], kinds: int, runs: int) -> "_Tables":
        """A missing kind is the first again, a missing run has no stages."""

        def by_kind(item: str) -> Counts:
            rows = [getattr(one, item) for one in found]
            return np.stack([np.concatenate([row, np.repeat(row[:1], kinds - len(row), axis=0)]) for row in rows])

        def by_run(item: str) -> Counts:
            return np.stack([np.pad(getattr(one, item), (0, runs - len(one.lengths))) for one in found])

        return cls(
            by_kind("whole"), by_kind("first"), by_kind("last"), by_kind("positions"),
            by_run("run_kinds").astype(np.int64), by_run("lengths"),
        )  # fmt: skip
