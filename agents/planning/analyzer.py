"""Analyzer: from a trace summary, or a projected step, to a diagnosis whose every sentence rests on evidence."""

from collections.abc import Mapping
from typing import TypeVar

from agents.causes import AXIS_PHRASE, CAUSE_PHRASE
from agents.findings import Diagnosis, Evidence, EvidenceSource, Shares
from agents.planning.signals import Signals, signals_of_breakdown, signals_of_trace
from agents.planning.verdict import FULL_MEMORY_FRAC, MATRIX_KINDS, MatrixLimit, Verdict, judge
from agents.wording import duration, percent, quoted
from projector.breakdown import Axis, MemoryBreakdown, OperatorKind, TimeBreakdown
from projector.specs.bottleneck import BOTTLENECK_OF
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import Dtype, Phase
from projector.units import ns_to_ms, ns_to_s
from traces.summary_types import TraceSummary

EXPOSED_WORDS = "Communication that no kernel hides takes {} of"

K = TypeVar("K", OperatorKind, Axis)


def diagnose(summary: TraceSummary) -> Diagnosis:
    """Diagnosis of a measured window.

    Exposed shares decide, so communication that compute hides is never the bottleneck. The result depends on ratios
    only: doubling every time changes nothing but the one evidence that states the window's length.
    """
    signals = signals_of_trace(summary)
    verdict = judge(signals)
    ranks = f", summed over {len(summary.ranks)} ranks" if len(summary.ranks) > 1 else ""
    evidence = (
        Evidence(
            id="ev-window",
            claim=f"The window '{quoted(summary.window.name)}' lasts {duration(ns_to_s(summary.window_ns))}{ranks}.",
            value=ns_to_ms(summary.window_ns),
            unit="ms",
            source="measured",
            ref="summary.window_ns",
        ),
        *_share_evidence(signals, "summary" if signals.step_cover is None else "summary.ranks[].steps[]"),
        *_trace_only_evidence(summary, signals),
        *_limit_evidence(signals, verdict),
    )
    return _diagnosis(signals, verdict, evidence, _trace_limits(signals, verdict))


def diagnose_breakdown(
    breakdown: TimeBreakdown,
    *,
    phase: Phase = "training",
    pass_tokens: int | None = None,
    expert_rows: float | None = None,
    dtype: Dtype | None = None,
    chip: HardwareProfile | None = None,
    memory: MemoryBreakdown | None = None,
) -> Diagnosis:
    """Diagnosis of a projected step, labelled modelled.

    pass_tokens: rows of one forward pass on one device; expert_rows: rows of it that one expert sees.
    """
    signals = signals_of_breakdown(
        breakdown,
        phase=phase,
        pass_tokens=pass_tokens,
        expert_rows=expert_rows,
        dtype=dtype,
        chip=chip,
        memory=memory,
    )
    verdict = judge(signals)
    evidence = (*_share_evidence(signals, "projection.breakdown"), *_limit_evidence(signals, verdict))
    if memory is not None:
        used = memory.total_bytes / memory.capacity_bytes
        evidence += (
            _fraction(
                "memory-modelled",
                f"The plan is projected to need {percent(used)} of the device memory.",
                used,
                "modelled",
                "projection.memory",
            ),
        )
    limits = ("no trace was given: the shares are projected by the cost model, not measured", *verdict.doubts)
    return _diagnosis(signals, verdict, evidence, limits)


def undiagnosed(reason: str) -> Diagnosis:
    """The answer where there is nothing to diagnose: no cause, no certainty, the reason as its limit."""
    nothing = Shares(compute=0, exposed_communication=0, exposed_copy=0, idle=1, hidden_communication=0, unclassified=0)
    return Diagnosis(
        source="modelled",
        bottleneck=BOTTLENECK_OF["unknown"],
        cause="unknown",
        hypothesis=BOTTLENECK_OF["unknown"],
        overturned=False,
        scores={"compute": 0.0, "memory": 0.0, "communication": 0.0},
        shares=nothing,
        margin=0.0,
        ambiguous=True,
        summary=f"No bottleneck can be named: {reason}.",
        evidence=(),
        limits=(reason,),
    )


