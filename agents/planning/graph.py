"""The planning graph: analyzer -> proposal -> scoring, one pass, plain-JSON state, one fresh run a plan."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from agents.advisors.protocol import Advisor
from agents.causes import CAUSE_PHRASE
from agents.findings import Diagnosis, Evidence, PlanResult, Provenance
from agents.planning.analyzer import diagnose, diagnose_breakdown, undiagnosed
from agents.planning.audit_notes import of_advice, of_analysis, of_result
from agents.planning.history import past_matches, with_history
from agents.planning.job import Job
from agents.planning.layout_evidence import with_layout, with_request
from agents.planning.not_layout import said_first
from agents.planning.pass_rows import pass_tokens
from agents.planning.proposal import Proposed, propose
from agents.planning.reference import Reference, reference_of
from agents.planning.resolve import resolve
from agents.planning.scoring import proposals_of
from agents.planning.state import Json, Knowledge, NodeName, PlanContext, PlanEvent, PlanState
from agents.planning.stated import asks_for, evidence_for, remedies_for, with_stated
from agents.planning.stated_only import is_stated_only, stated_result
from agents.planning.step_floor import with_step_floor
from agents.practice.model import PracticeModel
from agents.request import PlanRequest
from agents.wording import duration
from projector import catalog
from projector.specs.record import Record
from projector.units import s_to_ms
from traces.summary_types import TraceSummary

if TYPE_CHECKING:
    from langgraph.runtime import Runtime


def run_plan(
    request: PlanRequest,
    summary: TraceSummary | None,
    *,
    knowledge: Knowledge,
    advisor: Advisor,
    on_event: Callable[[PlanEvent], None] | None = None,
    on_state: Callable[[PlanState], None] | None = None,
    record: Callable[[str, Json], None] | None = None,
    redact: bool = False,
    practice: PracticeModel | None = None,
) -> PlanResult:
    """The whole answer: diagnosis, up to three proposals, and what they rest on.

    practice: how likely layouts are to be adopted, None: as it ships.
    Without a trace the modelled step of the current plan, or of the plainest layout that fits, is diagnosed. A request
    that cannot be planned, but says what is seen, is answered without a plan.
    on_state is given the state, plain JSON, after every node: `resume_plan` goes on from it.
    record, redact: as in `PlanContext`.
    InvalidDescription and UnknownName as in `resolve`.
    """
    context = PlanContext(knowledge, advisor, on_event, record, redact, practice)
    if is_stated_only(request, summary):
        result = stated_result(request, _versions())
        context.note("result", of_result(result))
        return result
    state: PlanState = {
        # what was not written must stay unwritten: a default is no statement
        "request": request.model_dump(mode="json", exclude_unset=True),
        "summary": _dumped(summary) if summary is not None else None,
    }
    return resume_plan(state, context, on_state=on_state)


def resume_plan(
    state: PlanState, context: PlanContext, *, on_state: Callable[[PlanState], None] | None = None
) -> PlanResult:
    """The answer from a state as `on_state` was given it: nodes whose result it holds are not run again."""
    for reached in _compiled().stream(state, context=context, stream_mode="values"):
        state = reached
        if on_state is not None:
            on_state(state)
    result = PlanResult.model_validate(state["result"])
    context.note("result", of_result(result))
    return result


@cache
def _compiled() -> Any:
    return graph_of()


def graph_of(checkpointer: Any = None, interrupt_before: Sequence[NodeName] = ()) -> Any:
    """The compiled graph, with a checkpointer of langgraph where its state is to be kept by one.

    langgraph is imported here so that importing this module stays cheap.
    """
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(PlanState, context_schema=PlanContext)
    graph.add_node("analyzer", _analyzer)
    graph.add_node("proposal", _proposal)
    graph.add_node("scoring", _scoring)
    graph.add_conditional_edges(START, _first_node, ["analyzer", "proposal", "scoring"])
    graph.add_edge("analyzer", "proposal")
    graph.add_edge("proposal", "scoring")
    graph.add_edge("scoring", END)
    return graph.compile(checkpointer=checkpointer, interrupt_before=list(interrupt_before))


def _first_node(state: PlanState) -> NodeName:
    """The first node whose result a state lacks; a state that is complete is scored once more."""
    if "diagnosis" not in state:
        return "analyzer"
    return "scoring" if "proposed" in state else "proposal"


def _analyzer(state: PlanState, runtime: "Runtime[PlanContext]") -> PlanState:
    tell = runtime.context.tell
    tell("analyzer", "started", "reading what the request states and the trace implies")
    request, summary = _request(state), _summary(state)
    job = resolve(request, summary)
    # without a plannable model there is nothing to compare with
    reference = reference_of(job) if job.not_plannable is None else None
    found = diagnose(summary) if summary is not None else _modelled_diagnosis(job, reference)
    found, assumptions = with_step_floor(found, job)
    job = job.model_copy(update={"assumptions": (*job.assumptions, *assumptions)})
    # the layout's part is told of the cause that stands in the end
    diagnosis = with_layout(with_stated(with_request(found, job, request, summary), request, job), job, reference)
    tell("analyzer", "finished", f"class {diagnosis.bottleneck}: {CAUSE_PHRASE[diagnosis.cause]}")
    runtime.context.note("analysis", of_analysis(job, diagnosis))
    return {
        "job": _dumped(job),
        "diagnosis": _dumped(diagnosis),
        "reference": _dumped(reference) if reference else None,
    }


def _proposal(state: PlanState, runtime: "Runtime[PlanContext]") -> PlanState:
    context = runtime.context
    context.tell("proposal", "started", "projecting every legal plan")
    job, request = Job.model_validate(state["job"]), _request(state)
    hides = (context.redact or request.redact) and request.advisor != "rules" and context.advisor.name == "llm"
    proposed = propose(
        job,
        Diagnosis.model_validate(state["diagnosis"]),
        _reference(state),
        context.knowledge,
        context.advisor,
        request.advisor,
        _hidden_names(state, job) if hides else (),
        context.practice,
    )
    message = f"{proposed.feasible} of {proposed.considered} legal plans pass the gates, {len(proposed.picks)} proposed"
    context.tell("proposal", "finished", message)
    context.note("advice", of_advice(proposed))
    return {"proposed": _dumped(proposed)}


def _scoring(state: PlanState, runtime: "Runtime[PlanContext]") -> PlanState:
    tell = runtime.context.tell
    tell("scoring", "started", "projecting the proposals on the compared chips")
    job = Job.model_validate(state["job"])
    diagnosis = Diagnosis.model_validate(state["diagnosis"])
    proposed = Proposed.model_validate(state["proposed"])
    reference, summary, request = _reference(state), _summary(state), _request(state)
    remedies = remedies_for(request, diagnosis, job)
    result = PlanResult(
        diagnosis=diagnosis,
        remedies=remedies,
        asks=asks_for(request, job),
        current=reference.projection if reference is not None and reference.is_current else None,
        proposals=proposals_of(job, diagnosis, proposed, reference),
        fewer_because=proposed.fewer_because,
        not_plannable=job.not_plannable,
        evidence=_evidence(job, diagnosis, reference, proposed, evidence_for(request, diagnosis, job, remedies)),
        assumptions=job.assumptions,
        near_misses=proposed.near_misses,
        candidates_considered=proposed.considered,
        candidates_feasible=proposed.feasible,
        provenance=Provenance(
            advisor=proposed.advisor,
            fallback_reason=proposed.fallback_reason,
            versions=_versions(),
            usage=proposed.usage,
            order_by=proposed.order_by,
            dropped_sentences=proposed.dropped,
            disagreement=proposed.disagreement,
            redacted=proposed.redacted,
        ),
        warnings=(*job.warnings, *proposed.warnings, *(summary.warnings if summary else ())),
    )
    result = with_history(result, past_matches(job, diagnosis, runtime.context.knowledge, _request(state).symptom))
    leader = next(iter(proposed.candidates), None)
    result = said_first(result, relieved=leader is not None and bool(leader.relieving))
    tell("scoring", "finished", f"{len(result.proposals)} proposals ready")
    return {"result": _dumped(result)}


def _modelled_diagnosis(job: Job, reference: Reference | None) -> Diagnosis:
    """Diagnosis of the reference's projected step; of nothing where there is no legal plan."""
    if reference is None:
        return undiagnosed(f"no legal plan exists for {job.devices} devices, so no step could be projected")
    plan = reference.plan
    tokens = pass_tokens(plan, reference.projection, job)
    diagnosis = diagnose_breakdown(
        reference.projection.breakdown,
        phase=job.phase,
        pass_tokens=tokens,
        expert_rows=_expert_rows(tokens, job),
        dtype=job.workload.precision,
        chip=job.hardware,
        memory=reference.projection.memory,
    )
    why = "" if reference.is_current else "; no current plan is known"
    limits = (f"what is diagnosed is {reference.label}{why}", *diagnosis.limits)
    return diagnosis.model_copy(update={"limits": limits})


