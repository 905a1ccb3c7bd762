"""Why the device was idle: shares of idle time by cause, the cause of waiting they stand for, and the evidence."""

from dataclasses import dataclass

from agents.findings import Evidence
from agents.wording import duration, percent
from projector.specs.bottleneck import Cause
from projector.units import ns_to_s
from traces.measure_types import IdleSplit
from traces.summary_types import TraceSummary

HALF = 0.5
LEAST_SHARE_TOLD = 0.005


@dataclass(frozen=True)
class IdleCauses:
    """Fractions of the idle time; host_bound + launch_gap + dependency + unknown == 1.

    loading, pausing: parts of host_bound in which the host loaded input, or issued nothing for more than a millisecond.
    """

    host_bound: float
    launch_gap: float
    dependency: float
    unknown: float
    loading: float = 0.0
    pausing: float = 0.0

    @property
    def launching(self) -> float:
        """Idle time the host's launching accounts for, launch latency included."""
        return self.host_bound + self.launch_gap

    @property
    def apart(self) -> float:
        """Host-bound time in which the host did something else than issue work, as far as that is seen."""
        return max(self.loading, self.pausing)


def idle_causes(summary: TraceSummary, *, of_steps: bool) -> IdleCauses | None:
    """Causes of the idle time of the recorded window, or of its measured steps; None where there is none, or nothing
    was recorded of it.
    """
    split = _split(summary, of_steps)
    if split is None:
        return None
    whole = split.host_bound_ns + split.launch_gap_ns + split.dependency_ns + split.unknown_ns
    if not whole:
        return None
    return IdleCauses(
        host_bound=split.host_bound_ns / whole,
        launch_gap=split.launch_gap_ns / whole,
        dependency=split.dependency_ns / whole,
        unknown=split.unknown_ns / whole,
        loading=split.input_ns / whole,
        pausing=split.pause_ns / whole,
    )


def cause_of_waiting(idle: IdleCauses, stages: int | None) -> Cause:
    """What a device waits for, by the cause of most of its idle time.

    host_idle where most of the host's share passed while it loaded input or issued nothing at all; launch_bound where
    it issued work, one launch after another. A device whose work was queued and that waited all the same waits for
    another stage where there are several; otherwise the trace does not say for what.
    """
    if idle.unknown >= HALF:
        return "unknown"
    if idle.launching >= HALF * (1 - idle.unknown):
        return "host_idle" if idle.apart >= HALF * idle.launching else "launch_bound"
    return "pipeline_bubble" if (stages or 1) > 1 else "unknown"


def idle_evidence(summary: TraceSummary, *, of_steps: bool) -> tuple[Evidence, ...]:
    """A claim for each cause that takes a noticeable share of the window, or of its measured steps."""
    split, window, span = _split(summary, of_steps), summary.window_ns, "window"
    if of_steps:
        steps = (step for rank in summary.ranks for step in rank.steps if step.role == "measured")
        window, span = sum(step.window_ns for step in steps), "marked steps"
    if split is None or not window:
        return ()
    root = "summary.ranks[].step_idle" if of_steps else "summary.idle"
    return tuple(
        Evidence(
            id=f"ev-idle-{name}",
            claim=f"Idle time {words} takes {duration(ns_to_s(taken))}, {percent(taken / window)} of the {span}.",
            value=taken / window,
            unit="fraction",
            source="measured",
            ref=f"{root}.{field}",
        )
        for name, field, taken, words in _terms(split)
        if taken >= LEAST_SHARE_TOLD * window
    )


def _split(summary: TraceSummary, of_steps: bool) -> IdleSplit | None:
    """Idle time of the window by cause, or that of the measured steps where every rank that has some tells it."""
    if not of_steps:
        return summary.idle
    stepped = [rank for rank in summary.ranks if any(step.role == "measured" for step in rank.steps)]
    splits = [rank.step_idle for rank in stepped if rank.step_idle is not None]
    if not splits or len(splits) < len(stepped):
        return None
    return IdleSplit(**{name: sum(getattr(one, name) for one in splits) for name in IdleSplit.model_fields})


def _terms(split: IdleSplit) -> tuple[tuple[str, str, int, str], ...]:
    """(name, field, nanoseconds, which idle time that is)."""
    return (
        ("host", "host_bound_ns", split.host_bound_ns, "in which the host had not issued the next work"),
        ("input", "input_ns", split.input_ns, "in which the host loaded input"),
        ("pause", "pause_ns", split.pause_ns, "in which the host issued nothing for more than a millisecond"),
        ("launch", "launch_gap_ns", split.launch_gap_ns, "between a launch and its start, or between queued kernels,"),
        ("dependency", "dependency_ns", split.dependency_ns, "in which the next work was queued and waited"),
        ("unknown", "unknown_ns", split.unknown_ns, "whose cause the trace does not show"),
    )