def _diagnosis(
    signals: Signals, verdict: Verdict, evidence: tuple[Evidence, ...], limits: tuple[str, ...]
) -> Diagnosis:
    return Diagnosis(
        source=signals.source,
        bottleneck=verdict.bottleneck,
        cause=verdict.cause,
        hypothesis=verdict.hypothesis,
        overturned=verdict.hypothesis != verdict.bottleneck,
        scores=verdict.scores,
        shares=signals.shares,
        window=_window_words(signals),
        margin=verdict.margin,
        ambiguous=bool(verdict.doubts),
        summary=_summary(signals, verdict),
        evidence=evidence,
        limits=limits,
    )


def _fraction(name: str, claim: str, value: float, source: EvidenceSource, ref: str) -> Evidence:
    return Evidence(id=f"ev-{name}", claim=claim, value=value, unit="fraction", source=source, ref=ref)


def _share_evidence(signals: Signals, root: str) -> tuple[Evidence, ...]:
    """The window identity, kernels by kind, communication by axis. root: where the shares stand, down to the field."""
    shares, source, span = signals.shares, signals.source, _span(signals)
    suffix, whole = ("_ns", "summary") if source == "measured" else ("_s", root)
    hidden = shares.hidden_communication
    rows = [
        ("compute", "compute", shares.compute, "Kernels run {} of"),
        ("exposed-communication", "exposed_communication", shares.exposed_communication, EXPOSED_WORDS),
        ("hidden-communication", "communication", hidden, "Communication under kernels takes {} of"),
        ("exposed-copy", "exposed_copy", shares.exposed_copy, "Copies that nothing hides take {} of"),
        ("idle", "idle", shares.idle, "The device is idle {} of"),
    ]
    found = [
        _fraction(name, f"{words.format(percent(value))} {span}.", value, source, f"{root}.{field}{suffix}")
        for name, field, value, words in rows
        if value or name != "hidden-communication"
    ]
    kinds, axes = ("kernel_classes", "collectives") if source == "measured" else ("by_kind", "by_axis")
    for kind, share in _largest_first(signals.kinds):
        claim = f"Kernels of kind {kind} take {percent(share)} of {span}."
        found.append(_fraction(f"kind-{kind}", claim, share, source, f"{whole}.{kinds}[kind={kind}]"))
    for axis, share in _largest_first(signals.axes_exposed):
        claim = f"{AXIS_PHRASE[axis].capitalize()} communication is exposed for {percent(share)} of {span}."
        found.append(_fraction(f"axis-{axis}", claim, share, source, f"{whole}.{axes}[axis={axis}]"))
    return tuple(found)


def _largest_first(shares: Mapping[K, float]) -> list[tuple[K, float]]:
    """What has a share at all, the largest first, equal ones by name."""
    return sorted(((name, share) for name, share in shares.items() if share > 0), key=lambda item: (-item[1], item[0]))


def _span(signals: Signals) -> str:
    if signals.source == "modelled":
        return "the step"
    return "the window" if signals.step_cover is None else "the marked steps"


def _trace_only_evidence(summary: TraceSummary, signals: Signals) -> tuple[Evidence, ...]:
    found = []
    if signals.launch_bound_frac is not None:
        late = percent(signals.launch_bound_frac)
        claim = f"{late} of the idle time ends with a launch that came after the device had drained."
        found.append(
            _fraction("launch-bound", claim, signals.launch_bound_frac, "measured", "summary.launch_bound_frac")
        )
    if signals.shares.unclassified > 0:
        claim = f"Kernels that no rule could classify take {percent(signals.shares.unclassified)} of {_span(signals)}."
        found.append(
            _fraction("unclassified", claim, signals.shares.unclassified, "measured", "summary.unclassified_ns")
        )
    if summary.top_kernels and summary.window_ns:
        top = summary.top_kernels[0]
        share = top.total_ns / summary.window_ns
        name = quoted(top.name)
        claim = f"The costliest kernel, '{name}' ({top.kind}), runs {top.count} times, {percent(share)} of the window."
        found.append(_fraction("top-kernel", claim, share, "measured", "summary.top_kernels[0]"))
    if signals.skew > 0.01:
        claim = f"Ranks compute {percent(signals.skew)} of the window less than the busiest rank on average."
        found.append(_fraction("skew", claim, signals.skew, "measured", "summary.ranks[].compute_ns"))
    if signals.small_message_frac > 0.05:
        claim = f"{percent(signals.small_message_frac)} of exposed collective time moves messages below 256 KiB."
        found.append(
            _fraction(
                "small-messages", claim, signals.small_message_frac, "measured", "summary.collectives[].message_bytes"
            )
        )
    if signals.memory_used_frac is not None:
        claim = f"The fullest rank held {percent(signals.memory_used_frac)} of its device memory at its peak."
        found.append(
            _fraction(
                "memory-high-water",
                claim,
                signals.memory_used_frac,
                "measured",
                "summary.ranks[].memory_high_water_bytes",
            )
        )
    return tuple(found)


