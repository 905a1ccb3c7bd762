"""BreakdownColumns: where the time of a step goes, of many plans as columns."""

from dataclasses import dataclass

import numpy as np

from projector.breakdown import Axis, AxisTime, KindTime, OperatorKind, TimeBreakdown
from projector.cost.overlap import AxisTimes
from projector.graph.columns import Column

# Sums of the same parts in another order differ by less.
SAME_FRAC = 1e-12


@dataclass(frozen=True)
class BreakdownColumns:
    """Seconds of one step on the busiest device, as in `TimeBreakdown`; columns of shape [n].

    host_s: seconds the host needs to launch what the device runs in a step; None where nobody modelled it.
    """

    total_s: Column
    compute_s: Column
    exposed_communication_s: Column
    overlapped_communication_s: Column
    exposed_copy_s: Column
    idle_s: Column
    bubble_s: Column
    by_kind: dict[OperatorKind, Column]
    by_axis: dict[Axis, AxisTimes]
    host_s: Column | None = None

    @classmethod
    def of(
        cls,
        by_kind: dict[OperatorKind, Column],
        by_axis: dict[Axis, AxisTimes],
        idle_s: Column,
        bubble_s: Column,
        exposed_copy_s: Column | None = None,
        host_s: Column | None = None,
    ) -> "BreakdownColumns":
        """Totals from the parts: total = compute + exposed communication + exposed copies + idle, by construction."""
        zero = np.zeros_like(idle_s)
        compute_s = sum(by_kind.values(), start=zero)
        exposed_s = sum((times.exposed_s for times in by_axis.values()), start=zero)
        communication_s = sum((times.total_s for times in by_axis.values()), start=zero)
        copy_s = zero if exposed_copy_s is None else exposed_copy_s
        return cls(
            total_s=compute_s + exposed_s + copy_s + idle_s,
            compute_s=compute_s,
            exposed_communication_s=exposed_s,
            overlapped_communication_s=np.maximum(communication_s - exposed_s, 0.0),
            exposed_copy_s=copy_s,
            idle_s=idle_s,
            bubble_s=bubble_s,
            by_kind=by_kind,
            by_axis=by_axis,
            host_s=host_s,
        )

    def or_longer(self, other: "BreakdownColumns") -> "BreakdownColumns":
        """For each plan the device whose step is longer, this one where they take the same; of one sort of phase."""
        longer, zero = other.total_s > self.total_s * (1 + SAME_FRAC), np.zeros_like(self.total_s)

        def pick(mine: Column | None, its: Column | None) -> Column:
            return np.where(longer, zero if its is None else its, zero if mine is None else mine)

        def axis(name: Axis) -> AxisTimes:
            mine, its = self.by_axis.get(name, AxisTimes(zero, zero)), other.by_axis.get(name, AxisTimes(zero, zero))
            return AxisTimes(pick(mine.total_s, its.total_s), pick(mine.exposed_s, its.exposed_s))

        return BreakdownColumns.of(
            by_kind={
                kind: pick(self.by_kind.get(kind), other.by_kind.get(kind))
                for kind in dict.fromkeys((*self.by_kind, *other.by_kind))
            },
            by_axis={name: axis(name) for name in dict.fromkeys((*self.by_axis, *other.by_axis))},
            idle_s=pick(self.idle_s, other.idle_s),
            bubble_s=pick(self.bubble_s, other.bubble_s),
            exposed_copy_s=pick(self.exposed_copy_s, other.exposed_copy_s),
            host_s=pick(self.host_s, other.host_s),
        )

    def record(self, index: int) -> TimeBreakdown:
        """The breakdown of one plan; kinds and axes that take no time are left out."""
        return TimeBreakdown(
            source="modelled",
            total_s=float(self.total_s[index]),
            compute_s=float(self.compute_s[index]),
            exposed_communication_s=float(self.exposed_communication_s[index]),
            overlapped_communication_s=float(self.overlapped_communication_s[index]),
            exposed_copy_s=float(self.exposed_copy_s[index]),
            idle_s=float(self.idle_s[index]),
            bubble_s=float(self.bubble_s[index]),
            by_kind=tuple(
                KindTime(kind=kind, time_s=float(time[index])) for kind, time in self.by_kind.items() if time[index] > 0
            ),
            by_axis=tuple(
                AxisTime(axis=axis, total_s=float(times.total_s[index]), exposed_s=float(times.exposed_s[index]))
                for axis, times in self.by_axis.items()
                if times.total_s[index] > 0
            ),
        )
