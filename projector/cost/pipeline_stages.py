"""The stages of the pipelines of a batch: which differ, in which order they stand, and what their devices hold."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.cost.layer_split import Counts, Split, chunks
from projector.cost.stages import Stage, in_flight
from projector.graph.columns import Column, Switch
from projector.graph.operator import Operator, Place, in_layers
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan_batch import PlanBatch

Index = NDArray[np.int64]
# Sums over places have one order in every batch.
ORDER = ("layer", "dense_layer", "moe_layer", "full_attention_layer", "sliding_attention_layer", "embedding", "head")


@dataclass(frozen=True)
class Run:
    """Stages of one kind that follow each other: which kind, and how many (0: the plan has fewer runs)."""

    kind: Index
    length: Column


@dataclass(frozen=True)
class Layout:
    """One way to cut the model.

    chunks       how often each chunk passes each place, [vp, pp, places]
    kind_at      the kind of the stage at each position, [pp]; kinds are numbered by their first position
    firsts, lasts   first and last position of each kind, [kinds]
    two_way      whether each device holds two stages, one for either direction
    chunks_differ   whether chunks between the first and the last of an interleaved pipeline hold different layers
    devices      two-way pipelines: the pairs of kinds that devices hold; else each kind twice, [devices, 2]
    """

    split: Split
    places: tuple[Place, ...]
    two_way: bool
    chunks_differ: bool
    chunks: Counts
    kind_at: Index
    firsts: Index
    lasts: Index
    devices: Index

    @classmethod
    def of(cls, model: ModelArchitecture, places: tuple[Place, ...], split: Split, *, two_way: bool) -> "Layout":
        """Stages are of one kind where all their chunks hold the same."""
        held = chunks(model, places, split)
        by_stage = held.transpose(1, 0, 2).reshape(split.pp, -1)
        _, firsts, kind_of = np.unique(by_stage, axis=0, return_index=True, return_inverse=True)
        kind_at = np.argsort(np.argsort(firsts))[kind_of.reshape(-1)]
        lasts = np.array([np.flatnonzero(kind_at == kind)[-1] for kind in range(len(firsts))])
        pairs = np.stack([kind_at, kind_at[::-1] if two_way else kind_at], axis=1)
        if two_way:
            pairs = pairs[: (split.pp + 1) // 2]
        # dict keeps the first of equals, and their order
        devices = np.array(list(dict.fromkeys((int(a), int(b)) for a, b in pairs)))
        between = held[:, :, [in_layers(place) for place in places]].reshape(split.pp * split.vp, -1)[1:-1]
        differ = split.vp > 1 and bool((between != between[:1]).any())
        return cls(split, places, two_way, differ, held, kind_at, np.sort(firsts), lasts, devices)

    def runs(self) -> tuple[Index, Counts]:
        """(kind, length) of each run."""
        starts = np.flatnonzero(np.concatenate([[True], self.kind_at[1:] != self.kind_at[:-1]]))
        return self.kind_at[starts], np.diff(np.concatenate([starts, [self.split.pp]])).astype(np.float64)


@dataclass(frozen=True)
class Pipeline:
    """The pipelines of a batch. A plan with fewer kinds or devices than others repeats its first.

    kinds        the stages that differ, each with all the chunks a device holds of it
    first_chunks, last_chunks    of each kind the chunk it begins and the one it ends with
    devices      the devices that differ by what they hold: each kind, or two stages of a two-way pipeline; behind them
                 what else decides memory
    device_kinds for each of `devices` that differ by work, the numbers of its two kinds (twice the same one)
    runs         the stages in their order, from the first to the last
    copies       how many devices hold each weight for the pipeline's own sake: 2 in a two-way one
    splits_weights   plans whose weight gradients run apart from the backward pass
    layouts, layout_of   the ways to cut the model, and the one of each plan
    """

    kinds: tuple[Stage, ...]
    first_chunks: tuple[Stage, ...]
    last_chunks: tuple[Stage, ...]
    devices: tuple[Stage, ...]
    device_kinds: tuple[tuple[Index, Index], ...]
    runs: tuple[Run, ...]
    pp: Column
    virtual_stages: Column
    copies: Column
    splits_weights: Switch
    layouts: tuple[Layout, ...]
    layout_of: Index

    def device(self, index: Index) -> Stage:
        """For each plan the device of this number."""
        return _chosen(self.devices[: len(self.device_kinds)], index)


def places_of(operators: Iterable[Operator]) -> tuple[Place, ...]:
    """Places that layers and ends of the operators' model have, layers first."""
    found = {"layer", *(operator.place for operator in operators)}

    def order(place: Place) -> tuple[bool, int, str]:
        return not in_layers(place), ORDER.index(place) if place in ORDER else len(ORDER), place

    return tuple(sorted(found, key=order))


