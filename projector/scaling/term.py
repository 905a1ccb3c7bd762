"""Terms and degrees: an estimate with a range, and the plan fields the scaling formulas read, as columns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch

Column = NDArray[np.float64]

RESOLUTION_S = 1e-9
"""Traces count whole nanoseconds: a measured time below one is no time, and no denominator."""


@dataclass(frozen=True)
class Term:
    """low <= estimate <= high, columns of shape [n] in one unit."""

    low: Column
    estimate: Column
    high: Column

    @classmethod
    def exact(cls, value: Column) -> "Term":
        """A term that is not in doubt."""
        return cls(value, value, value)

    @classmethod
    def between(cls, one: Column, other: Column) -> "Term":
        """A factor somewhere between two positive ones: the estimate is their geometric mean."""
        return cls(np.minimum(one, other), np.sqrt(one * other), np.maximum(one, other))

    def __add__(self, other: "Term") -> "Term":
        return Term(self.low + other.low, self.estimate + other.estimate, self.high + other.high)

    def __mul__(self, other: "Term") -> "Term":
        """Product of two terms that are not negative."""
        return Term(self.low * other.low, self.estimate * other.estimate, self.high * other.high)

    def times(self, factor: ArrayLike) -> "Term":
        """The term times a factor that is not in doubt."""
        factor = np.asarray(factor, dtype=np.float64)
        return Term(self.low * factor, self.estimate * factor, self.high * factor)

    def widened(self, frac: ArrayLike) -> "Term":
        """The range stretched by (1 + frac) on either side."""
        stretch = 1.0 + np.asarray(frac, dtype=np.float64)
        return Term(self.low / stretch, self.estimate, self.high * stretch)

    def where(self, mask: NDArray[np.bool_], other: "Term") -> "Term":
        """This term where the mask holds, the other elsewhere."""
        return Term(
            np.where(mask, self.low, other.low),
            np.where(mask, self.estimate, other.estimate),
            np.where(mask, self.high, other.high),
        )


@dataclass(frozen=True)
class Degrees:
    """The numbers of a batch that scaling reads, as float columns of shape [n].

    rounds     micro-batches a step (grad_accum)
    replicas   ranks that hold the same weights before sharding: dp * cp
    shard      ranks one copy of the weights is sharded over: fsdp * cp where fsdp > 1, else 1
    """

    plans: PlanBatch
    dp: Column
    cp: Column
    tp: Column
    pp: Column
    vp: Column
    ep: Column
    etp: Column
    attention_dp: Column
    micro_batch: Column
    rounds: Column
    shard: Column

    @classmethod
    def of(cls, plans: PlanBatch) -> "Degrees":
        """Read off a batch."""
        fsdp, cp = plans.fsdp.astype(np.float64), plans.cp.astype(np.float64)
        return cls(
            plans=plans,
            dp=plans.dp.astype(np.float64),
            cp=cp,
            tp=plans.tp.astype(np.float64),
            pp=plans.pp.astype(np.float64),
            vp=plans.vp.astype(np.float64),
            ep=plans.ep.astype(np.float64),
            etp=plans.etp.astype(np.float64),
            attention_dp=plans.attention_dp.astype(np.float64),
            micro_batch=plans.micro_batch.astype(np.float64),
            rounds=plans.grad_accum.astype(np.float64),
            shard=np.where(fsdp > 1, fsdp * cp, 1.0),
        )

    @property
    def replicas(self) -> Column:
        """Ranks that hold the same weights before sharding."""
        return self.dp * self.cp

    @property
    def devices(self) -> Column:
        """Devices of the plan."""
        return self.dp * self.cp * self.tp * self.pp


@dataclass(frozen=True)
class Move:
    """A batch of plans beside the one plan that was measured."""

    before: Degrees
    after: Degrees
    current: ParallelismPlan

    @classmethod
    def of(cls, current: ParallelismPlan, plans: PlanBatch) -> "Move":
        """The move from the current plan to each of the batch."""
        return cls(Degrees.of(PlanBatch.from_plans([current])), Degrees.of(plans), current)

    @property
    def serving(self) -> bool:
        """Whether this is about an engine step."""
        return self.current.phase == "serving"

    @property
    def doublings(self) -> Column:
        """How far a plan is from the measured one: half the sum of |log2| over the degrees and the micro-batch (a swap
        of two axes counts once), and at least half a doubling where anything differs."""
        b, a = self.before, self.after
        pairs = (
            (b.dp, a.dp), (b.cp, a.cp), (b.tp, a.tp), (b.pp, a.pp), (b.vp, a.vp),
            (b.shard, a.shard), (b.ep * b.etp, a.ep * a.etp), (b.micro_batch, a.micro_batch),
        )  # fmt: skip
        distance: Column = 0.5 * np.sum([np.abs(np.log2(after / before)) for before, after in pairs], axis=0)
        return np.where(self.unchanged, 0.0, np.maximum(distance, 0.5))

    def changed(self, field: str) -> NDArray[np.bool_]:
        """Where a plan field differs from the current plan's, shape [n]."""
        differs: NDArray[np.bool_] = np.asarray(self.after.plans.columns[field] != getattr(self.current, field))
        return differs

    @cached_property
    def unchanged(self) -> NDArray[np.bool_]:
        """Where every field equals the current plan's, shape [n]."""
        same = np.ones(len(self.after.plans), dtype=bool)
        for field in self.after.plans.columns:
            same &= ~self.changed(field)
        return same
