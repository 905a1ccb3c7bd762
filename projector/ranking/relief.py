"""Relief: how much of what a diagnosis blames a plan saves, against the plan that runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from projector.batch_projection import ProjectionBatch
from projector.breakdown import Axis, TimeBreakdown
from projector.breakdown_columns import BreakdownColumns
from projector.errors import InvalidDescription
from projector.graph.columns import Column
from projector.specs.bottleneck import Cause

Term = Literal["compute_s", "exposed_communication_s", "exposed_copy_s", "idle_s", "bubble_s"]

# The term of a breakdown that each cause blames, or the axes whose exposed communication it blames. hbm_capacity
# blames bytes, and unknown nothing.
CAUSE_AXES: Mapping[Cause, tuple[Axis, ...]] = {
    "exposed_tp": ("tp",),
    "exposed_dp": ("dp", "fsdp"),
    "exposed_ep": ("ep",),
    "exposed_cp": ("cp",),
    "exposed_pp": ("pp",),
}
CAUSE_TERM: Mapping[Cause, Term] = {
    "compute_throughput": "compute_s",
    "hbm_bandwidth": "compute_s",
    "exposed_communication": "exposed_communication_s",
    "latency_bound_collectives": "exposed_communication_s",
    "imbalance": "exposed_communication_s",
    "pipeline_bubble": "bubble_s",
    "launch_bound": "idle_s",
    "host_idle": "idle_s",
    "copies": "exposed_copy_s",
}
MODELLED: frozenset[Cause] = frozenset({*CAUSE_AXES, *CAUSE_TERM, "hbm_capacity"})


def blamed_s(breakdown: TimeBreakdown, cause: Cause) -> float | None:
    """Seconds of a step in the term a cause blames; None where the breakdown has no such term."""
    if cause in CAUSE_AXES:
        times = [entry.exposed_s for entry in breakdown.by_axis if entry.axis in CAUSE_AXES[cause]]
        return sum(times) if breakdown.by_axis else None
    term = CAUSE_TERM.get(cause)
    if term is None:
        return None
    time_s: float | None = getattr(breakdown, term)
    return time_s


@dataclass(frozen=True)
class Relief:
    """The term a cause blames in the current plan, as what plans are compared with.

    share     of the current step that the term takes; of hbm_capacity 1, the bytes being the term
    amount    chip-seconds of the term a token; of hbm_capacity bytes
    """

    cause: Cause
    share: float
    amount: float

    @classmethod
    def of(cls, cause: Cause, current: ProjectionBatch) -> "Relief":
        """The term in the current plan, a batch of one. InvalidDescription where it has none to relieve."""
        if cause not in MODELLED:
            raise InvalidDescription(
                f"{cause} is no term of a projection, so no plan can be ranked by what it saves of it",
                hint=f"causes that are: {', '.join(sorted(MODELLED))}",
            )
        amount = float(_amount(cause, current)[0])
        if amount <= 0:
            raise InvalidDescription(
                f"the current plan is projected to spend nothing on {cause}", hint="name the cause its diagnosis names"
            )
        if cause == "hbm_capacity":
            return cls(cause, 1.0, amount)
        return cls(cause, float(_blamed(current.breakdown, cause)[0] / current.breakdown.total_s[0]), amount)

    def saved_frac(self, projected: ProjectionBatch) -> Column:
        """What each plan saves of the term, as a share of the current step (hbm_capacity: of its bytes), shape [n].

        share (1 - a / a_now), a being chip-seconds of the term a token: steps of different size compare. Below zero
        where the term grows.
        """
        return self.share * (1 - _amount(self.cause, projected) / self.amount)


def _amount(cause: Cause, projected: ProjectionBatch) -> Column:
    if cause == "hbm_capacity":
        return projected.memory_bytes
    metrics, breakdown = projected.metrics, projected.breakdown
    rate = metrics.tokens_per_s_per_chip
    rate = metrics.decode_tokens_per_s_per_chip if rate is None else rate
    assert rate is not None, "one of the two phases has a rate"
    share = _blamed(breakdown, cause) / breakdown.total_s
    return np.divide(share, rate, out=np.full_like(share, np.inf), where=rate > 0)


def _blamed(breakdown: BreakdownColumns, cause: Cause) -> Column:
    """Seconds of the blamed term, shape [n]."""
    if cause in CAUSE_AXES:
        zero = np.zeros_like(breakdown.total_s)
        axes = [times for axis, times in breakdown.by_axis.items() if axis in CAUSE_AXES[cause]]
        return sum((times.exposed_s for times in axes), start=zero)
    column: Column = getattr(breakdown, CAUSE_TERM[cause])
    return column