def pipeline(
    batch: PlanBatch, model: ModelArchitecture, places: tuple[Place, ...], virtual_stages: Column, pp: Column
) -> Pipeline:
    """The pipelines of a batch, as `layer_split` cuts the model; `places` are those of its operators.

    Distinct cuts are laid out one by one, in whole numbers (as many as degrees and switches combine to, whatever the
    number of plans), then looked up for every plan. In flight is what that device of a kind holds which holds most:

        1F1B, interleaved    `in_flight` of the first of them
        ZB-H1                the same, and on device r up to r micro-batches whose weight gradients are put off, with
                             all they read: the last of a kind has most of these (Qi et al. 2023, section 2.3)
        DualPipe             p + 1 micro-batches, each of one of its two stages: half as many of both (DeepSeek-V3,
                             table 2)
    """
    # an odd number of devices has none in the middle: no legal plan, timed and filled as one-way
    two_way, splits = (batch.schedule == "dualpipe") & (pp % 2 == 0), batch.schedule == "zero_bubble"
    columns = (pp, virtual_stages, batch.first_stage_layers, batch.last_stage_layers, two_way)
    layouts, layout_of = _layouts(model, places, [column.astype(np.int64) for column in columns])
    found = _LookUp(layouts, layout_of, places, pp, virtual_stages, batch.grad_accum.astype(np.float64), splits)
    kinds = found.stages(lambda layout: layout.chunks.sum(axis=0)[layout.firsts], lambda layout: layout.firsts)
    first = last = devices = kinds
    if (virtual_stages > 1).any():
        first = found.stages(lambda layout: layout.chunks[0, layout.firsts], lambda layout: layout.firsts)
        last = found.stages(lambda layout: layout.chunks[-1, layout.firsts], lambda layout: layout.firsts)
    if two_way.any():
        devices = found.devices(kinds, two_way)
    fullest = devices
    if splits.any():
        late = found.stages(lambda layout: layout.chunks.sum(axis=0)[layout.firsts], lambda layout: layout.lasts)
        # of other plans no device is like these, least of all one that holds two stages
        fullest += tuple(devices[0].where(splits, stage) for stage in late)
    return Pipeline(
        kinds=kinds,
        first_chunks=first,
        last_chunks=last,
        devices=fullest,
        device_kinds=found.device_kinds(),
        runs=found.runs(),
        pp=pp,
        virtual_stages=virtual_stages,
        copies=np.where(two_way, 2.0, 1.0),
        splits_weights=splits | two_way,
        layouts=layouts,
        layout_of=layout_of,
    )


def _layouts(
    model: ModelArchitecture, places: tuple[Place, ...], columns: list[Index]
) -> tuple[tuple[Layout, ...], Index]:
    """The distinct rows of the columns laid out, and which of them each plan has."""
    key = np.zeros_like(columns[0])
    for column in columns:
        key = key * (int(column.max()) + 1) + column
    _, chosen, of_plan = np.unique(key, return_index=True, return_inverse=True)
    rows = [[int(column[plan]) for column in columns] for plan in chosen]
    return tuple(_laid_out(model, places, Split(*row[:4]), bool(row[4])) for row in rows), of_plan.reshape(-1)


@lru_cache(maxsize=4096)
def _laid_out(model: ModelArchitecture, places: tuple[Place, ...], split: Split, two_way: bool) -> Layout:
    return Layout.of(model, places, split, two_way=two_way)


@dataclass(frozen=True)
class _LookUp:
    """Figures of layouts as columns over plans."""

    layouts: tuple[Layout, ...]
    layout_of: Index
    places: tuple[Place, ...]
    pp: Column
    virtual_stages: Column
    micro_batches: Column
    puts_off: Switch

    def rows(self, of: Callable[[Layout], NDArray[Any]]) -> NDArray[Any]:
        """[rows, layouts, ...]: what `of` gives for each layout, one row a kind; a missing kind is the first again."""
        each = [of(layout) for layout in self.layouts]
        most = max(len(rows) for rows in each)
        filled = [np.concatenate([rows, np.repeat(rows[:1], most - len(rows), axis=0)]) for rows in each]
        return np.stack(filled, axis=1)

    def stages(self, held: Callable[[Layout], Counts], at: Callable[[Layout], Index]) -> tuple[Stage, ...]:
        """One stage a kind: passages of each place, [kinds, places], on a device at the position, [kinds]."""
        sends = (self.pp > 1) * 1.0
        found = []
        for counts, position in zip(self.rows(held), self.rows(at), strict=True):
            passed = {place: counts[self.layout_of, number] for number, place in enumerate(self.places)}
            rank = position[self.layout_of].astype(np.float64)
            running = in_flight(self.pp, self.virtual_stages, self.micro_batches, rank=rank)
            put_off: Column | float = 0.0
            if self.puts_off.any():
                put_off = np.where(self.puts_off, np.minimum(rank, self.micro_batches - running), 0.0)
            found.append(Stage(passed | {"stage": sends}, running, put_off=put_off))
        return tuple(found)

    def device_kinds(self) -> tuple[tuple[Index, Index], ...]:
        """For each device the kinds of its two stages."""
        return tuple((pair[self.layout_of, 0], pair[self.layout_of, 1]) for pair in self.rows(lambda one: one.devices))

    def devices(self, kinds: tuple[Stage, ...], two_way: Switch) -> tuple[Stage, ...]:
        """Devices of two-way pipelines hold two stages, the others one."""
        running = np.minimum((self.pp + 1) / 2, self.micro_batches / 2)
        found = []
        for first, second in self.device_kinds():
            one, other = _chosen(kinds, first), _chosen(kinds, second)
            both = {place: np.where(two_way, times + other.places[place], times) for place, times in one.places.items()}
            held = np.where(two_way, running, one.in_flight)
            found.append(replace(one, places=both, in_flight=held, stands_for=np.where(two_way, 2.0, 1.0)))
        return tuple(found)

    def runs(self) -> tuple[Run, ...]:
        """Runs of each plan; a missing one has no stages."""
        kinds, lengths = zip(*(layout.runs() for layout in self.layouts), strict=True)
        most = max(len(row) for row in kinds)
        kind, length = (
            np.stack([np.pad(row, (0, most - len(row))) for row in rows], axis=1) for rows in (kinds, lengths)
        )
        return tuple(Run(kind[run, self.layout_of], length[run, self.layout_of]) for run in range(most))


def _chosen(stages: tuple[Stage, ...], index: Index) -> Stage:
    """For each plan the stage of this number."""
    chosen = stages[0]
    for number, stage in enumerate(stages[1:], start=1):
        chosen = chosen.where(index == number, stage)
    return chosen
