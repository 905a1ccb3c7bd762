"""Ledger: times of all operators, summed by pass and by what they are, once a place of the model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np

from projector.breakdown import Axis, OperatorKind
from projector.cost.collectives import collective_time_s
from projector.cost.roofline import Rates, operator_time_s
from projector.cost.routes import Route
from projector.cost.stages import Stage
from projector.graph.columns import Column
from projector.graph.operator import CollectiveKind, GroupName, Operator, Pass, Place

ENDS: frozenset[Place] = frozenset({"embedding", "head", "mtp_head"})
ComputeKey = tuple[Pass, OperatorKind]
WireKey = tuple[Pass, Axis, CollectiveKind]
K = TypeVar("K", ComputeKey, WireKey, Pass)


@dataclass(frozen=True)
class Ledger:
    """Seconds (columns) of one passage of each place on the device, its links and its host link, and its launches."""

    compute_s: dict[Place, dict[ComputeKey, Column]] = field(default_factory=dict)
    wire_s: dict[Place, dict[WireKey, Column]] = field(default_factory=dict)
    launches: dict[Place, dict[Pass, Column]] = field(default_factory=dict)
    attended: dict[Place, dict[Pass, Column]] = field(default_factory=dict)
    copy_s: dict[Place, dict[Pass, Column]] = field(default_factory=dict)
    weight_s: dict[Place, dict[Pass, Column]] = field(default_factory=dict)
    recomputed_layers: Column | None = None

    @classmethod
    def of(
        cls,
        operators: Iterable[Operator],
        rates: Rates,
        routes: Mapping[GroupName, Route],
        recomputed_layers: Column | None = None,
    ) -> "Ledger":
        """Price every operator once and add it to its place; recomputed_layers: of a stage, 0 or None: all."""
        some = recomputed_layers is not None and bool((recomputed_layers > 0).any())
        ledger = cls(recomputed_layers=recomputed_layers if some else None)
        for operator in operators:
            ledger._add(operator, rates, routes)
        return ledger

    def _add(self, operator: Operator, rates: Rates, routes: Mapping[GroupName, Route]) -> None:
        place = operator.place
        if operator.host_bytes is not None:
            _accumulate(self.copy_s, place, operator.run, operator.count * operator.host_bytes / rates.host_bytes_per_s)
            return
        if operator.collective is None:
            time_s = operator.count * operator_time_s(operator, rates)
            _accumulate(self.compute_s, place, (operator.run, operator.kind), time_s)
            if operator.weight_gradient:
                _accumulate(self.weight_s, place, operator.run, time_s)
        else:
            transfer_s = collective_time_s(operator.collective, routes)
            drift_s = np.where(transfer_s > 0, rates.collective_drift_s, 0.0)
            time_s = operator.count * (transfer_s + drift_s)
            key = (operator.run, operator.collective.axis, operator.collective.kind)
            _accumulate(self.wire_s, place, key, time_s)
        launched = operator.count * operator.kernels
        _accumulate(self.launches, place, operator.run, launched)
        if operator.kind == "attention":
            _accumulate(self.attended, place, operator.run, launched)

    def pass_s(self, *runs: Pass) -> dict[Place, Column]:
        """Compute and communication of these passes, hidden or not, in one passage of each place."""
        total_s: dict[Place, Column] = {}
        for table in (self.compute_s, self.wire_s):
            for place, times in table.items():
                for key, time in times.items():
                    if key[0] in runs:
                        total_s[place] = total_s[place] + time if place in total_s else time
        return total_s

    def on(self, stage: Stage, zero: Column) -> "StageTimes":
        """The sums on one stage: each place as often as the stage holds it."""
        again = None if self.recomputed_layers is None else stage.share_of(self.recomputed_layers)
        return StageTimes(
            ends_compute_s=_weighted(_at_ends(self.compute_s), stage),
            ends_launches=_weighted(_at_ends(self.launches), stage),
            compute_s=_weighted(self.compute_s, stage, again),
            wire_s=_weighted(self.wire_s, stage, again),
            launches=_weighted(self.launches, stage, again),
            attended=_weighted(self.attended, stage, again),
            copy_s=_weighted(self.copy_s, stage),
            weight_s=_weighted(self.weight_s, stage),
            zero=zero,
        )


@dataclass(frozen=True)
class StageTimes:
    """Seconds of one stage, once a micro-batch (forward, recompute, backward) or once a step (sync, update).

    weight_s: the part of compute_s that goes into gradients of weights
    ends_*: the part of embedding, head and loss, which the sums contain.
    """

    compute_s: dict[ComputeKey, Column]
    wire_s: dict[WireKey, Column]
    launches: dict[Pass, Column]
    attended: dict[Pass, Column]
    copy_s: dict[Pass, Column]
    weight_s: dict[Pass, Column]
    zero: Column
    ends_compute_s: dict[ComputeKey, Column]
    ends_launches: dict[Pass, Column]

    def compute(self, *runs: Pass, kind: OperatorKind | None = None) -> Column:
        """Compute time of these passes, of one kind or of all."""
        return sum(
            (time for (run, k), time in self.compute_s.items() if run in runs and kind in (None, k)), start=self.zero
        )

    def wire(self, *runs: Pass, axis: Axis, kinds: tuple[CollectiveKind, ...] | None = None) -> Column:
        """Communication time of these passes along an axis, of some collectives or of all."""
        return sum(
            (
                time
                for (run, a, kind), time in self.wire_s.items()
                if run in runs and a == axis and (kinds is None or kind in kinds)
            ),
            start=self.zero,
        )

    def copied(self, *runs: Pass) -> Column:
        """Seconds the host link is busy in these passes, one way."""
        return sum((self.copy_s[run] for run in runs if run in self.copy_s), start=self.zero)

    def weight_gradients(self) -> Column:
        """Compute time that goes into gradients of weights."""
        return sum(self.weight_s.values(), start=self.zero)

    def launched(self, *runs: Pass) -> Column:
        """Kernels the host launches for these passes."""
        return sum((self.launches[run] for run in runs if run in self.launches), start=self.zero)

    def attention_launched(self, *runs: Pass) -> Column:
        """Those of them that attend."""
        return sum((self.attended[run] for run in runs if run in self.attended), start=self.zero)

    def ends(self, *runs: Pass) -> tuple[Column, Column]:
        """(compute time, kernels launched) of the model's ends in these passes."""
        return (
            sum((time for (run, _), time in self.ends_compute_s.items() if run in runs), start=self.zero),
            sum((self.ends_launches[run] for run in runs if run in self.ends_launches), start=self.zero),
        )

    def kinds(self) -> tuple[OperatorKind, ...]:
        """Kinds that occur, in alphabetical order within a pass."""
        return tuple(dict.fromkeys(kind for _, kind in self.compute_s))


