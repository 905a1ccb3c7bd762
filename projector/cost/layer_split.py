"""Which layers the chunks of a pipeline hold: whole numbers, one layout at a time."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from projector.graph.operator import Place, sort_number
from projector.specs.architecture import ModelArchitecture

Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """How one pipeline cuts the model.

    pp, vp                devices in a row, chunks each of them holds
    first_layers, last_layers   layers of the first and the last device; 0: as the even split has it
    """

    pp: int
    vp: int
    first_layers: int = 0
    last_layers: int = 0


def chunk_lengths(layers: int, split: Split) -> NDArray[np.int64]:
    """Layers of every chunk, shape [vp, pp]; chunk [c, r] is part c * pp + r of the model, in its order.

    Even split: as many layers in each, the longer ones first, as the last also holds the head (Megatron-Core wants a
    layout for uneven ones, torchtitan splits so unasked). Where it is interleaved and pp * vp divides layers + 2 but
    not layers, embedding and head count as a layer each, so the first and the last chunk hold one layer fewer (Llama 3
    405B, arXiv:2407.21783, section 3.3.2).
    With first_layers or last_layers those devices hold as many, over their chunks, and the others share the rest
    evenly (Megatron-Core: --decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers). What no rule of
    legality admits still adds up to the model: one device holds it whole, the last of two what the first leaves.
    """
    pp, vp = split.pp, split.vp
    if pp == 1 or not (split.first_layers or split.last_layers):
        if vp > 1 and ends_count(layers, pp * vp):
            lengths = _even(layers + 2, pp * vp).reshape(vp, pp)
            lengths[0, 0] -= 1
            lengths[-1, -1] -= 1
            return lengths
        return _even(layers, pp * vp).reshape(vp, pp)
    first = min(split.first_layers, layers)
    last = layers - first if pp == 2 and first else min(split.last_layers, layers - first)
    lengths = np.zeros((vp, pp), dtype=np.int64)
    middle = np.ones(pp, dtype=bool)
    for rank, held in ((0, first), (pp - 1, last)):
        if held:
            lengths[:, rank] = _even(held, vp)
            middle[rank] = False
    if middle.any():
        lengths[:, middle] = _even(layers - first - last, vp * int(middle.sum())).reshape(vp, -1)
    return lengths


def ends_count(layers: int, chunks: int) -> bool:
    """Whether so many equal chunks come out only when embedding and head count as a layer each."""
    return layers % chunks != 0 and (layers + 2) % chunks == 0


@lru_cache(maxsize=4096)
def chunks(model: ModelArchitecture, places: tuple[Place, ...], split: Split) -> Counts:
    """How often a chunk passes each of `places`, shape [vp, pp, places]: its layers by sort, and the model's ends."""
    lengths = chunk_lengths(model.layers, split)
    ends = np.minimum(np.cumsum(lengths), model.layers)
    starts = np.concatenate([[0], ends[:-1]])
    held = np.zeros((len(ends), len(places)))
    for column, place in enumerate(places):
        occurs = layers_with(model, place)
        if occurs is not None:
            before = np.concatenate([[0.0], np.cumsum(occurs)])
            held[:, column] = before[ends] - before[starts]
        elif place == "embedding":
            held[0, column] = 1.0
        else:
            held[-1, column] = 1.0
    return held.reshape(split.vp, split.pp, len(places))


@lru_cache(maxsize=4096)
def layers_with(model: ModelArchitecture, place: Place) -> Counts | None:
    """1.0 for each layer, in the order of the model, in which the place occurs; None for places outside of layers.

    Leading dense layers come first; with experts in one of so many layers that one is the last of them. Layers that
    attend to all are spread evenly among sliding ones, each behind its share of them: a description has no more order.
    Likewise the sorts a model lists, each layer in the middle of its share.
    """
    sort = sort_number(place)
    if sort is not None:
        chosen: Counts = (_sort_of_layers(model) == sort).astype(np.float64)
        return chosen
    moe = np.zeros(model.layers)
    if model.is_moe:
        moe[model.first_dense_layers + model.moe_every_layers - 1 :: model.moe_every_layers] = 1.0
    full = _spread(model.layers, model.layers - model.windowed_layers)
    found: dict[Place, Counts] = {
        "layer": np.ones(model.layers),
        "dense_layer": 1.0 - moe,
        "moe_layer": moe,
        "full_attention_layer": full,
        "sliding_attention_layer": 1.0 - full,
    }
    return found.get(place)


def _sort_of_layers(model: ModelArchitecture) -> NDArray[np.int64]:
    """The sort of each layer, sorts evenly mixed."""
    sorts = np.repeat(np.arange(len(model.sorts)), [sort.layers for sort in model.sorts])
    places = np.concatenate([(np.arange(sort.layers) + 0.5) / sort.layers for sort in model.sorts])
    return sorts[np.argsort(places, kind="stable")]


def _even(layers: int, parts: int) -> NDArray[np.int64]:
    """Layers over parts, the longer parts first."""
    shorter, longer = divmod(layers, parts)
    return np.where(np.arange(parts) < longer, shorter + 1, shorter)


def _spread(layers: int, chosen: int) -> Counts:
    """1.0 for `chosen` of so many layers, evenly, each at the end of its share."""
    number = np.arange(layers)
    found: Counts = ((number + 1) * chosen // layers > number * chosen // layers).astype(np.float64)
    return found
