"""Pipeline stages: which layers a stage holds, and how many micro-batches are in flight on it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from projector.graph.columns import Column, Switch
from projector.graph.operator import DRAFT, Place, sort_place
from projector.specs.architecture import ModelArchitecture


@dataclass(frozen=True)
class Stage:
    """One position of the pipeline: how often each place occurs on it, and its in-flight micro-batches (columns).

    stands_for: stages it is in one, 1 except where the whole model is taken as one, or a device holds two
    put_off: micro-batches besides those in flight whose weight gradients are not made yet
    """

    places: dict[Place, Column]
    in_flight: Column
    stands_for: Column | float = 1.0
    put_off: Column | float = 0.0

    def layers(self) -> Column:
        """Layers on the stage."""
        return self.places["layer"]

    def share_of(self, layers: Column) -> Column:
        """Share of the stage's layers that `layers` of each stage are; 0 stands for all."""
        chosen = np.minimum(layers * self.stands_for / np.maximum(self.layers(), 1.0), 1.0)
        share: Column = np.where(layers > 0, chosen, 1.0)
        return share

    def passed_by(self, share: Column) -> "Stage":
        """The stage as a share of the micro-batches pass it."""
        places = {place: share * times for place, times in self.places.items()}
        return replace(self, places=places, stands_for=share * self.stands_for)

    def where(self, other_holds: Switch, other: "Stage") -> "Stage":
        """For each plan the other stage where `other_holds`, this one elsewhere."""
        places = {place: np.where(other_holds, other.places[place], mine) for place, mine in self.places.items()}
        return Stage(
            places,
            np.where(other_holds, other.in_flight, self.in_flight),
            stands_for=_either(other_holds, other.stands_for, self.stands_for),
            put_off=_either(other_holds, other.put_off, self.put_off),
        )


def _either(other_holds: Switch, other: Column | float, mine: Column | float) -> Column | float:
    """One number where both are the same one."""
    if isinstance(mine, float) and isinstance(other, float) and mine == other:
        return mine
    return np.where(other_holds, other, mine)


@dataclass(frozen=True)
class Stages:
    """The positions that decide time and memory, and the whole model as one stage."""

    first: Stage
    middle: Stage
    last: Stage
    whole: Stage


def stages(model: ModelArchitecture, pp: Column, virtual_stages: Column, micro_batches: Column, zero: Column) -> Stages:
    """Stages of an even split: ceil(layers / pp) layers, on the last stage floor, as it also holds the head.

    Where the schedule is interleaved and pp * vp divides layers + 2 but not layers, embedding and head count as a layer
    each, so the first and the last stage hold one layer fewer than the others (Llama 3 405B, arXiv:2407.21783,
    section 3.3.2).
    In flight (micro-batches whose activations a stage holds, in units of its own layers):

        1F1B stage r of p          min(m, p - r)
        interleaved, v chunks      chunks 2 (p - r - 1) + (v - 1) p + 1 of v p, at most m v; over v

    which for the first stage gives Korthikanti et al. 2022's factor 1 + (p - 1) / (p v) over L layers.
    Serving looks at these positions; a training step at every stage (`projector.cost.pipeline_stages`).
    Leading dense layers stand on the first stage. Left out: sorts of layers spread unevenly, leading dense layers past
    the first of the middle stages, and chunks of unequal size when pp * vp does not divide the layers.
    """
    alone = (pp == 1) * 1.0
    most, fewest = np.ceil(model.layers / pp), np.maximum(np.floor(model.layers / pp), 1.0)
    ends = (virtual_stages > 1) & ends_count_as_layers(model.layers, pp * virtual_stages)
    middle = np.where(ends, np.where(pp > 2, (model.layers + 2) / pp, model.layers / pp), most)
    most, fewest = (np.where(ends, (model.layers + 2) / pp - 1, even) for even in (most, fewest))
    one = zero + 1.0
    return Stages(
        first=_stage(model, most, zero, one, alone, zero, in_flight(pp, virtual_stages, micro_batches, rank=zero)),
        middle=_stage(
            model,
            middle,
            np.where(pp > 1, most, 0.0),
            alone,
            alone,
            one,
            in_flight(pp, virtual_stages, micro_batches, rank=zero + 1),
        ),
        last=_stage(
            model,
            fewest,
            model.layers - fewest,
            alone,
            one,
            one,
            in_flight(pp, virtual_stages, micro_batches, rank=pp - 1),
        ),
        whole=replace(_stage(model, zero + model.layers, zero, one, one, pp, one), stands_for=pp),
    )


def ends_count_as_layers(layers: int, chunks: NDArray[Any]) -> Switch:
    """Whether `chunks` = pp * vp equal chunks come out only when embedding and head count as a layer each."""
    ends: Switch = (layers % chunks != 0) & ((layers + 2) % chunks == 0)
    return ends


def in_flight(pp: Column, virtual_stages: Column, micro_batches: Column, *, rank: Column) -> Column:
    """Micro-batches in flight on stage `rank`, in units of the stage's layers (formula above)."""
    behind = np.maximum(pp - rank - 1, 0.0)
    plain = behind + 1
    chunks = np.where(virtual_stages > 1, 2 * behind + (virtual_stages - 1) * pp + 1, plain)
    held: Column = np.minimum(chunks / virtual_stages, micro_batches)
    return held


def _stage(
    model: ModelArchitecture, layers: Column, before: Column, embedding: Column, head: Column, sends: Column,
    held: Column,
) -> Stage:  # fmt: skip
    return Stage(
        {
            "layer": layers,
            **_sorts(model, layers, before),
            "embedding": embedding,
            "head": head,
            DRAFT: head,
            "stage": sends,
        },
        held,
    )


def _sorts(model: ModelArchitecture, layers: Column, before: Column) -> dict[Place, Column]:
    """Layers of each sort among `layers` layers behind `before` others; sorts a model lists count as evenly mixed."""
    if model.sorts:
        return {sort_place(number): layers * (sort.layers / model.layers) for number, sort in enumerate(model.sorts)}
    # experts in one of so many layers spread evenly; behind leading dense layers a stage holds experts only
    if model.moe_every_layers > 1:
        moe = layers * (model.moe_layers / model.layers)
    elif model.is_moe:
        moe = layers - np.clip(model.first_dense_layers - before, 0.0, layers)
    else:
        moe = 0.0 * layers
    sliding = layers * (model.windowed_layers / model.layers)
    return {
        "dense_layer": layers - moe,
        "moe_layer": moe,
        "full_attention_layer": layers - sliding,
        "sliding_attention_layer": sliding,
    }
