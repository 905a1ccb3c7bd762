"""Scoring: each chosen plan on its own cluster and on the compared chips, how sure that is, and what could go wrong."""

from collections.abc import Sequence

from agents.advisors.protocol import Candidate, Note, Pick
from agents.findings import Diagnosis, Proposal
from agents.planning.adoption import adoption_text
from agents.planning.axis_links import axis_links
from agents.planning.confidence import confidence
from agents.planning.experiment import experiment_of, stop_condition
from agents.planning.job import Job
from agents.planning.note_disputes import cited
from agents.planning.numerics import numerics_changed
from agents.planning.proposal import Proposed
from agents.planning.reference import Reference
from agents.planning.scores import score_one
from agents.planning.trail import Trail, trails_of
from agents.planning.worse import worsenings
from agents.wording import duration, percent
from projector import catalog
from projector.anchor.anchored_batch import AnchoredBatch
from projector.breakdown import Projection
from projector.legality import check, memory_rejection
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan

# what is left of a gain in the worst case: below, the reader is told
RISKY_SHARE = 0.75
DTYPE_FIELDS = ("compute_dtype", "weight_dtype", "kv_cache_dtype")


def proposals_of(
    job: Job, diagnosis: Diagnosis, proposed: Proposed, reference: Reference | None
) -> tuple[Proposal, ...]:
    """The chosen candidates as proposals, in rank order."""
    if reference is None:
        return ()
    trails = trails_of([candidate.plan for candidate in proposed.candidates], job, reference)
    chosen = zip(proposed.candidates, proposed.picks, trails, strict=True)
    return tuple(
        _proposal(rank, candidate, pick, trail, proposed.notes, diagnosis, reference, job)
        for rank, (candidate, pick, trail) in enumerate(chosen, start=1)
    )


def _proposal(
    rank: int,
    candidate: Candidate,
    pick: Pick,
    trail: Trail,
    notes: Sequence[Note],
    diagnosis: Diagnosis,
    reference: Reference,
    job: Job,
) -> Proposal:
    projections, portability = _elsewhere(candidate.plan, job)
    sure = confidence(candidate, diagnosis, job)
    numerics = numerics_changed(reference.plan, candidate.plan)
    return Proposal(
        rank=rank,
        title=candidate.title,
        plan=candidate.plan,
        mesh=candidate.plan.mesh(),
        mesh_note=_mesh_note(candidate.plan),
        changes=candidate.changes,
        rationale=pick.rationale,
        written_by=pick.written_by,
        expected=candidate.expected,
        evidence=pick.evidence,
        citations=cited(pick.citations, candidate, notes),
        projections=(candidate.projection, *projections),
        risks=(
            *pick.risks,
            *_queue_risks(candidate.projection, job),
            *_fabric_risks(candidate.plan, job),
            *_anchor_risks(candidate, job),
            *portability,
        ),
        confidence=sure.value,
        confidence_basis=sure.basis,
        confidence_calibrated=sure.calibrated,
        adoption_effort=candidate.effort,
        adoption=adoption_text(reference.plan, candidate.plan, candidate.effort, job, runs=reference.is_current),
        relieves=candidate.resource,
        enlarges=candidate.enlarges,
        numerics=numerics,
        trail=trail.steps,
        trail_note=trail.note,
        links=axis_links(candidate.projection, job),
        worse=worsenings(candidate.plan, candidate.projection, reference, candidate.effort, job),
        experiment=experiment_of(candidate, reference, job),
        stop_condition=stop_condition(candidate, reference, numerics, job),
    )


def _mesh_note(plan: ParallelismPlan) -> str:
    if plan.mesh() is not None:
        return ""
    axes = [name for name, degree in (("pipeline stages", plan.pp), ("expert parallelism", plan.ep)) if degree > 1]
    return f"a (replica, data, seq, model) mesh has no axis for {' and '.join(axes)}"


