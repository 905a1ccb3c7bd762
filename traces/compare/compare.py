"""Compare two summaries term by term, per step where both runs mark steps."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final, get_args

from projector.breakdown import Axis
from traces.compare.cautions import cautions
from traces.compare.prediction import prediction
from traces.compare.types import (
    Basis,
    CommunicationChange,
    Comparison,
    KernelChange,
    KindChange,
    PhaseChange,
    Side,
    Term,
    TermChange,
)
from traces.stored.redact import is_redacted, stays
from traces.summary_types import RankSummary, TimeShares, TraceSummary

_TERMS: Final[tuple[Term, ...]] = get_args(Term)
_KERNELS_LISTED: Final = 20
_SIGNIFICANT_FROM_ERRORS: Final = 2.0
_LEAST_STEPS: Final = 3


@dataclass(frozen=True, slots=True)
class _Measured:
    """One side: the windows that count, and the factor from sums over the whole job to one of them on one device."""

    summary: TraceSummary
    windows: Sequence[TimeShares]
    side: Side

    def mean_ns(self, field: str) -> float:
        return sum(int(getattr(window, field)) for window in self.windows) / len(self.windows)

    def scale(self, field: str) -> float:
        whole = int(getattr(self.summary, field))
        return self.mean_ns(field) / whole if whole else 0.0


def compare(before: TraceSummary, after: TraceSummary, *, predicted_change_frac: float | None = None) -> Comparison:
    """What moved from `before` to `after`.

    Of runs that both mark steps, a step on one device is compared: the mean of the measured steps of all ranks; of
    others the windows, which is told as a caution since they need not hold the same work. Kernels and kinds are sums of
    durations, scaled to the basis as `summary.measured_breakdown` does.
    predicted_change_frac: promised change of the time, -0.2 for a fifth less; None: nothing was promised.
    """
    basis: Basis = "step" if _steps(before) and _steps(after) else "window"
    a, b = _measured(before, basis), _measured(after, basis)
    change = b.side.time_ns - a.side.time_ns
    significant = _significant(a.side, b.side)
    return Comparison(
        basis=basis,
        before=a.side,
        after=b.side,
        change_ns=change,
        change_frac=change / a.side.time_ns,
        significant=significant,
        terms=_terms(a, b),
        kinds=_kinds(a, b),
        communication=_communication(a, b),
        kernels=_kernels(a, b),
        phases=_phases(before, after),
        prediction=None
        if predicted_change_frac is None
        else prediction(predicted_change_frac, a.side, b.side, basis, significant),
        cautions=cautions(before, after, basis),
    )


def _steps(summary: TraceSummary) -> list[TimeShares]:
    return [step for rank in summary.ranks for step in rank.steps if step.role == "measured" and step.window_ns]


def _measured(summary: TraceSummary, basis: Basis) -> _Measured:
    steps = _steps(summary) if basis == "step" else []
    windows: Sequence[TimeShares] = steps or summary.ranks
    # a window without length is one event of no duration: its rates would divide by zero
    time_ns = max(sum(window.window_ns for window in windows) / len(windows), 1.0)
    side = Side(
        files=summary.files,
        time_ns=time_ns,
        steps=len(steps),
        error_ns=_error_ns(summary.ranks) if steps else None,
        ranks=len(summary.ranks),
    )
    return _Measured(summary, windows, side)


def _error_ns(ranks: Iterable[RankSummary]) -> float | None:
    """Standard error of a rank's mean step, the largest over ranks: their steps rise and fall together.

    None where no rank has enough steps: the deviation of two says next to nothing of the next ones.
    """
    errors = [
        found.deviation_ns / sqrt(found.measured)
        for rank in ranks
        if (found := rank.step_statistics) is not None
        and found.deviation_ns is not None
        and found.measured >= _LEAST_STEPS
    ]
    return max(errors, default=None)


def _significant(before: Side, after: Side) -> bool | None:
    if before.error_ns is None or after.error_ns is None:
        return None
    return abs(after.time_ns - before.time_ns) > _SIGNIFICANT_FROM_ERRORS * sqrt(before.error_ns**2 + after.error_ns**2)


def _terms(a: _Measured, b: _Measured) -> tuple[TermChange, ...]:
    changes = []
    for term in _TERMS:
        before, after = a.mean_ns(f"{term}_ns"), b.mean_ns(f"{term}_ns")
        changes.append(
            TermChange(
                term=term,
                before_ns=before,
                after_ns=after,
                change_ns=after - before,
                change_of_time_frac=(after - before) / a.side.time_ns,
            )
        )
    return tuple(sorted(changes, key=lambda change: -abs(change.change_ns)))


def _kinds(a: _Measured, b: _Measured) -> tuple[KindChange, ...]:
    def times(one: _Measured) -> dict[str, float]:
        scale = one.scale("compute_ns")
        found: dict[str, float] = {entry.kind: entry.total_ns * scale for entry in one.summary.kernel_classes}
        communication = sum(entry.total_ns for entry in one.summary.collectives)
        return {
            **found,
            "communication": communication * one.scale("communication_ns"),
            "copy": one.mean_ns("copy_ns"),
        }

    before, after = times(a), times(b)
    changes = (
        KindChange.model_validate(
            {
                "kind": kind,
                "before_ns": before.get(kind, 0.0),
                "after_ns": after.get(kind, 0.0),
                "change_ns": after.get(kind, 0.0) - before.get(kind, 0.0),
            }
        )
        for kind in before | after
    )
    moved = (change for change in changes if change.before_ns or change.after_ns)
    return tuple(sorted(moved, key=lambda change: (-abs(change.change_ns), change.kind)))


def _communication(a: _Measured, b: _Measured) -> tuple[CommunicationChange, ...]:
    def by_axis(one: _Measured, field: str) -> dict[Axis, float]:
        sums: Counter[Axis] = Counter()
        for entry in one.summary.collectives:
            sums[entry.axis] += getattr(entry, field)
        return {axis: total * one.scale("communication_ns") for axis, total in sums.items()}

    before, after = by_axis(a, "total_ns"), by_axis(b, "total_ns")
    before_exposed, after_exposed = by_axis(a, "exposed_ns"), by_axis(b, "exposed_ns")
    changes = (
        CommunicationChange(
            axis=axis,
            before_ns=before.get(axis, 0.0),
            after_ns=after.get(axis, 0.0),
            before_exposed_ns=before_exposed.get(axis, 0.0),
            after_exposed_ns=after_exposed.get(axis, 0.0),
        )
        for axis in before | after
    )
    return tuple(sorted(changes, key=lambda one: (-abs(one.after_ns - one.before_ns), one.axis)))


def _kernels(a: _Measured, b: _Measured) -> tuple[KernelChange, ...]:
    def times(one: _Measured) -> dict[str, float]:
        scales = {"communication": one.scale("communication_ns"), "copy": one.scale("copy_ns")}
        compute = one.scale("compute_ns")
        sums: Counter[str] = Counter()
        for entry in one.summary.top_kernels:
            sums[entry.name] += round(entry.total_ns * scales.get(entry.kind, compute))
        return dict(sums)

    before, after = times(a), times(b)
    masked = is_redacted(a.summary) or is_redacted(b.summary)
    changes = [
        KernelChange(name=name, before_ns=before.get(name), after_ns=after.get(name))
        for name in before | after
        if not masked or stays(name)
    ]
    changes.sort(key=lambda one: (-abs((one.after_ns or 0.0) - (one.before_ns or 0.0)), one.name))
    return tuple(changes[:_KERNELS_LISTED])


def _phases(before: TraceSummary, after: TraceSummary) -> tuple[PhaseChange, ...]:
    ours = {phase.phase: phase.median_ns for phase in before.serving_phases}
    theirs = {phase.phase: phase.median_ns for phase in after.serving_phases}
    return tuple(
        PhaseChange(phase=phase, before_median_ns=ours.get(phase), after_median_ns=theirs.get(phase))
        for phase in ours | theirs
    )
