"""Evidence from the shares of a window or a projected step: what runs, what is exposed, what limits matrix kernels."""

from collections.abc import Mapping
from typing import TypeVar

from agents.causes import AXIS_PHRASE
from agents.findings import Evidence, EvidenceSource
from agents.planning.kernel_limits import MatrixLimit
from agents.planning.signals import Signals
from agents.planning.verdict import Verdict
from agents.wording import percent, quoted
from projector.breakdown import Axis, OperatorKind
from traces.summary_types import TraceSummary

_ON_DEVICE = {
    "compute": "Kernels run {} of",
    "exposed-communication": "Communication that no kernel hides takes {} of",
    "hidden-communication": "Communication under kernels takes {} of",
    "exposed-copy": "Copies that nothing hides take {} of",
    "idle": "The device is idle {} of",
}
# a trace without device events says nothing of kernels, and of the device not even that it is idle
_ON_HOST = {
    "compute": "Host operators that do not communicate run {} of",
    "exposed-communication": "Host operators that communicate, beside which no other runs, take {} of",
    "hidden-communication": "Host operators that communicate, beside which others run, take {} of",
    "exposed-copy": "",
    "idle": "No host operator runs in {} of",
}

K = TypeVar("K", OperatorKind, Axis)


def fraction_evidence(name: str, claim: str, value: float, source: EvidenceSource, ref: str) -> Evidence:
    """A claim whose value is a fraction."""
    return Evidence(id=f"ev-{name}", claim=claim, value=value, unit="fraction", source=source, ref=ref)


def share_evidence(signals: Signals, root: str) -> tuple[Evidence, ...]:
    """The window identity, kernels by kind, communication by axis. root: where the shares stand, down to the field."""
    shares, source, span = signals.shares, signals.source, _span(signals)
    suffix, whole = ("_ns", "summary") if source == "measured" else ("_s", root)
    hidden = shares.hidden_communication
    words = _ON_DEVICE if signals.device else _ON_HOST
    rows = [
        ("compute", "compute", shares.compute),
        ("exposed-communication", "exposed_communication", shares.exposed_communication),
        ("hidden-communication", "communication", hidden),
        ("exposed-copy", "exposed_copy", shares.exposed_copy),
        ("idle", "idle", shares.idle),
    ]
    found = [
        fraction_evidence(
            name, f"{words[name].format(percent(value))} {span}.", value, source, f"{root}.{field}{suffix}"
        )
        for name, field, value in rows
        if words[name] and (value or name != "hidden-communication")
    ]
    kinds, axes = ("kernel_classes", "collectives") if source == "measured" else ("by_kind", "by_axis")
    for kind, share in _largest_first(signals.kinds):
        claim = f"{_events(signals)} of kind {kind} take {percent(share)} of {span}."
        found.append(fraction_evidence(f"kind-{kind}", claim, share, source, f"{whole}.{kinds}[kind={kind}]"))
    for axis, share in _largest_first(signals.axes_exposed):
        claim = f"{AXIS_PHRASE[axis].capitalize()} communication is exposed for {percent(share)} of {span}."
        found.append(fraction_evidence(f"axis-{axis}", claim, share, source, f"{whole}.{axes}[axis={axis}]"))
    return tuple(found)


def _largest_first(shares: Mapping[K, float]) -> list[tuple[K, float]]:
    """What has a share at all, the largest first, equal ones by name."""
    return sorted(((name, share) for name, share in shares.items() if share > 0), key=lambda item: (-item[1], item[0]))


def _events(signals: Signals) -> str:
    return "Kernels" if signals.device else "Host operators"


def _span(signals: Signals) -> str:
    if signals.source == "modelled":
        return "the step"
    return "the window" if signals.step_cover is None else "the marked steps"