def _accumulate(table: dict[Place, dict[K, Column]], place: Place, key: K, value: Column) -> None:
    at_place = table.setdefault(place, {})
    at_place[key] = at_place[key] + value if key in at_place else value


def _weighted(table: dict[Place, dict[K, Column]], stage: Stage, again: Column | None = None) -> dict[K, Column]:
    """Sums over places in one order whatever the batch holds, so that one plan and many agree to the last digit.

    again: share of the layers whose recompute pass runs.
    """
    assert set(table) <= set(stage.places), "an operator at a place no stage has"
    summed: dict[K, Column] = {}
    for place, times in stage.places.items():
        for key, value in table.get(place, {}).items():
            part = times * value
            summed[key] = summed[key] + part if key in summed else part
    if again is not None:
        summed = {key: value * again if _pass_of(key) == "recompute" else value for key, value in summed.items()}
    return {key: summed[key] for key in sorted(summed, key=_text)}


def _at_ends(table: dict[Place, dict[K, Column]]) -> dict[Place, dict[K, Column]]:
    return {place: table[place] for place in ENDS if place in table}


@cache
def _text(key: ComputeKey | WireKey | Pass) -> str:
    return str(key)


def _pass_of(key: K) -> str:
    return key if isinstance(key, str) else key[0]
