"""Analyzer: from a trace summary, or a projected step, to a diagnosis whose every sentence rests on evidence."""

from agents.causes import CAUSE_PHRASE, PREFILL_ONLY
from agents.findings import Diagnosis, Evidence
from agents.planning.idle_causes import HALF, IdleCauses, idle_evidence
from agents.planning.op_evidence import op_evidence
from agents.planning.pattern_evidence import pattern_evidence
from agents.planning.rank_evidence import rank_evidence
from agents.planning.share_evidence import fraction_evidence, limit_evidence, share_evidence, trace_only_evidence
from agents.planning.signals import Signals, signals_of_breakdown, signals_of_trace
from agents.planning.step_limits import step_limits
from agents.planning.verdict import FULL_MEMORY_FRAC, MATRIX_KINDS, Verdict, judge, matrix_limits_known
from agents.planning.work_evidence import work_doubts, work_evidence
from agents.wording import duration, percent, quoted
from projector.breakdown import MemoryBreakdown, TimeBreakdown
from projector.specs.bottleneck import BOTTLENECK_OF
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ComputeDtype, Phase
from projector.units import ns_to_ms, ns_to_s
from traces.summary_types import TraceSummary


def diagnose(summary: TraceSummary) -> Diagnosis:
    """Diagnosis of a measured window.

    Exposed shares decide, so communication that compute hides is never the bottleneck. The result depends on ratios
    only: doubling every time changes nothing but evidence that states a time: of the window, a step, idle causes.
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
        *op_evidence(signals.ops),
        *share_evidence(signals, "summary" if signals.step_cover is None else "summary.ranks[].steps[]"),
        *idle_evidence(summary, of_steps=signals.step_cover is not None),
        *trace_only_evidence(summary, signals),
        *rank_evidence(summary, signals.chip),
        *pattern_evidence(summary),
        *(() if verdict.by_rows else limit_evidence(signals, verdict)),
        *(() if verdict.by_rows else work_evidence(signals.work, signals.kinds)),
    )
    return _diagnosis(signals, verdict, evidence, (*_trace_limits(signals, verdict), *step_limits(summary)))


def diagnose_breakdown(
    breakdown: TimeBreakdown,
    *,
    phase: Phase = "training",
    pass_tokens: int | None = None,
    expert_rows: float | None = None,
    dtype: ComputeDtype | None = None,
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
    evidence = (*share_evidence(signals, "projection.breakdown"), *limit_evidence(signals, verdict))
    if memory is not None:
        used = memory.total_bytes / memory.capacity_bytes
        evidence += (
            fraction_evidence(
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
    return Diagnosis(
        source="modelled",
        bottleneck=BOTTLENECK_OF["unknown"],
        cause="unknown",
        hypothesis=BOTTLENECK_OF["unknown"],
        overturned=False,
        scores={"compute": 0.0, "memory": 0.0, "communication": 0.0},
        shares=None,
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


def _trace_limits(signals: Signals, verdict: Verdict) -> tuple[str, ...]:
    limits = list(verdict.doubts)
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
    if (signals.memory_used_frac or 0.0) > FULL_MEMORY_FRAC:
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
    name = f"The bottleneck of {_window_words(signals)} is {CAUSE_PHRASE[verdict.cause]} (class {verdict.bottleneck})."
    if verdict.cause == "unknown":
        idle = percent(shares.idle)
        name = (
            f"The device waits for {idle} of {_window_words(signals)}, and what for cannot be told: no class is shown."
        )
    sentences = [
        name,
        f"Kernels run {percent(shares.compute)} of the time, exposed communication takes "
        f"{percent(shares.exposed_communication)}{hidden}, exposed copies {percent(shares.exposed_copy)}, "
        f"and the device is idle {percent(shares.idle)}.",
    ]
    if verdict.cause in ("launch_bound", "host_idle") and signals.idle is not None:
        sentences.append(_idle_sentence(signals.idle))
    elif verdict.cause == "launch_bound" and signals.launch_bound_frac is not None:
        sentences.append(
            f"{percent(signals.launch_bound_frac)} of the idle time ends with a launch that came too late, "
            "so the host, not the accelerator, sets the pace."
        )
    if verdict.by_rows:
        sentences.append(_row_sentence(verdict))
    if verdict.hypothesis != verdict.bottleneck:
        sentences.append(f"The headline alone suggests {verdict.hypothesis}; the operators overturn it.")
    if verdict.doubts:
        sentences.append("The verdict is ambiguous.")
    return " ".join(sentences)


def _idle_sentence(idle: IdleCauses) -> str:
    if idle.host_bound < HALF * idle.launching:
        return (
            f"{percent(idle.launch_gap)} of the idle time lies between a launch and its start or between queued "
            "kernels: many short kernels, not a late host."
        )
    late = f"For {percent(idle.host_bound)} of the idle time the host had not issued the next work"
    if idle.apart < HALF * idle.launching:
        return f"{late}, one launch after another, so the host, not the accelerator, sets the pace."
    if idle.loading >= HALF * idle.launching:
        return f"{late}: it loaded input for {percent(idle.loading)} of the idle time."
    return f"{late}, and for {percent(idle.pausing)} of it no launch came for more than a millisecond."


def _row_sentence(verdict: Verdict) -> str:
    groups = verdict.groups
    return (
        f"Of the operators that the profile identifies and gives a limit of, those bound by the core take "
        f"{percent(groups['compute'])} of the step, those that HBM limits {percent(groups['memory'])}, and collectives "
        f"that wait for links or peers {percent(groups['communication'])}."
    )
