"""Resolve: the request and what the trace implies become one Job. The request wins; every value records its origin."""

from agents.findings import Assumption
from agents.planning.anchoring import anchored_job
from agents.planning.baseline import baseline_of
from agents.planning.collective_axes import with_axes
from agents.planning.conflicts import conflict, conflicts
from agents.planning.fit_to_run import fitted_to_run
from agents.planning.goal import split_goal
from agents.planning.infer_plan import infer_plan
from agents.planning.job import Job
from agents.planning.match_model import match_trace
from agents.planning.measured_links import resolve_links
from agents.planning.mesh_input import with_mesh
from agents.planning.origins import Origins
from agents.planning.plan_text import plan_text
from agents.planning.request_checks import check_fixed_axes, check_request, nothing_to_plan, stated_phase
from agents.planning.resolve_cluster import Placed, compare_chips, resolve_cluster
from agents.planning.resolve_framework import resolve_framework
from agents.planning.resolve_workload import resolve_workload
from agents.request import PlanRequest
from agents.wording import quoted
from projector import catalog
from projector.breakdown import TimeBreakdown
from projector.errors import InvalidDescription
from projector.legality import check
from projector.specs.architecture import ModelArchitecture
from projector.specs.objective import DEFAULT_OBJECTIVE, OBJECTIVES, alias_note, named_objective
from projector.specs.plan import ParallelismPlan, Phase
from traces.summary import measured_breakdown
from traces.summary_types import TraceSummary


def resolve(request: PlanRequest, summary: TraceSummary | None) -> Job:
    """What is to be planned.

    InvalidDescription when the request contradicts itself or states a layout that cannot run, or when neither it nor
    a trace says what to plan;
    UnknownName for a chip, model, framework or objective in no catalogue.
    """
    request, assumptions = with_mesh(request)
    request, goal = split_goal(request)
    check_request(request)
    origins = Origins(assumptions=[*assumptions])
    placed = resolve_cluster(request, summary, origins)
    check_fixed_axes(request.constraints, placed.devices)
    phase = _phase(request, summary, origins)
    architecture = _architecture(request, summary, origins)
    origins.warnings.extend(conflicts(request, summary, phase, architecture if _names_model(request) else None))
    current, source = _current(request, summary, phase, architecture, placed, origins)
    request, framework = resolve_framework(request, phase, origins)
    workload, current = resolve_workload(
        request, summary, phase, architecture, current, source, placed.devices, origins
    )
    if request.verify:
        origins.warnings.append("verify: this version has no compiler check, so no proposal was verified by one")
    experts = summary is not None and _has_experts(summary, architecture)
    baseline = baseline_of(request, summary, architecture, placed, workload, origins, experts=experts)
    links = resolve_links(summary, placed.hardware, placed.moved, origins)
    measured = None if summary is None or placed.moved else _measured(summary, current, origins)
    job = Job(
        phase=phase,
        workload=workload,
        architecture=architecture,
        cluster=placed.cluster,
        chip_known=placed.hardware is not None,
        current=current,
        current_source=source,
        baseline=baseline,
        measured=measured,
        traced=summary is not None,
        objective=_objective(request, phase, origins),
        goal=goal,
        framework=framework,
        slo=request.slo,
        constraints=request.constraints,
        compare=compare_chips(request.hardware, placed.hardware),
        notes_per_search=request.notes_per_search,
        measured_links=links,
        assumptions=tuple(origins.assumptions),
        evidence=tuple(origins.evidence),
        warnings=tuple(origins.warnings),
        confidences=origins.confidences,
        not_plannable=_not_plannable(request, summary, architecture),
    )
    if job.not_plannable is not None:
        return job
    if request.constraints.max_memory_gb is not None and job.mode != "absolute":
        unchecked = "constraints.max_memory_gb cannot be checked: without model and chip no memory is projected"
        job = job.model_copy(update={"warnings": (*job.warnings, unchecked)})
    return anchored_job(fitted_to_run(_with_legal_current(_with_relative_note(job))), request, summary)


def _with_legal_current(job: Job) -> Job:
    """The job without a current plan that breaks a rule. InvalidDescription where it was stated."""
    if job.current is None:
        return job
    broken = check(job.current, job.workload, job.architecture, job.cluster, job.hardware)
    if not broken:
        return job
    why = "; ".join(rejection.text for rejection in broken)
    if job.current_source == "stated":
        raise InvalidDescription(f"current_plan ({plan_text(job.current)}) cannot run: {why}")
    warning = f"the layout the trace implies ({plan_text(job.current)}) cannot run and was left out: {why}"
    return job.model_copy(update={"current": None, "current_source": "none", "warnings": (*job.warnings, warning)})


def _with_relative_note(job: Job) -> Job:
    """Says what stands in for an objective that needs the model."""
    if job.mode != "relative" or job.objective == "step_time_s":
        return job
    note = Assumption(
        field="objective",
        value="scaled step time",
        reason=f"{job.objective} needs the model and the chip; plans are ordered by the measured step as it scales",
        matters="with workload.model (and a chip of the catalogue) plans are ordered by the objective itself",
    )
    return job.model_copy(update={"assumptions": (*job.assumptions, note)})


def _measured(summary: TraceSummary, current: ParallelismPlan | None, origins: Origins) -> TimeBreakdown | None:
    if not (summary.window.device and summary.window_ns):
        return None
    measured, assumptions = with_axes(measured_breakdown(summary), summary, current)
    origins.assumptions.extend(assumptions)
    return measured


