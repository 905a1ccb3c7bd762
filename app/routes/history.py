"""GET, POST and DELETE /v1/history: past optimisations, and the outcomes users record."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from app import history
from app.routes.documented import problems, refuse_query
from app.schemas_history import (
    CaseAnswer,
    HistoryAnswer,
    HistoryMatches,
    OutcomeAdded,
    OutcomeRemoved,
    RecordedOutcome,
)
from app.service import Service, service_of
from app.storage import jobs
from app.uploads import received_json
from app.validation import parse
from knowledge_base.past import PastQuestion

UNAVAILABLE = {"status_503": "A recorded outcome cannot be read, or the folder cannot be written"}
CREATED: dict[str, Any] = {"model": OutcomeAdded, "description": "The outcome is new"}
REPLACED: dict[str, Any] = {"model": OutcomeAdded, "description": "The outcome replaced one of the same id"}
NEAREST: dict[str, Any] = {"model": HistoryMatches, "description": "The nearest cases"}
REFUSED = {
    "status_404": "No such plan",
    "status_413": "The outcome is too large, or there are too many",
    "status_415": "The content type is not application/json",
    "status_422": "An outcome that contradicts itself or its plan, lacks what is needed, or names what nobody knows",
}
NO_CASE = {"status_404": "No such case; the nearest ids are in `nearest`"}

router = APIRouter(tags=["history"])


def _body(record: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{record}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


@router.get(
    "/v1/history",
    dependencies=[Depends(refuse_query)],
    responses=problems(status_422="A parameter that is out of range, or names what nobody knows", **UNAVAILABLE),
)
def get_history(
    request: Request,
    kind: Annotated[str | None, Query(description="published or change")] = None,
    origin: Annotated[str | None, Query(description="bundled or user")] = None,
    phase: Annotated[str | None, Query(description="training or serving")] = None,
    model: Annotated[str | None, Query(description="name or family of the model")] = None,
    chip: Annotated[str | None, Query(description="id or alias of the chip")] = None,
    lever: Annotated[str | None, Query(description="what was moved")] = None,
    cause: Annotated[str | None, Query(description="the cause it was against")] = None,
    outcome: Annotated[str | None, Query(description="improved, worse, neutral or unknown")] = None,
    limit: Annotated[int, Query(ge=1, le=history.MOST_LISTED, description="cases at most")] = history.DEFAULT_LIMIT,
) -> HistoryAnswer:
    """Past cases that pass every filter, the outcomes users recorded first."""
    values = {
        "kind": kind,
        "origin": origin,
        "phase": phase,
        "model": model,
        "chip": chip,
        "lever": lever,
        "cause": cause,
        "outcome": outcome,
    }
    return history.listed(service_of(request).knowledge.outcomes.history(), history.filter_of(values), limit)


@router.post(
    "/v1/history",
    status_code=201,
    responses={201: CREATED, 200: REPLACED, **problems(**REFUSED, **UNAVAILABLE)},
    openapi_extra=_body("RecordedOutcome"),
)
async def post_outcome(request: Request, response: Response) -> OutcomeAdded:
    """Record what a layout or a change measured; the next plan of this service sees it.

    With plan_id and rank it is the outcome of a proposal of ours: what is not stated is taken from the stored plan.
    """
    refuse_query(request, body_keys=RecordedOutcome.model_fields)
    service = service_of(request)
    outcome = parse(RecordedOutcome, await received_json(request))
    stored = None
    if outcome.plan_id is not None:
        async with service.database.transaction() as session:
            stored = history.plan_behind(await jobs.get(session, outcome.plan_id), outcome.plan_id)
    added = await asyncio.to_thread(_record, service, outcome, stored)
    response.status_code = 201 if added.created else 200
    response.headers["Location"] = added.links.self
    return added


def _record(service: Service, outcome: RecordedOutcome, stored: Any) -> OutcomeAdded:
    return history.record(service.knowledge.outcomes, outcome, service.clock(), stored)


@router.post(
    "/v1/history/search",
    responses={200: NEAREST, **problems(**REFUSED, **UNAVAILABLE)},
    openapi_extra=_body("PastQuestion"),
)
async def search_history(
    request: Request, k: Annotated[int, Query(ge=1, le=50, description="cases at most")] = 5
) -> HistoryMatches:
    """The past cases nearest to a job: exact matches first, each with what it does not share with the job."""
    refuse_query(request, body_keys=PastQuestion.model_fields)
    question = history.with_numbers(parse(PastQuestion, await received_json(request)))
    knowledge = service_of(request).knowledge

    def matches() -> HistoryMatches:
        # words are compared by the embedder; figures need no store
        past = knowledge.get().past if question.words.strip() else knowledge.outcomes.history().past
        return HistoryMatches(matches=past(question, k=k))

    return await asyncio.to_thread(matches)


@router.get(
    "/v1/history/{case_id}",
    dependencies=[Depends(refuse_query)],
    responses=problems(**NO_CASE, status_422="A query parameter that nobody knows", **UNAVAILABLE),
)
def get_case(request: Request, case_id: str) -> CaseAnswer:
    """One case: what ran or was changed, what it measured, and who says so."""
    return CaseAnswer.of(service_of(request).knowledge.outcomes.get(case_id))


@router.delete(
    "/v1/history/{case_id}",
    dependencies=[Depends(refuse_query)],
    responses=problems(**NO_CASE, status_422="The case is bundled", **UNAVAILABLE),
)
def delete_outcome(request: Request, case_id: str) -> OutcomeRemoved:
    """Take back an outcome that was recorded."""
    service_of(request).knowledge.outcomes.remove(case_id)
    return OutcomeRemoved(id=case_id)
