"""What a diagnosis cannot say, and why: sentences for its limits."""

from typing import Final

from agents.causes import PREFILL_ONLY
from agents.planning.capacity import NEAR_FULL_FRAC
from agents.planning.kernel_limits import MATRIX_KINDS, matrix_limits_known
from agents.planning.signals import Signals
from agents.planning.verdict import Verdict
from agents.planning.work_evidence import work_doubts
from agents.wording import percent, quoted
from projector.specs.bottleneck import Cause

# reported in one of the three classes only because there are three
WAITING_CAUSES: Final[frozenset[Cause]] = frozenset(
    {"launch_bound", "host_idle", "pipeline_bubble", "imbalance", "unknown"}
)


def convention(verdict: Verdict) -> tuple[str, ...]:
    """A sentence where the class is none of what happens; () where it is."""
    if verdict.cause not in WAITING_CAUSES:
        return ()
    return (
        f"class {verdict.bottleneck} is a convention here: a device that waits is none of compute, memory and "
        "communication, and the cause says what it waits for",
    )


def trace_limits(signals: Signals, verdict: Verdict) -> tuple[str, ...]:
    """Why the verdict on a trace may be wrong, and what the trace leaves open whatever the verdict is."""
    limits = [*convention(verdict), *verdict.doubts]
    if verdict.by_rows:
        limits += _row_limits(signals)
    elif signals.device and signals.chip is None:
        named = (
            f"'{quoted(signals.chip_name)}' is not in the catalogue" if signals.chip_name else "the trace names no chip"
        )
        limits.append(f"{named}: no statement about where kernels stand against a roofline")
    elif signals.device and verdict.matrix.basis != "roofline" and not matrix_limits_known(signals):
        limits.append(
            "the trace shows no tokens a pass: no statement about where matrix kernels stand against a roofline"
        )
    if (
        not verdict.by_rows
        and verdict.matrix.basis == "nothing"
        and any(signals.kinds.get(kind) for kind in MATRIX_KINDS)
        and not matrix_limits_known(signals)
    ):
        limits.append(
            "whether arithmetic or HBM bandwidth limits matrix kernels is not known; they are counted as compute"
        )
    limits += work_doubts(signals.work)
    if signals.prefill_only:
        limits.append(PREFILL_ONLY)
    if verdict.cause == "launch_bound" and (signals.idle is None or not signals.idle.loading):
        limits.append("a host that waits for input looks like slow launches here; the host side of the trace decides")
    if (signals.memory_used_frac or 0.0) > NEAR_FULL_FRAC:
        limits.append(
            f"memory is {percent(signals.memory_used_frac or 0.0)} full; allocator retries can slow such a run"
        )
    if not verdict.by_rows and signals.shares.unclassified > signals.shares.compute / 4:
        limits.append(f"{percent(signals.shares.unclassified)} of the window is in kernels that no rule could classify")
    if signals.step_cover is not None:
        limits.append(
            f"{percent(1 - signals.step_cover)} of the recorded window lies outside the marked steps: left out"
        )
    return tuple(limits)


def _row_limits(signals: Signals) -> list[str]:
    """What an operator table leaves open whatever the verdict is."""
    kpis = signals.ops.kpis if signals.ops is not None else None
    if kpis is not None and kpis.unattributed_frac > 0.5:
        return [
            f"most of the step, {percent(kpis.unattributed_frac)}, is in operators that the profile does not identify"
        ]
    return []
