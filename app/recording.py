"""A recorded outcome as a past case: what the user states, and what the plan it belongs to knows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from pydantic import ValidationError

from agents.findings import PlanResult, Proposal
from agents.planning.history import numbers_of, task_of
from agents.request import PlanRequest
from app.schemas_history import MeasuredEffect, RecordedOutcome
from app.validation import InvalidRequest, field_problems
from knowledge_base.history_parts import PastLayout, PastMove
from knowledge_base.past import PastCase
from projector import catalog
from projector.errors import InvalidDescription, ShardwiseError, UnknownName
from projector.levers import changed_levers
from projector.specs.bottleneck import BOTTLENECK_OF
from projector.specs.objective import named_objective
from projector.specs.plan import ParallelismPlan

# closer to 1 than this is noise of a repeated run
NOISE_FRAC = 0.03
MOST_MOVES = 12
PLAN_DEGREES = ("dp", "fsdp", "tp", "pp", "vp", "cp", "ep", "etp")
SIZES = ("seq_len", "global_batch", "input_len", "output_len", "concurrency")


def case_of(
    outcome: RecordedOutcome, now: datetime, stored: tuple[PlanRequest, PlanResult] | None
) -> tuple[PastCase, str]:
    """(the case, what was taken from the plan). `stored`: request and result of outcome.plan_id.

    InvalidDescription: what is missing, or contradicts itself or the plan. UnknownName: a rank the plan lacks.
    """
    if outcome.rank is not None and stored is None:
        raise InvalidDescription("rank without plan_id", hint="say of which plan")
    taken = _from_plan(outcome, *stored) if stored is not None else {}
    stated = {
        name: value
        for name, value in outcome.model_dump(exclude={"effect", "rank", "plan_id", "id"}).items()
        if value not in (None, ())
    }
    values = taken | stated
    for name in ("phase", "chip", "chips"):
        if values.get(name) is None:
            raise InvalidDescription(f"the outcome does not say {name}", hint="state it, or plan_id and rank")
    values |= _model(values)
    effect = _effect(outcome.effect, changed=bool({"baseline", "moves"} & stated.keys()))
    if effect["outcome"] is None:
        # a figure of the adopted layout alone: what it replaced was not measured
        values = {name: value for name, value in values.items() if name not in ("baseline", "moves", "levers")}
    values |= {
        "kind": "published" if effect["outcome"] is None else "change",
        "origin": "user",
        "effect": effect,
        "recorded_at": now,
        "source": values.get("source") or {"title": "recorded here", "date": now.date().isoformat()},
        "plan_id": str(outcome.plan_id) if outcome.plan_id is not None else None,
        "proposal_rank": outcome.rank,
    }
    try:
        case = PastCase.model_validate(values | {"id": outcome.id or "own"})
    except ValidationError as error:
        raise InvalidRequest(tuple(field_problems(error, PastCase))) from error
    if outcome.id is None:
        case = case.model_copy(update={"id": _identifier(case)})
    return case, _note(case, sorted(taken.keys() - stated.keys()))


def _note(case: PastCase, taken: Sequence[str]) -> str:
    """What the plan gave, and what the case lacks to be found again."""
    notes = []
    if taken:
        notes.append(f"taken from the plan: {', '.join(name.replace('_', ' ') for name in taken)}")
    if case.model is None:
        notes.append("no model is named, so this is never an exact match: state model")
    return "; ".join(notes)


def layout_of(plan: ParallelismPlan) -> PastLayout:
    """The degrees of a plan."""
    values: dict[str, Any] = {name: getattr(plan, name) for name in PLAN_DEGREES}
    if plan.phase == "training":
        values |= {"zero_stage": plan.zero_stage, "micro_batch": plan.micro_batch, "recompute": plan.recompute}
    else:
        values |= {"attention_dp": plan.attention_dp, "disaggregated": True if plan.prefill_replicas else None}
    return PastLayout.model_validate(values)


def _from_plan(outcome: RecordedOutcome, request: PlanRequest, result: PlanResult) -> dict[str, Any]:
    """What the plan knows of the proposal that was adopted."""
    if outcome.rank is None:
        raise InvalidDescription("plan_id without rank", hint="say which proposal was adopted: rank 1, 2 or 3")
    proposal = next((one for one in result.proposals if one.rank == outcome.rank), None)
    if proposal is None:
        raise UnknownName("rank", str(outcome.rank), [str(one.rank) for one in result.proposals])
    own, workload = proposal.projections[0], request.workload
    for name, known in (("chip", own.chip), ("chips", own.chips)):
        said = getattr(outcome, name)
        if said is not None and said != known:
            raise InvalidDescription(f"{name} is {said}, and the plan is for {known}", hint=f"leave out {name}")
    before = result.current.plan if result.current is not None else request.current_plan
    cause = result.diagnosis.cause if result.diagnosis.cause != "unknown" else None
    taken: dict[str, Any] = {
        "phase": proposal.plan.phase,
        "task": task_of(proposal.plan.phase, workload.adapter if workload is not None else None),
        "chip": own.chip,
        "chips": own.chips,
        "precision": proposal.plan.compute_dtype,
        "framework": request.framework or (workload.engine if workload is not None else None),
        "bottleneck": BOTTLENECK_OF[cause] if cause is not None else None,
        "cause": cause,
        "layout": layout_of(proposal.plan).model_dump(),
        **_moved(proposal, before),
    }
    if workload is not None:
        taken |= {"model": workload.model, **{name: getattr(workload, name) for name in SIZES}}
    if request.architecture is not None:
        taken |= {"model": request.architecture.name, "architecture": numbers_of(request.architecture).model_dump()}
    return {name: value for name, value in taken.items() if value not in (None, (), [])}


def _moved(proposal: Proposal, before: ParallelismPlan | None) -> dict[str, Any]:
    """What adopting the proposal changed; nothing where no current plan was known."""
    if before is None or before.phase != proposal.plan.phase:
        return {}
    moves = [
        PastMove(field=change.field[:60], before=change.before[:80], after=change.after[:80]).model_dump()
        for change in proposal.changes[:MOST_MOVES]
    ]
    levers = [lever.name for lever in changed_levers(before, proposal.plan)][:MOST_MOVES]
    return {"baseline": layout_of(before).model_dump(), "levers": levers, "moves": moves}


def _model(values: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of the model and its own name, where the catalogue has it and they are not stated."""
    if values.get("model") is None or values.get("architecture") is not None:
        return {}
    try:
        known = catalog.architecture(values["model"])
    except ShardwiseError:
        return {}
    return {"model": known.name, "architecture": numbers_of(known).model_dump()}


