"""AnchoredBatch: projections corrected by a measured step of the current plan, with intervals of their own.

The interval of a projection reaches from f_low to f_high times it, f the factors of an unanchored one. Here

    f' = f^(1 - N C c)      c the share of the step that carried ratios correct, C 1 where its length alone is known

so it narrows with what was measured and is the unanchored one where nothing holds; where the steps of the trace scatter
more, their spread. How far ratios hold is in doubt too: the interval reaches at least to the step with every ratio in
full. The current plan itself has the spread of its steps alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from projector.anchor.anchor import Anchor
from projector.anchor.terms import Terms, corrected
from projector.anchor.transport import WHOLE_STEP, Transport
from projector.anchor.wording import carried_lines
from projector.batch_projection import Metrics, ProjectionBatch
from projector.breakdown import Interval, Projection
from projector.scaling.term import Column, Move
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.objective import Rejection, Slo
from projector.specs.plan_batch import PlanBatch

# N, on the pairs that `transport` names, anchors being runs of which the length alone is known: what a ratio carries
# takes little of the scatter of single plans away (its 80 % are 0.6 to 1.1 times as wide, by source), so the interval
# moves with the projection more than it narrows. Such a ratio carries at most WHOLE_STEP: C keeps steps known in parts
# from what was never checked.
NARROWING = 0.1
# 80 % of a normal distribution
QUANTILE = 1.28
# Where the trace shows no spread: one configuration moves by 1.9 % (median) between consecutive published releases.
UNKNOWN_SPREAD = 0.02


@dataclass(frozen=True)
class AnchoredBatch:
    """Corrected projections as columns of shape [n]; `batch[i]` is the i-th as a record of source "anchored"."""

    modelled: ProjectionBatch
    anchor: Anchor
    transport: Transport

    @classmethod
    def of(
        cls, modelled: ProjectionBatch, anchor: Anchor, cluster: ClusterSpec, hardware: HardwareProfile
    ) -> "AnchoredBatch":
        """The projections of a batch, corrected. Training only; cluster and hardware are those of the projections."""
        return cls(modelled, anchor, Transport.of(Move.of(anchor.current, modelled.batch), cluster, hardware))

    def __len__(self) -> int:
        return len(self.modelled)

    @cached_property
    def terms(self) -> Terms:
        """What the step is made of."""
        return corrected(self.modelled.breakdown, self.anchor, self.transport)

    @cached_property
    def step_time_s(self) -> Column:
        """Seconds of a step, exactly the measured ones of the current plan."""
        return np.where(self.transport.move.unchanged, self.anchor.measured.total_s, self.terms.breakdown.total_s)

    @cached_property
    def in_full_s(self) -> Column:
        """Seconds of a step if every ratio that holds at all held in full."""
        return corrected(self.modelled.breakdown, self.anchor, self.transport.wholly()).breakdown.total_s

    @cached_property
    def columns(self) -> ProjectionBatch:
        """The projections with corrected step, breakdown and rates."""
        longer = self.step_time_s / self.modelled.step_time_s
        metrics = self.modelled.metrics
        return replace(
            self.modelled,
            step_time_s=self.step_time_s,
            breakdown=self.terms.breakdown,
            metrics=Metrics(
                tokens_per_s_per_chip=_over(metrics.tokens_per_s_per_chip, longer),
                mfu_frac=_over(metrics.mfu_frac, longer),
            ),
        )

    @property
    def batch(self) -> PlanBatch:
        """The plans."""
        return self.modelled.batch

    @property
    def memory_bytes(self) -> Column:
        """Peak bytes on the fullest device, as modelled."""
        return self.modelled.memory_bytes

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Whether a plan leaves the reserve free, as modelled."""
        return self.modelled.fits

    def objective(self, name: str) -> Column:
        """The named objective by the corrected step. Errors as `ProjectionBatch.objective`."""
        return self.columns.objective(name)

    def slo_misses(self, slo: Slo) -> list[tuple[Rejection, ...]]:
        """Budgets of serving: none is missed in training."""
        return self.columns.slo_misses(slo)

    @cached_property
    def factors(self) -> tuple[Column, Column]:
        """(low, high) of every interval over the projected step."""
        ends = np.stack(self.unanchored_factors())
        known = 1.0 if self.anchor.parts is None else WHOLE_STEP
        narrowed = ends ** (1.0 - NARROWING * known * self.terms.carried_frac)
        spread, in_full = self._spread(), self.in_full_s / self.step_time_s
        steps = 1.0 - spread, 1.0 + spread
        low = np.minimum(np.minimum(narrowed[0], steps[0]), in_full)
        high = np.maximum(np.maximum(narrowed[1], steps[1]), in_full)
        unchanged = self.transport.move.unchanged
        low, high = np.where(unchanged, steps[0], low), np.where(unchanged, steps[1], high)
        return np.maximum(low, 0.0), high

    def unanchored_factors(self) -> tuple[Column, Column]:
        """(low, high) of every interval over the step as modelled alone."""
        rule, one = self.modelled.interval, np.ones(len(self))
        return rule.low_factor * one, rule.high_factor * one

    def _spread(self) -> float:
        measured = self.anchor.measured
        return UNKNOWN_SPREAD if measured.deviation_s is None else QUANTILE * measured.deviation_s / measured.total_s

    def __getitem__(self, index: int) -> Projection:
        step_s = float(self.step_time_s[index])
        low, high = (float(end[index]) * step_s for end in self.factors)
        modelled = self.columns[index]
        interval = Interval(low=low, high=high, basis=self._basis(index))
        axes = frozenset(one.axis for one in modelled.breakdown.by_axis)
        lines = carried_lines(self.anchor, self.transport.of_one(index), axes, float(self.in_full_s[index]))
        return modelled.model_copy(
            update={
                "source": "anchored",
                "step_time_interval_s": interval,
                "breakdown": modelled.breakdown.model_copy(update={"source": "anchored"}),
                "assumptions": (*lines, *modelled.assumptions),
            }
        )

    def _basis(self, index: int) -> str:
        steps = self.anchor.measured.steps
        of = f"the measured step ({steps} step{'s' if steps > 1 else ''})"
        if self.transport.move.unchanged[index]:
            spread = "one step: 2 % is assumed" if self.anchor.measured.deviation_s is None else "as its steps scatter"
            return f"{of}, {spread}"
        carried = f"{100 * float(self.terms.carried_frac[index]):.0f} %"
        rule = self.modelled.interval
        return f"{of} corrects {carried} of the step, which narrows the unanchored interval: {rule.basis}"


def _over(rate: Column | None, longer: Column) -> Column | None:
    return None if rate is None else rate / longer