def _queue_risks(projection: Projection, job: Job) -> list[str]:
    """Requests in flight beyond what the KV cache holds: they wait, and the time to the first token shows it."""
    wanted, held = job.workload.concurrency, projection.max_concurrency
    if wanted is None or held is None or held >= wanted:
        return []
    return [f"The KV cache holds {held:,.0f} of {wanted:,} requests in flight; the others wait before they start."]


def _fabric_risks(plan: ParallelismPlan, job: Job) -> list[str]:
    """Axes that talk in every layer and leave the fast domain."""
    hardware = job.hardware
    if hardware is None:
        return []
    domain = hardware.intra.max_domain_chips * hardware.devices_per_chip
    return [
        f"{name} {degree} spans more than the {domain} devices of one {hardware.intra.name} domain."
        for name, degree in (("Tensor parallelism", plan.tp), ("Expert parallelism", plan.ep))
        if degree > domain
    ]


def _anchor_risks(candidate: Candidate, job: Job) -> list[str]:
    """What would be left of a gain if everything that the trace shows slower than modelled were so here too."""
    if job.anchor is None or candidate.keeps:
        return []
    scores = score_one(candidate.plan, job).projections
    assert isinstance(scores, AnchoredBatch)
    measured_s, in_full_s = job.anchor.measured.total_s, float(scores.in_full_s[0])
    gain, left = 1 - candidate.step_time_s / measured_s, 1 - in_full_s / measured_s
    if gain <= 0 or left > RISKY_SHARE * gain:
        return []
    what = f"a gain of {percent(left)}" if left > 0 else f"a loss of {percent(-left)}"
    return [
        f"Part of the gain is that the current plan is slower than modelled; were this plan as much slower, it would "
        f"take {duration(in_full_s)}, {what} in step time."
    ]


def _elsewhere(plan: ParallelismPlan, job: Job) -> tuple[list[Projection], list[str]]:
    """Projections of the plan on the compared chips with as many devices, and a line a chip where it cannot run."""
    if not job.compare:
        return [], []
    architecture = job.architecture
    if architecture is None:
        return [], [f"The model is unknown, so there is no projection on {', '.join(job.compare)}."]
    projections, lines = [], []
    for name in job.compare:
        projection, line = _on_chip(plan, job, architecture, catalog.chip(name))
        projections += [projection] if projection else []
        lines += [line] if line else []
    return projections, lines


def _on_chip(
    plan: ParallelismPlan, job: Job, architecture: ModelArchitecture, hardware: HardwareProfile
) -> tuple[Projection | None, str]:
    """The plan on another chip; its refusal where it is not legal there or does not fit. Only dtypes are adapted."""
    if job.devices % hardware.devices_per_chip:
        per_chip = hardware.devices_per_chip
        return (
            None,
            f"On {hardware.id}: {job.devices} devices are no whole number of chips ({per_chip} devices a chip).",
        )
    cluster = ClusterSpec(chip=hardware.id, chips=job.devices // hardware.devices_per_chip)
    adapted = plan
    broken = check(plan, job.workload, architecture, cluster, hardware)
    if broken:
        adapted = _with_offered_dtypes(plan, hardware)
        if check(adapted, job.workload, architecture, cluster, hardware):
            return None, f"On {hardware.id} the plan is not legal: {'; '.join(rejection.text for rejection in broken)}."
    projection = project(adapted, job.workload, architecture, cluster, hardware, software=job.software)
    memory = memory_rejection(projection)
    if memory is not None:
        return projection, f"On {hardware.id} the plan does not fit: {memory.text}."
    if adapted != plan:
        return projection, f"On {hardware.id} it is projected with bf16 where the chip lacks the plan's dtype."
    return projection, ""


def _with_offered_dtypes(plan: ParallelismPlan, hardware: HardwareProfile) -> ParallelismPlan:
    missing = [field for field in DTYPE_FIELDS if getattr(plan, field) not in hardware.peak_flop_per_s]
    return plan.model_copy(update=dict.fromkeys(missing, "bf16")) if missing else plan