def trace_only_evidence(summary: TraceSummary, signals: Signals) -> tuple[Evidence, ...]:
    """What only a trace can show: launches, unknown kernels, skew between ranks, message sizes, memory held."""
    found = []
    if signals.launch_bound_frac is not None:
        late = percent(signals.launch_bound_frac)
        claim = f"{late} of the idle time of known cause comes of launches that came after the device had drained."
        found.append(
            fraction_evidence("launch-bound", claim, signals.launch_bound_frac, "measured", "summary.launch_bound_frac")
        )
    found += _bubble_evidence(summary)
    if signals.shares.unclassified > 0:
        unclassified = percent(signals.shares.unclassified)
        claim = f"{_events(signals)} that no rule could classify take {unclassified} of {_span(signals)}."
        found.append(
            fraction_evidence("unclassified", claim, signals.shares.unclassified, "measured", "summary.unclassified_ns")
        )
    # the rows of an operator table name the costliest operators that are identified
    if summary.top_kernels and summary.window_ns and (signals.ops is None or not signals.ops.resolved):
        top = summary.top_kernels[0]
        share = top.total_ns / summary.window_ns
        name = quoted(top.name)
        costliest = f"The costliest {'kernel' if signals.device else 'host operator'}, '{name}' ({top.kind}),"
        claim = f"{costliest} runs {top.count} times, {percent(share)} of the window."
        found.append(fraction_evidence("top-kernel", claim, share, "measured", "summary.top_kernels[0]"))
    if signals.device and signals.skew > 0.01:
        claim = f"Ranks compute {percent(signals.skew)} of the window less than the busiest rank on average."
        found.append(fraction_evidence("skew", claim, signals.skew, "measured", "summary.ranks[].compute_ns"))
    if signals.small_message_frac > 0.05:
        claim = f"{percent(signals.small_message_frac)} of exposed collective time moves messages below 256 KiB."
        found.append(
            fraction_evidence(
                "small-messages", claim, signals.small_message_frac, "measured", "summary.collectives[].message_bytes"
            )
        )
    if signals.memory_used_frac is not None:
        claim = f"The fullest rank held {percent(signals.memory_used_frac)} of its device memory at its peak."
        found.append(
            fraction_evidence(
                "memory-high-water",
                claim,
                signals.memory_used_frac,
                "measured",
                "summary.ranks[].memory_high_water_bytes",
            )
        )
    return tuple(found)


def _bubble_evidence(summary: TraceSummary) -> list[Evidence]:
    """What pipeline stages wait for one another, idle or in a transfer, beside what their schedule leaves at best."""
    bubbles = [rank.bubble for rank in summary.ranks if rank.bubble is not None]
    if not bubbles:
        return []
    share = sum(bubble.bubble_ns for bubble in bubbles) / sum(bubble.window_ns for bubble in bubbles)
    ideals = {bubble.ideal_frac for bubble in bubbles}
    ideal = ideals.pop() if len(ideals) == 1 else None
    # a stage that is done before the others waits for them outside of what is measured here
    best = "" if ideal is None else f"; 1F1B leaves {percent(ideal)} of a whole step at best"
    claim = (
        f"Pipeline stages wait for one another {percent(share)} of the measured steps, between their first and their "
        f"last work in each{best}."
    )
    return [fraction_evidence("bubble", claim, share, "measured", "summary.ranks[].bubble.bubble_ns")]


def limit_evidence(signals: Signals, verdict: Verdict) -> tuple[Evidence, ...]:
    """What limits matrix kernels, of the whole pass and of one expert, where that is known."""
    found = _row_evidence(signals, verdict.matrix, "", "A pass of {rows:.0f} tokens gives matrix kernels")
    if signals.expert_rows is not None and signals.kinds.get("moe"):
        found += _row_evidence(signals, verdict.experts, "-experts", "Some {rows:.0f} rows an expert give its kernels")
    return found


def _row_evidence(signals: Signals, limit: MatrixLimit, suffix: str, subject: str) -> tuple[Evidence, ...]:
    subject = subject.format(rows=limit.rows or 0)
    if limit.basis == "roofline" and signals.chip is not None:
        intensity, ridge = limit.intensity_flop_per_byte or 0.0, limit.ridge_flop_per_byte or 0.0
        side = "below" if limit.limiter == "hbm" else "above"
        claim = (
            f"{subject} at most {intensity:.0f} FLOP/byte, {side} the {ridge:.0f} FLOP/byte ridge of {signals.chip.id}."
        )
        source: EvidenceSource = "catalogue" if signals.dtype else "assumed"
        ref = f"catalog.chips[{signals.chip.id}]"
        return (
            Evidence(id=f"ev-roofline{suffix}", claim=claim, value=intensity, unit="FLOP/byte", source=source, ref=ref),
        )
    if limit.basis == "rows":
        claim = f"{subject} so few uses of every weight that reading weights limits them."
        ref = "summary.implied.shapes.tokens" if signals.source == "measured" else "projection.plan"
        return (
            Evidence(id=f"ev-rows{suffix}", claim=claim, value=limit.rows, unit="rows", source=signals.source, ref=ref),
        )
    if limit.basis == "phase" and not suffix and signals.device:
        claim = "Matrix kernels of training are taken as limited by arithmetic; no shape in the trace says otherwise."
        return (Evidence(id="ev-training-matrix", claim=claim, source="assumed", ref="summary.implied.phase"),)
    return ()
