"""POST /v1/plans, GET /v1/plans/{id}, GET /v1/plans/{id}/report, GET /v1/plans/{id}/launch."""

from typing import Any
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agents.request import PlanRequest
from app.answers import answer_of, launch_of, links_of, pending_of
from app.daemon import in_daemon_thread
from app.errors import NotFound, StorageMismatch
from app.problem_handlers import response_of
from app.problems import problem_of
from app.routes.documented import problems, refuse_query
from app.schemas import PlanAnswer, PlanPending, Problem
from app.schemas_audit import AuditAnswer
from app.schemas_launch import LaunchAnswer
from app.service import Service, service_of
from app.storage.jobs import Job
from app.uploads import receive
from app.web.pages import failed_page, page_response, pending_page, report_page
from projector.errors import ShardwiseError

router = APIRouter(tags=["plans"])


PENDING = {"model": PlanPending, "description": "Not done within `wait` seconds; ask again at Location"}
LAUNCH = {"model": LaunchAnswer, "description": "One entry a proposal"}
AUDIT = {"model": AuditAnswer, "description": "Every record of the run"}
DONE = {"model": PlanAnswer, "description": "The whole answer"}
FAILED = {
    "status_400": "Corrupt or empty trace, or a body that is not what its content type says",
    "status_413": "A limit on bytes, compression ratio or events was passed",
    "status_415": "Unknown or unread trace format, or a content type none of the forms uses",
    "status_422": "A description that is malformed or contradicts itself, or names what nobody knows",
    "status_500": "A fault of the service",
    "status_503": "The knowledge store is busy or not there",
    "status_504": "The plan took longer than the service lets one take",
}
PAGE: dict[str, Any] = {"content": {"text/html": {"schema": {"type": "string"}}}}
REPORTS: dict[int | str, dict[str, Any]] = {
    200: {**PAGE, "description": "The report page"},
    202: {**PAGE, "description": "A page that reloads itself until the report is there"},
    404: {**PAGE, "description": "A page that says that there is no such plan"},
    **{
        int(name.removeprefix("status_")): {**PAGE, "description": f"A page that says why there is no plan. {meaning}"}
        for name, meaning in FAILED.items()
    },
    **problems(status_500="A fault of the service"),
}


@router.post("/v1/plans", responses={200: DONE, 202: PENDING, **problems(**FAILED)})
async def post_plan(request: Request) -> Response:
    """Diagnose a trace and propose up to three plans, each projected on its own cluster and on TPU and GPU profiles.

    The content type says what is sent: a form with `trace` files and a `request`, one trace alone, or a request alone.
    The answer comes within `wait` seconds (a key of the request, default 10, limited by the service), or a 202 with
    its Location.
    """
    refuse_query(request, body_keys=PlanRequest.model_fields)
    service = service_of(request)
    job_id, wait_s = await _submit(request, service)
    job = await service.runner.wait(job_id, wait_s)
    return _answer(job, wait_s)


@router.get("/v1/plans/{plan_id}", responses={200: DONE, 202: PENDING, **problems(status_404="No such plan", **FAILED)})
async def get_plan(request: Request, plan_id: str) -> Response:
    """The answer of an earlier POST: the plan, its state while it is computed, or the problem it failed with."""
    refuse_query(request)
    return _answer(await service_of(request).runner.get(plan_id_of(plan_id)), 0.0)


@router.get(
    "/v1/plans/{plan_id}/report",
    response_class=HTMLResponse,
    responses=REPORTS,
)
async def get_report(request: Request, plan_id: str) -> Response:
    """The answer as a page to read and print; failures are pages too."""
    try:
        refuse_query(request)
        job = await service_of(request).runner.get(plan_id_of(plan_id))
        if job.state == "done":
            return page_response(report_page(answer_of(job), launch_of(job) or ()))
    except ShardwiseError as error:
        return page_response(failed_page(problem_of(error, request.url.path)), error.http_status)
    if job.state == "failed":
        problem = Problem.model_validate_json(job.problem or "")
        return page_response(failed_page(problem), problem.status)
    return page_response(pending_page(pending_of(job, 0.0)), 202)


@router.get(
    "/v1/plans/{plan_id}/launch",
    responses={200: LAUNCH, 202: PENDING, **problems(status_404="No such plan", **FAILED)},
)
async def get_launch(request: Request, plan_id: str) -> Response:
    """How each proposal is launched, in every framework there is an exporter for, or why it cannot be."""
    refuse_query(request)
    job = await service_of(request).runner.get(plan_id_of(plan_id))
    if job.state != "done":
        return _answer(job, 0.0)
    launch = launch_of(job)
    if launch is None:
        raise StorageMismatch(f"plan {job.id} was stored without launch configurations", hint="POST the trace again")
    answer = LaunchAnswer(id=job.id, proposals=launch)
    return Response(answer.model_dump_json(), media_type="application/json")


@router.get("/v1/plans/{plan_id}/audit", responses={200: AUDIT, **problems(status_404="No record of such a plan")})
async def get_audit(request: Request, plan_id: str) -> Response:
    """What the run asked, was told and answered, line by line, as the audit log has it."""
    refuse_query(request)
    run_id, log = plan_id_of(plan_id), service_of(request).audit
    if log is None:
        raise NotFound("this service keeps no audit log", hint="SHARDWISE_AUDIT=true switches it on")
    records = await in_daemon_thread(log.records, run_id)
    return Response(AuditAnswer(id=run_id, records=records).model_dump_json(), media_type="application/json")


@router.post("/plans", include_in_schema=False)
async def post_plan_from_browser(request: Request) -> Response:
    """The upload form of the start page: as POST /v1/plans, answered with pages."""
    try:
        job_id, _ = await _submit(request, service_of(request))
    except ShardwiseError as error:
        return page_response(failed_page(problem_of(error, "/plans")), error.http_status)
    return RedirectResponse(links_of(job_id).report, status_code=303)


async def _submit(request: Request, service: Service) -> tuple[UUID, float]:
    """Store what came, insert the job; returns its id and the seconds to wait for it."""
    upload = await receive(request, service.store, service.settings.max_upload_bytes)
    wait_s = min(upload.request.wait, service.settings.max_wait_s)
    return await service.runner.submit(upload.request, upload.traces), wait_s


def _answer(job: Job, waited_s: float) -> Response:
    links = links_of(job.id)
    if job.state == "done":
        return Response(answer_of(job).model_dump_json(), media_type="application/json")
    if job.state == "failed":
        return response_of(Problem.model_validate_json(job.problem or ""))
    headers = {"Location": links.self, "Retry-After": "1"}
    return Response(pending_of(job, waited_s).model_dump_json(), 202, headers, "application/json")


def plan_id_of(plan_id: str) -> UUID:
    """The id in a path; NotFound for one that is none."""
    try:
        return UUID(plan_id)
    except ValueError:
        raise NotFound(f"no plan {plan_id[:64]!r}", hint="the id of a plan is a UUID") from None
