"""Analyzer: from a trace summary, or a projected step, to a diagnosis whose every sentence rests on evidence."""

from agents.diagnosis_parts import CollectiveShare
from agents.findings import Diagnosis, Evidence
from agents.planning.capacity import capacity_of
from agents.planning.categories import categories_of, covered
from agents.planning.collective_shares import collective_shares, projected_collectives
from agents.planning.diagnosis_limits import convention, trace_limits
from agents.planning.diagnosis_text import summary_text, window_words
from agents.planning.headroom import headroom_of
from agents.planning.hypothesis import hypothesis_basis, overturned_by
from agents.planning.idle_causes import idle_evidence
from agents.planning.op_evidence import op_evidence
from agents.planning.pattern_evidence import pattern_evidence
from agents.planning.rank_evidence import rank_evidence
from agents.planning.share_evidence import fraction_evidence, limit_evidence, share_evidence, trace_only_evidence
from agents.planning.signals import Signals, signals_of_breakdown, signals_of_trace
from agents.planning.step_limits import step_limits
from agents.planning.verdict import Verdict, judge
from agents.planning.work_evidence import work_evidence
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
    limits = (*trace_limits(signals, verdict), *step_limits(summary))
    return _diagnosis(signals, verdict, evidence, limits, collective_shares(summary, signals), summary)


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
    limits = (
        "no trace was given: the shares are projected by the cost model, not measured",
        *convention(verdict),
        *verdict.doubts,
    )
    return _diagnosis(signals, verdict, evidence, limits, projected_collectives(signals), None)


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
        abstained=True,
    )


def _diagnosis(
    signals: Signals,
    verdict: Verdict,
    evidence: tuple[Evidence, ...],
    limits: tuple[str, ...],
    collectives: tuple[CollectiveShare, ...],
    summary: TraceSummary | None,
) -> Diagnosis:
    categories = categories_of(summary, signals, verdict, collectives)
    return Diagnosis(
        source=signals.source,
        bottleneck=verdict.bottleneck,
        cause=verdict.cause,
        hypothesis=verdict.hypothesis,
        overturned=verdict.hypothesis != verdict.bottleneck,
        scores=verdict.scores,
        shares=signals.shares,
        window=window_words(signals),
        margin=verdict.margin,
        ambiguous=bool(verdict.doubts),
        summary=summary_text(signals, verdict),
        evidence=evidence,
        limits=limits,
        abstained=verdict.abstained,
        hypothesis_basis=hypothesis_basis(signals, verdict),
        overturned_by=overturned_by(signals, verdict),
        categories=categories,
        categories_cover_frac=covered(categories) if categories else None,
        collectives=collectives if signals.device else (),
        headroom=headroom_of(signals, verdict),
        capacity=capacity_of(signals),
    )
