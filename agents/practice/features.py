"""What decides, beside projected speed, which layout people adopt: a few figures of each layout, each with its words.

Every figure is of the layout and its machine, none of a model, a chip or a framework by name. Powers of two are what
degrees come in, so degrees count in doublings.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.practice.table import Column, LayoutTable

FILL_FROM = 0.80


@dataclass(frozen=True)
class Feature:
    """One figure. column: of shape [n]; more, less: what a layout with more or less of it does, in words."""

    name: str
    column: Callable[[LayoutTable], Column]
    more: str
    less: str


def _doublings(table: LayoutTable, degree: str) -> Column:
    return np.asarray(np.log2(table.plans.columns[degree].astype(np.float64)), dtype=np.float64)


def _gain(table: LayoutTable) -> Column:
    return np.asarray(np.log(table.good / table.good.max()), dtype=np.float64)


def _fill(table: LayoutTable) -> Column:
    return 10.0 * np.maximum(table.fill_frac - FILL_FROM, 0.0)


def _axes(table: LayoutTable) -> Column:
    return np.asarray((table.degrees > 1).sum(axis=1), dtype=np.float64)


def _experts_room(table: LayoutTable) -> Column:
    """Devices that experts may spread over without leaving the fast domain or the stage."""
    setting = table.setting
    stage = setting.devices / table.plans.pp
    return np.minimum(np.minimum(float(setting.domain), float(setting.architecture.experts)), stage)


def _expert_room_left(table: LayoutTable) -> Column:
    if not table.setting.architecture.is_moe:
        return np.zeros(len(table))
    return np.maximum(np.log2(_experts_room(table)) - _doublings(table, "ep"), 0.0)


def _experts_fill_room(table: LayoutTable) -> Column:
    if not table.setting.architecture.is_moe:
        return np.zeros(len(table))
    return np.asarray(table.plans.ep >= _experts_room(table), dtype=np.float64)


def _recomputes(table: LayoutTable) -> Column:
    return np.asarray(
        (table.plans.recompute == "selective") + 2.0 * (table.plans.recompute == "full"), dtype=np.float64
    )


def _odd(table: LayoutTable) -> Column:
    degrees = table.degrees
    return np.asarray((degrees & (degrees - 1) != 0).any(axis=1), dtype=np.float64)


GAIN = "gain"
FEATURES: tuple[Feature, ...] = (
    Feature(GAIN, _gain, "is projected faster", "is projected slower"),
    Feature("fill", _fill, "fills memory beyond 80 %", "leaves more of the memory free"),
    Feature("axes", _axes, "uses more axes", "uses fewer axes"),
    Feature("tensor", lambda table: _doublings(table, "tp"), "shards layers over more devices", "keeps layers whole"),
    Feature("stages", lambda table: _doublings(table, "pp"), "has more pipeline stages", "has fewer pipeline stages"),
    Feature(
        "many_stages",
        lambda table: _doublings(table, "pp") ** 2,
        "has many pipeline stages",
        "does not have many pipeline stages",
    ),
    Feature("context", lambda table: _doublings(table, "cp"), "splits sequences further", "keeps sequences whole"),
    Feature(
        "expert_room_left",
        _expert_room_left,
        "spreads experts over fewer devices than the fast domain has",
        "spreads experts over more of the fast domain",
    ),
    Feature(
        "experts_fill_room",
        _experts_fill_room,
        "spreads experts over all of the fast domain or stage",
        "leaves part of the fast domain or stage to copies of the experts",
    ),
    Feature("recompute", _recomputes, "repeats work to save memory", "keeps activations instead of repeating work"),
    Feature("odd", _odd, "has a degree that is no power of two", "has powers of two only"),
    Feature(
        "micro_batch",
        lambda table: _doublings(table, "micro_batch"),
        "has room for more sequences at once",
        "takes fewer sequences at once",
    ),
)
NAMES = tuple(feature.name for feature in FEATURES)


def features_of(table: LayoutTable) -> Column:
    """Every figure of every layout, shape [n, features]."""
    return np.stack([np.asarray(feature.column(table), dtype=np.float64) for feature in FEATURES], axis=1)