def _phase(request: PlanRequest, summary: TraceSummary | None, origins: Origins) -> Phase:
    implied = summary.implied.phase if summary is not None else None
    stated = stated_phase(request)
    if stated is not None:
        phase, where = stated
        origins.stated("phase", phase, f"request.{where}")
        if implied is not None and implied.value != phase:
            origins.warnings.append(conflict(implied.value, f"request.{where} says {phase}", implied.confidence))
        return phase
    if implied is not None:
        origins.implied("phase", implied, implied.value)
        return implied.value
    origins.assumed(
        "workload.phase",
        "training",
        "neither the request nor the trace says whether this trains or serves",
        "serving is planned for latency and KV cache: other levers, other proposals",
    )
    return "training"


def _architecture(request: PlanRequest, summary: TraceSummary | None, origins: Origins) -> ModelArchitecture | None:
    if request.architecture is not None:
        origins.stated("model", request.architecture.name, "request.architecture")
        return request.architecture
    if request.workload is not None and request.workload.model is not None:
        model = catalog.architecture(request.workload.model)
        origins.stated("model", model.name, "request.workload.model")
        return model
    if summary is None:
        raise nothing_to_plan(request)
    match, reason = match_trace(summary)
    if match is None:
        origins.assumed(
            "workload.model",
            "unknown",
            reason,
            "with workload.model memory and other hardware are projected; without it the measured step is only scaled",
        )
        return None
    origins.concluded("model", match.architecture.name, match.confidence, match.basis)
    return match.architecture


def _names_model(request: PlanRequest) -> bool:
    return request.architecture is not None or (request.workload is not None and request.workload.model is not None)


def _current(
    request: PlanRequest,
    summary: TraceSummary | None,
    phase: Phase,
    architecture: ModelArchitecture | None,
    placed: Placed,
    origins: Origins,
) -> tuple[ParallelismPlan | None, str]:
    """The layout in use, and whether it is stated, inferred, assumed or none."""
    stated, devices = request.current_plan, placed.devices
    if stated is not None and placed.capped:
        origins.warnings.append("current_plan occupies the whole cluster and is not compared with plans for a part")
        return None, "none"
    if stated is not None:
        plan = stated if stated.phase == phase else stated.model_copy(update={"phase": phase})
        if plan.devices != devices:
            raise InvalidDescription(
                f"current_plan occupies {plan.devices} devices, the trace was recorded on {devices}",
                hint="state cluster.chips when the trace does not say how many devices the job has",
            )
        origins.stated("current_plan", plan_text(plan), "request.current_plan")
        return _with_sliced_experts(plan, stated, architecture, origins), "stated"
    if summary is None or placed.moved:
        return None, "none"
    inferred = infer_plan(summary, devices, phase, experts=_has_experts(summary, architecture))
    if inferred.plan is None:
        origins.warnings.append(f"the current layout is not known: {inferred.basis}")
        return None, "none"
    if inferred.assumed:
        origins.confidences["current_plan"] = inferred.confidence
        origins.assumed(
            "current_plan",
            plan_text(inferred.plan),
            inferred.basis,
            "any other current layout changes what the proposals are compared with; state current_plan",
        )
        return inferred.plan, "assumed"
    origins.concluded("current_plan", plan_text(inferred.plan), inferred.confidence, inferred.basis)
    return inferred.plan, "inferred"


def _has_experts(summary: TraceSummary, architecture: ModelArchitecture | None) -> bool:
    return architecture.is_moe if architecture is not None else bool(summary.implied.shapes.experts)


def _with_sliced_experts(
    plan: ParallelismPlan, stated: ParallelismPlan, architecture: ModelArchitecture | None, origins: Origins
) -> ParallelismPlan:
    """A stated layout that says nothing of experts: frameworks slice them by tp unless told otherwise."""
    silent = not {"ep", "etp"} & stated.model_fields_set
    if architecture is None or not architecture.is_moe or not silent or plan.tp == 1:
        return plan
    origins.assumed(
        "current_plan.etp",
        plan.tp,
        "current_plan says nothing of experts, and frameworks slice them by tp unless told otherwise",
        "experts replicated or kept whole need other memory and other traffic; state ep and etp",
    )
    return plan.model_copy(update={"etp": plan.tp})


def _objective(request: PlanRequest, phase: Phase, origins: Origins) -> str:
    if request.objective is None:
        return DEFAULT_OBJECTIVE[phase]
    objective = named_objective(request.objective)
    if phase not in objective.phases:
        known = ", ".join(entry.name for entry in OBJECTIVES if phase in entry.phases)
        raise InvalidDescription(f"objective {objective.name} has no meaning in {phase}", hint=f"for {phase}: {known}")
    origins.stated("objective", objective.name, "request.objective", alias_note(request.objective, objective))
    return objective.name


def _not_plannable(
    request: PlanRequest, summary: TraceSummary | None, architecture: ModelArchitecture | None
) -> str | None:
    """Why no layout can be proposed, although the diagnosis stands."""
    if summary is None or architecture is not None:
        return None
    if not summary.window.device:
        return "the trace holds no device event that is read; profile the device, or give workload.model and cluster"
    verdict = summary.implied.is_transformer_lm
    if verdict is not None and not verdict.value:
        basis = f"{verdict.confidence:.2f} sure: {quoted(verdict.basis, 200)}"
        return f"the trace does not show a transformer language model ({basis}); give workload.model if it is one"
    if verdict is None and request.current_plan is None and request.workload is None:
        return "the trace does not show what kind of model ran; give workload.model if it is a language model"
    return None
