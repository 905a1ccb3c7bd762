"""`eval anchor` of serving rows: one measured point of an engine, and what it is worth for the engine's other points.

Every point of an engine (model, chip, stack and release, numerics, drafting, pools or not) is the anchor once; a pair
is (anchor, other). Every engine weighs the same, whatever the number of its points.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.evaluation.accuracy import Say, reasons
from agents.evaluation.reports_serving_anchor import ServingAnchorErrors, ServingAnchorReport
from agents.evaluation.rows import Unreadable
from agents.evaluation.serving_accuracy import sort_serving_rows
from agents.evaluation.serving_rows import ServingRow
from agents.evaluation.serving_scored import ServingScored
from projector.anchor.limits import within
from projector.anchor.serving_point import (
    FAR_LOAD,
    LAYOUT,
    LENGTHS,
    LOAD,
    TPOT_KEPT,
    TPOT_RANGE,
    Nearness,
    start,
)
from projector.batch_projection import IntervalRule
from projector.specs.plan import LAYOUT_FIELDS

ALL = "all"
IMPLAUSIBLE = f"its TPOT lies outside {TPOT_RANGE[0]:g} to {TPOT_RANGE[1]:g} times the projected one"
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Other points beside one anchor, shape [n]: measured over modelled, and over corrected. Of TTFT NaN where either
    prints none; weight: so that every engine weighs 1."""

    kind: NDArray[np.str_]
    tpot: Values
    tpot_corrected: Values
    low: Values
    high: Values
    ttft: Values
    ttft_corrected: Values
    weight: Values


def serving_anchor_report(rows: Iterable[ServingRow | Unreadable], *, say: Say = lambda _: None) -> ServingAnchorReport:
    """The report over all rows that print a TPOT."""
    found = sort_serving_rows(rows, say)
    engines: dict[tuple[Hashable, ...], list[ServingScored]] = defaultdict(list)
    for one in found.scored:
        if one.measured("tpot_s") is not None:
            engines[_engine(one)].append(one)
    several = [points for points in engines.values() if len(points) > 1]
    refused: list[tuple[str, str]] = []
    pairs = [found for points in several for found in _pairs_of(points, refused)]
    return ServingAnchorReport(
        n_given=found.lines,
        n_points=sum(map(len, several)),
        n_engines=len(several),
        n_pairs=sum(len(one.tpot) for one in pairs),
        by_distance=tuple(_errors(kind, pairs) for kind in (ALL, LOAD, FAR_LOAD, LENGTHS, LAYOUT)),
        refused_anchors=reasons(refused, with_ids=False),
    )


def _engine(one: ServingScored) -> tuple[Hashable, ...]:
    """What points of one engine share."""
    row, plan = one.case.row, one.case.plan
    return (
        row.model, one.case.hardware.id, row.engine, row.release, row.speculation, row.mode, plan.weight_dtype,
        plan.kv_cache_dtype, plan.compute_dtype, plan.expert_dtype, plan.speculation, plan.prefill_replicas > 0,
    )  # fmt: skip


def _pairs_of(points: Sequence[ServingScored], refused: list[tuple[str, str]]) -> Iterable[Pairs]:
    tpot, ttft = _ratios(points, "tpot_s"), _ratios(points, "ttft_s")
    load = np.array([_load(one) for one in points])
    lengths = np.array([(one.case.workload.input_len, one.case.workload.output_len) for one in points])
    layout = np.array([[getattr(one.case.plan, field) for field in LAYOUT_FIELDS] for one in points])
    modelled_s = np.array([one.projected.get("ttft_s", np.nan) for one in points])
    for place, one in enumerate(points):
        if not within(float(tpot[place]), TPOT_RANGE):
            refused.append((one.case.row.id, IMPLAUSIBLE))
            continue
        others = np.arange(len(points)) != place
        near = Nearness(
            doublings=np.abs(np.log2(load / load[place]))[others],
            lengths=(lengths != lengths[place]).any(axis=1).astype(np.float64)[others],
            layout=(layout != layout[place]).any(axis=1).astype(np.float64)[others],
            neighbour=np.ones(len(points) - 1, dtype=np.bool_),
        )
        low, high = near.factors(IntervalRule(0.0, np.inf, ""))
        first, late_s = start(float(ttft[place] * modelled_s[place]), float(modelled_s[place]))
        corrected_s = near.start_s(modelled_s[others], first, late_s)
        yield Pairs(
            kind=near.kind,
            tpot=tpot[others],
            tpot_corrected=tpot[others] / tpot[place] ** near.kept(TPOT_KEPT),
            low=low,
            high=high,
            ttft=ttft[others],
            ttft_corrected=ttft[others] * modelled_s[others] / corrected_s,
            weight=np.full(len(points) - 1, 1 / len(points) / (len(points) - 1)),
        )


def _ratios(points: Sequence[ServingScored], metric: str) -> Values:
    """Measured over modelled; NaN where a row prints none."""
    measured = [one.measured(metric) for one in points]  # type: ignore[arg-type]
    return np.array(
        [
            np.nan if value is None else value / one.projected[metric]  # type: ignore[index]
            for one, value in zip(points, measured, strict=True)
        ]
    )


def _load(one: ServingScored) -> float:
    assert one.case.workload.concurrency is not None
    return one.case.workload.concurrency / one.case.plan.devices


def _errors(kind: str, pairs: Sequence[Pairs]) -> ServingAnchorErrors:
    if not pairs:
        return ServingAnchorErrors(value=kind, pairs=0)
    joined = {name: np.concatenate([getattr(one, name) for one in pairs]) for name in vars(pairs[0])}
    chosen = np.ones(len(joined["kind"]), dtype=np.bool_) if kind == ALL else joined["kind"] == kind
    part = {name: column[chosen] for name, column in joined.items()}
    if not chosen.any():
        return ServingAnchorErrors(value=kind, pairs=0)
    inside = (part["tpot_corrected"] >= part["low"]) & (part["tpot_corrected"] <= part["high"])
    shown = np.isfinite(part["ttft"])
    late = {name: part[name][shown] for name in ("ttft", "ttft_corrected", "weight")}
    return ServingAnchorErrors(
        value=kind,
        pairs=int(chosen.sum()),
        tpot_modelled_mape=_mape(part["tpot"], part["weight"]),
        tpot_anchored_mape=_mape(part["tpot_corrected"], part["weight"]),
        tpot_coverage_80=float(np.average(inside, weights=part["weight"])),
        ttft_modelled_mape=_mape(late["ttft"], late["weight"]),
        ttft_anchored_mape=_mape(late["ttft_corrected"], late["weight"]),
        ttft_modelled_median=_median(late["ttft"]),
        ttft_anchored_median=_median(late["ttft_corrected"]),
    )


def _mape(ratio: Values, weight: Values) -> float | None:
    """Mean of |projected / measured - 1|, of measured over projected."""
    return float(np.average(np.abs(1 / ratio - 1), weights=weight)) if len(ratio) else None


def _median(ratio: Values) -> float | None:
    return float(np.median(np.abs(1 / ratio - 1))) if len(ratio) else None