def _expert_rows(tokens: int, job: Job) -> float | None:
    model = job.architecture
    return tokens * model.experts_per_token / model.experts if model is not None and model.is_moe else None


def _evidence(
    job: Job,
    diagnosis: Diagnosis,
    reference: Reference | None,
    proposed: Proposed,
    stated: tuple[Evidence, ...],
) -> tuple[Evidence, ...]:
    """Everything the answer rests on, each id once."""
    anchor = [_reference_evidence(reference)] if reference is not None else []
    chosen = [entry for candidate in proposed.candidates for entry in candidate.evidence]
    return (*job.evidence, *diagnosis.evidence, *stated, *anchor, *chosen)


def _reference_evidence(reference: Reference) -> Evidence:
    projected_s, step_s = reference.projection.step_time_s, reference.step_time_s
    if reference.projection.source == "anchored":
        return Evidence(
            id="ev-reference-step-time",
            claim=f"The step of {reference.label} is measured to take {duration(step_s)}.",
            value=s_to_ms(step_s),
            unit="ms",
            source="measured",
            ref="current.step_time_s",
        )
    claim = f"The step of {reference.label} is projected to take {duration(projected_s)}"
    if reference.anchored:
        claim += f"; the measured one takes {duration(step_s)}, with idle time that the cost model does not see"
    return Evidence(
        id="ev-reference-step-time",
        claim=f"{claim}.",
        value=s_to_ms(projected_s),
        unit="ms",
        source="modelled",
        ref="current.step_time_s" if reference.is_current else "projection.step_time_s",
    )


def _hidden_names(state: PlanState, job: Job) -> tuple[str, ...]:
    """Every name of the request, the trace and the job that a language model must not see."""
    from agents.advisors.redaction import names_of

    models = [job.architecture.name] if job.architecture is not None else []
    return names_of([json.dumps(state["request"]), json.dumps(state["summary"])], models)


def _versions() -> dict[str, str]:
    try:
        own = version("shardwise")
    except PackageNotFoundError:  # run from a source tree that was never installed
        own = "unknown"
    return {"shardwise": own, "catalogue_sha256": catalog.catalog_fingerprint()}


def _dumped(record: Record) -> Json:
    """A record as plain JSON that validates back: computed fields are left out."""
    return record.model_dump(mode="json", round_trip=True)


def _request(state: PlanState) -> PlanRequest:
    return PlanRequest.model_validate(state["request"])


def _summary(state: PlanState) -> TraceSummary | None:
    return TraceSummary.model_validate(state["summary"]) if state["summary"] is not None else None


def _reference(state: PlanState) -> Reference | None:
    return Reference.model_validate(state["reference"]) if state["reference"] is not None else None