def _limit_evidence(signals: Signals, verdict: Verdict) -> tuple[Evidence, ...]:
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
    if limit.basis == "phase" and not suffix:
        claim = "Matrix kernels of training are taken as limited by arithmetic; no shape in the trace says otherwise."
        return (Evidence(id="ev-training-matrix", claim=claim, source="assumed", ref="summary.implied.phase"),)
    return ()


def _trace_limits(signals: Signals, verdict: Verdict) -> tuple[str, ...]:
    limits = list(verdict.doubts)
    if signals.device and signals.chip is None:
        named = (
            f"'{quoted(signals.chip_name)}' is not in the catalogue" if signals.chip_name else "the trace names no chip"
        )
        limits.append(f"{named}: no statement about where kernels stand against a roofline")
    elif signals.device and verdict.matrix.basis != "roofline":
        limits.append(
            "the trace shows no tokens a pass: no statement about where matrix kernels stand against a roofline"
        )
    if verdict.matrix.basis == "nothing" and any(signals.kinds.get(kind) for kind in MATRIX_KINDS):
        limits.append(
            "whether arithmetic or HBM bandwidth limits matrix kernels is not known; they are counted as compute"
        )
    if signals.prefill_only:
        limits.append("the recorded steps prefill prompts and decode nothing: what is said of decode is modelled")
    if verdict.cause == "launch_bound":
        limits.append("a host that waits for input looks like slow launches here; the host side of the trace decides")
    if (signals.memory_used_frac or 0.0) > FULL_MEMORY_FRAC:
        limits.append(
            f"memory is {percent(signals.memory_used_frac or 0.0)} full; allocator retries can slow such a run"
        )
    if signals.shares.unclassified > signals.shares.compute / 4:
        limits.append(f"{percent(signals.shares.unclassified)} of the window is in kernels that no rule could classify")
    if signals.step_cover is not None:
        limits.append(
            f"{percent(1 - signals.step_cover)} of the recorded window lies outside the marked steps: left out"
        )
    return tuple(limits)


def _window_words(signals: Signals) -> str:
    if signals.source == "modelled":
        return "the projected step"
    return "the recorded window" if signals.step_cover is None else "the marked steps"


def _summary(signals: Signals, verdict: Verdict) -> str:
    """Two or three sentences: the verdict, what it rests on, and whether the headline was overturned."""
    shares = signals.shares
    if not signals.device:
        return (
            "No device event was recorded, so no bottleneck of the accelerator can be named. "
            "Profile with device activity enabled."
        )
    hidden = f" ({percent(shares.hidden_communication)} more is hidden)" if shares.hidden_communication > 0.005 else ""
    sentences = [
        f"The bottleneck of {_window_words(signals)} is {CAUSE_PHRASE[verdict.cause]} (class {verdict.bottleneck}).",
        f"Kernels run {percent(shares.compute)} of the time, exposed communication takes "
        f"{percent(shares.exposed_communication)}{hidden}, exposed copies {percent(shares.exposed_copy)}, "
        f"and the device is idle {percent(shares.idle)}.",
    ]
    if verdict.cause == "launch_bound" and signals.launch_bound_frac is not None:
        sentences.append(
            f"{percent(signals.launch_bound_frac)} of the idle time ends with a launch that came too late, "
            "so the host, not the accelerator, sets the pace."
        )
    if verdict.hypothesis != verdict.bottleneck:
        sentences.append(f"The headline alone suggests {verdict.hypothesis}; the operators overturn it.")
    if verdict.doubts:
        sentences.append("The verdict is ambiguous.")
    return " ".join(sentences)