def _effect(stated: MeasuredEffect, *, changed: bool) -> dict[str, Any]:
    """The effect with its ratio and outcome, as far as the figures and the objective's direction tell them."""
    values = stated.model_dump()
    if stated.after is None and stated.ratio is None and stated.outcome is None:
        raise InvalidDescription("the outcome says nothing that was measured", hint="state effect.after")
    try:
        objective = named_objective(stated.metric)
        values["unit"] = values["unit"] or objective.unit
    except UnknownName:
        objective = None
    if values["ratio"] is None and stated.before and stated.after and objective is not None:
        more = stated.after / stated.before
        values["ratio"] = more if objective.direction == "maximise" else 1 / more
    if values["outcome"] is None and values["ratio"] is not None:
        better, worse = values["ratio"] > 1 + NOISE_FRAC, values["ratio"] < 1 - NOISE_FRAC
        values["outcome"] = "improved" if better else "worse" if worse else "neutral"
    if values["outcome"] is None and (stated.before is not None or changed):
        raise InvalidDescription(
            f"whether more {stated.metric!r} is better is not known",
            hint="state effect.ratio (above 1 is better) or effect.outcome, or name an objective as the metric",
        )
    return values


def _identifier(case: PastCase) -> str:
    """An id that follows from the content: the same outcome recorded twice is one outcome."""
    content = case.model_copy(update={"source": case.source.model_copy(update={"date": None})})
    text = content.model_dump_json(exclude={"id", "recorded_at"})
    return f"own-{sha256(text.encode()).hexdigest()[:16]}"
