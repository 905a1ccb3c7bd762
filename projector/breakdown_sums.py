"""Sums of breakdowns: phases that follow each other on one device."""

from collections.abc import Iterable, Sequence

from projector.breakdown import AxisTime, KindTime, TimeBreakdown


def repeated(breakdown: TimeBreakdown, times: float) -> TimeBreakdown:
    """The same phase so many times."""
    return in_sequence([(breakdown, times)])


def in_sequence(parts: Iterable[tuple[TimeBreakdown, float]], waiting_s: float = 0.0) -> TimeBreakdown:
    """Phases one after the other, each so many times, and `waiting_s` of idle time beside them, as a modelled step."""
    found = list(parts)

    def total(name: str) -> float:
        return sum(times * (getattr(one, name) or 0.0) for one, times in found)

    return TimeBreakdown(
        source="modelled",
        total_s=total("total_s") + waiting_s,
        compute_s=total("compute_s"),
        exposed_communication_s=total("exposed_communication_s"),
        overlapped_communication_s=total("overlapped_communication_s"),
        exposed_copy_s=total("exposed_copy_s"),
        idle_s=total("idle_s") + waiting_s,
        bubble_s=total("bubble_s"),
        by_kind=_kinds(found),
        by_axis=_axes(found),
    )


def _kinds(found: Sequence[tuple[TimeBreakdown, float]]) -> tuple[KindTime, ...]:
    kinds = dict.fromkeys(entry.kind for one, _ in found for entry in one.by_kind)
    return tuple(
        KindTime(
            kind=kind,
            time_s=sum(times * entry.time_s for one, times in found for entry in one.by_kind if entry.kind == kind),
        )
        for kind in kinds
    )


def _axes(found: Sequence[tuple[TimeBreakdown, float]]) -> tuple[AxisTime, ...]:
    axes = dict.fromkeys(entry.axis for one, _ in found for entry in one.by_axis)
    sums = {
        axis: [
            (times * entry.total_s, times * entry.exposed_s)
            for one, times in found
            for entry in one.by_axis
            if entry.axis == axis
        ]
        for axis in axes
    }
    return tuple(
        AxisTime(axis=axis, total_s=sum(total for total, _ in pairs), exposed_s=sum(exposed for _, exposed in pairs))
        for axis, pairs in sums.items()
    )
