"""Anchoring a job: what its trace measured of the current plan corrects the projections of all plans, or why not.

Training only: a window of a serving engine mixes prefill and decode, and is no step of a known workload. What sets the
size of a step (sequence length, global batch, the current plan itself) must be stated or seen, not assumed.
"""

from collections.abc import Sequence
from statistics import median

from agents.planning.anchor_evidence import anchor_evidence
from agents.planning.idle_causes import idle_causes
from agents.planning.job import Job
from agents.planning.measured_links import projected_ratio
from agents.request import PlanRequest
from projector import catalog
from projector.anchor.measured_step import IdleShares, LinkRatio, LinkTier, MeasuredStep
from projector.anchor.ratios import anchor_of
from projector.project import project_many
from projector.specs.plan_batch import PlanBatch
from projector.units import ns_to_s
from traces.cross_rank.placed import judged
from traces.summary import complete_steps
from traces.summary_types import TraceSummary

SIZES = ("workload.seq_len", "workload.global_batch")
LEAST_KNOWN_IDLE = 0.5
# below half of what it should reach a link is degraded, and the chip is projected with it as it is
LEAST_LINK_RATIO = 0.5


def anchored_job(job: Job, request: PlanRequest, summary: TraceSummary | None) -> Job:
    """The job with what corrects its projections, its evidence, and aloud what could not be used."""
    if summary is None or job.mode != "absolute" or job.measured is None or job.phase != "training":
        return job
    reason = _unusable(job, request, summary)
    if reason is not None:
        return _unanchored(job, reason)
    assert job.current is not None
    assert job.architecture is not None
    hardware = job.hardware
    assert hardware is not None
    plans = PlanBatch.from_plans([job.current])
    now = project_many(plans, job.workload, job.architecture, job.cluster, hardware, software=job.software)
    anchor = anchor_of(now, _step(job, summary))
    if isinstance(anchor, str):
        return _unanchored(job, anchor)
    return job.model_copy(
        update={
            "anchor": anchor,
            "evidence": (*job.evidence, *anchor_evidence(anchor)),
            "warnings": (*job.warnings, *(f"anchoring: {line}" for line in anchor.told)),
        }
    )


def _unanchored(job: Job, reason: str) -> Job:
    line = f"projections are not corrected by the trace: {reason}"
    return job.model_copy(update={"warnings": (*job.warnings, line)})


def _unusable(job: Job, request: PlanRequest, summary: TraceSummary) -> str | None:
    """Why the measured window is no step of the current plan that a projection could be held against."""
    if job.current is None:
        return "the layout it was recorded with is not known; state current_plan"
    if job.current_source == "assumed":
        return "the layout it was recorded with is assumed; state current_plan"
    settled = _batch_of_the_plan(request)
    open_sizes = [one.field for one in job.assumptions if one.field in SIZES and one.field not in settled]
    if open_sizes:
        return f"{' and '.join(open_sizes)} of the recorded steps are assumed; state them"
    if not any(complete_steps(rank) for rank in summary.ranks):
        return "it marks no training step; profile with step marks"
    return None


def _batch_of_the_plan(request: PlanRequest) -> tuple[str, ...]:
    """A stated plan that says how many sequences a step takes says the global batch."""
    plan = request.current_plan
    stated = plan is not None and {"micro_batch", "grad_accum"} <= plan.model_fields_set
    return ("workload.global_batch",) if stated else ()


def _step(job: Job, summary: TraceSummary) -> MeasuredStep:
    assert job.measured is not None
    statistics = [rank.step_statistics for rank in summary.ranks if rank.step_statistics is not None]
    spreads = [one.deviation_ns for one in statistics if one.deviation_ns is not None]
    return MeasuredStep(
        total_s=job.measured.total_s,
        breakdown=job.measured,
        steps=max(len(complete_steps(rank)) for rank in summary.ranks),
        deviation_s=ns_to_s(median(spreads)) if spreads else None,
        idle=_idle_shares(summary),
        links=_links(summary, job),
    )


def _idle_shares(summary: TraceSummary) -> IdleShares | None:
    """Causes as shares of the idle time whose cause is known; None where that is the smaller part."""
    found = idle_causes(summary, of_steps=True)
    if found is None or found.unknown > LEAST_KNOWN_IDLE:
        return None
    known = 1.0 - found.unknown
    pauses = min(found.apart, found.host_bound)
    return IdleShares(
        launches=(found.launching - pauses) / known, pauses=pauses / known, waiting=found.dependency / known
    )


def _links(summary: TraceSummary, job: Job) -> tuple[LinkRatio, ...]:
    """The median link of each tier that is in order, waiting removed; no measurement raises what is projected."""
    assert job.chip_known
    hardware = catalog.chip(job.cluster.chip)
    degraded = {link.tier for link in job.measured_links}
    by_tier: dict[LinkTier, list[tuple[float, int]]] = {"inside": [], "across": []}
    for link in judged(summary.links, hardware):
        ratio = None if link.tier in degraded or not link.waiting_removed else projected_ratio(link, hardware)
        if ratio is not None and ratio >= LEAST_LINK_RATIO:
            by_tier["inside" if link.tier == "scale_up" else "across"].append((ratio, link.collectives))
    return tuple(_median_link(tier, found) for tier, found in by_tier.items() if found)


def _median_link(tier: LinkTier, found: Sequence[tuple[float, int]]) -> LinkRatio:
    return LinkRatio(
        tier=tier, ratio=min(median(ratio for ratio, _ in found), 1.0), collectives=sum(count for _, count in found)
    )
