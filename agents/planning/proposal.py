"""Proposal: legal plans -> projected -> gates -> shortlist -> the advisor's three, beside what failed the gates."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agents.advisors.ask import ask
from agents.advisors.protocol import Advisor, AdvisorInput, Candidate, Note, Pick
from agents.causes import CAUSE_PHRASE, NOT_LAYOUT
from agents.findings import Diagnosis, Disagreement, DroppedSentence, LlmUsage, NearMiss
from agents.planning.citations import notes_for, shown_notes
from agents.planning.fixed_values import require_numerics_kept, require_possible
from agents.planning.history import past_question
from agents.planning.job import Job
from agents.planning.plan_text import plan_text
from agents.planning.practice import MOST_PAST, job_practice, proposed_rows, with_practice
from agents.planning.reference import Reference
from agents.planning.scores import Scores, feasible, scored_space
from agents.planning.shortlist import allowed, layout_rows, lever_views, shortlist
from agents.planning.standings import noted_rows, with_standings
from agents.planning.state import Knowledge
from agents.practice.model import PracticeModel, shipped_model
from agents.wording import listed
from projector.legality import check, memory_rejection
from projector.levers import levers_for
from projector.specs.objective import Rejection, Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.record import Record

WANTED = 3
NEAR_MISSES = 3
MOST_GATED = 200


class Proposed(Record):
    """What the proposal step hands on. candidates and picks are in rank order and of equal length."""

    candidates: tuple[Candidate, ...] = ()
    picks: tuple[Pick, ...] = ()
    notes: tuple[Note, ...] = ()
    fewer_because: str | None = None
    near_misses: tuple[NearMiss, ...] = ()
    considered: int = Field(0, ge=0)
    feasible: int = Field(0, ge=0)
    advisor: Literal["rules", "llm"] = "rules"
    fallback_reason: str = ""
    usage: LlmUsage | None = None
    order_by: Literal["rules", "llm"] = "rules"
    dropped: tuple[DroppedSentence, ...] = ()
    disagreement: Disagreement | None = None
    shortlisted: tuple[str, ...] = Field((), description="id and title of each candidate, for the audit log")
    turns: tuple[tuple[str, ...], ...] = Field((), description="problems of each answer, for the audit log")
    refused: tuple[str, ...] = Field((), description="sentences left out, unvalidated, for the audit log alone")
    redacted: bool = False
    warnings: tuple[str, ...] = ()


def propose(
    job: Job,
    diagnosis: Diagnosis,
    reference: Reference | None,
    knowledge: Knowledge,
    advisor: Advisor,
    wanted_advisor: Literal["auto", "rules", "llm"],
    hidden: tuple[str, ...] = (),
    model: PracticeModel | None = None,
) -> Proposed:
    """Three plans; fewer only where fewer distinct plans pass the gates, with the reason and the nearest misses.

    model: how likely layouts are to be adopted; None: as the product ships it.
    InvalidDescription where a fixed value leaves no legal plan and there would be one without it.
    """
    if job.not_plannable is not None:
        return Proposed()
    if job.mode == "none":
        return Proposed(fewer_because=_unscorable(job))
    if job.mode == "relative" and job.slo != Slo():
        return Proposed(fewer_because="latency budgets cannot be checked while the model or the chip is unknown")
    space, scores = scored_space(job)
    if reference is None or scores is None:
        require_possible(job)
        return _nothing_legal(job)
    batch, passing = space.plans, feasible(scores, job)
    require_numerics_kept(batch, job, reference)
    past = knowledge.past(past_question(job, diagnosis), k=MOST_PAST) if job.phase == "training" else ()
    practice = job_practice(job, scores, passing & allowed(batch, job, reference), past, model or shipped_model())
    likely = proposed_rows(practice)
    found = shortlist(scores, passing, job, reference, diagnosis.cause, also=likely)
    retrieved = notes_for(job, diagnosis, lever_views(found), knowledge)
    noted = noted_rows(scores, layout_rows(scores, passing, job, reference), retrieved, job, reference)
    found = shortlist(scores, passing, job, reference, diagnosis.cause, also=[*noted, *likely]) if noted else found
    found = with_practice(found, practice)
    found = with_standings(found, retrieved.notes, retrieved.rules, job, diagnosis.cause)
    notes = shown_notes(retrieved, found)
    question = AdvisorInput(
        phase=job.phase,
        objective=job.target,
        diagnosis=diagnosis,
        reference_label=reference.label,
        reference_is_current=reference.is_current,
        reference=reference.projection,
        reference_step_time_s=reference.step_time_s,
        anchored=reference.anchored,
        goal=job.goal,
        layout_relieves=diagnosis.cause not in NOT_LAYOUT,
        levers=lever_views(found),
        candidates=found,
        notes=notes,
        wanted=min(WANTED, len(found)),
        hidden=hidden,
    )
    asked = ask(question, advisor, wanted_advisor)
    by_id = {candidate.id: candidate for candidate in found}
    misses = _near_misses(scores, passing, job) if len(found) < WANTED else ()
    return Proposed(
        candidates=tuple(by_id[pick.candidate] for pick in asked.choice.picks),
        picks=asked.choice.picks,
        notes=notes,
        fewer_because=_fewer(len(found), len(batch), misses) if len(found) < WANTED else None,
        near_misses=misses,
        considered=len(batch),
        feasible=int(passing.sum()),
        advisor=asked.advisor,
        fallback_reason=asked.fallback_reason,
        usage=asked.usage,
        order_by=asked.order_by,
        dropped=asked.dropped,
        disagreement=asked.disagreement,
        shortlisted=tuple(f"{candidate.id} {candidate.title}" for candidate in found),
        turns=asked.turns,
        refused=asked.refused,
        redacted=bool(hidden) and asked.usage is not None,
        warnings=(*space.notes, *job.slo.unanswered, *_forbidden_levers(job, diagnosis)),
    )


def _forbidden_levers(job: Job, diagnosis: Diagnosis) -> tuple[str, ...]:
    """Levers that would relieve the cause and were left alone because they change numerics."""
    if job.constraints.allow_numerics_changes:
        return ()
    names = [lever.name.replace("_", " ") for lever in levers_for(diagnosis.cause, job.phase) if lever.numerics]
    if not names:
        return ()
    return (
        f"not tried, as numerics would change: {listed(names)}, which may relieve {CAUSE_PHRASE[diagnosis.cause]}; "
        "constraints.allow_numerics_changes opens this",
    )


def _near_misses(scores: Scores, passing: NDArray[np.bool_], job: Job) -> tuple[NearMiss, ...]:
    """Plans of distinct layouts that fail the gates by the least, the smallest summed overshoot first."""
    rows = np.flatnonzero(~passing)
    if rows.size > MOST_GATED:
        rows = rows[np.argsort(scores.projections.memory_bytes[rows], kind="stable")[:MOST_GATED]]
    slo_misses = scores.projections.slo_misses(job.slo)
    found: dict[tuple[int, ...], tuple[float, int, NearMiss]] = {}
    for row in rows.tolist():
        memory = memory_rejection(scores.projections[row])
        rejections = (*([memory] if memory else []), *slo_misses[row])
        if not rejections:
            continue
        miss = NearMiss(plan=scores.batch[row], rejections=rejections)
        entry = (sum(map(_overshoot, rejections)), row, miss)
        layout = miss.plan.layout
        found[layout] = min(found.get(layout, entry), entry, key=lambda item: item[:2])
    ordered = sorted(found.values(), key=lambda item: item[:2])
    return tuple(miss for _, _, miss in ordered[:NEAR_MISSES])


def _overshoot(rejection: Rejection) -> float:
    return abs(rejection.value / rejection.limit - 1) if rejection.limit else abs(rejection.value)


def _fewer(count: int, considered: int, misses: Sequence[NearMiss]) -> str:
    plans = "no plan passes" if count == 0 else f"only {count} distinct plan{'s pass' if count > 1 else ' passes'}"
    text = f"of {considered} legal candidate{'s' if considered != 1 else ''} {plans} the gates"
    if not misses:
        return text
    nearest = misses[0]
    limits = "; ".join(rejection.text for rejection in nearest.rejections)
    return f"{text}; the nearest miss ({plan_text(nearest.plan)}) fails on {limits}"


def _nothing_legal(job: Job) -> Proposed:
    """No legal plan at all: show what the simplest one breaks."""
    plain = _plain_plan(job)
    rejections = check(plain, job.workload, job.architecture, job.cluster, job.hardware)
    why = "; ".join(rejection.text for rejection in rejections)
    text = f"no legal plan for {job.devices} devices keeps the constraints"
    return Proposed(
        fewer_because=f"{text}; plain data parallelism fails on {why}" if why else text,
        near_misses=(NearMiss(plan=plain, rejections=rejections),) if rejections else (),
    )


def _plain_plan(job: Job) -> ParallelismPlan:
    """Data parallelism alone in the workload's precision, with the accumulation its batch asks for."""
    workload = job.workload
    if job.phase == "serving":
        return ParallelismPlan(phase="serving", dp=job.devices, weight_dtype=workload.precision)
    accumulation = max((workload.global_batch or job.devices) // job.devices, 1)
    return ParallelismPlan(dp=job.devices, grad_accum=accumulation, compute_dtype=workload.precision)


def _unscorable(job: Job) -> str:
    """Why neither a projection nor a scaling of the measured step is possible."""
    if job.architecture is None:
        missing = "the model is unknown"
        need = "give workload.model or architecture"
    else:
        missing = f"the catalogue lacks the chip '{job.cluster.chip}'"
        need = "give cluster.chip from the catalogue"
    if job.current is None:
        return f"{missing} and the current layout is not known, so nothing can be scored; {need}, or current_plan"
    return f"{missing} and there is no measured step of this machine to scale, so nothing can be scored; {need}"
