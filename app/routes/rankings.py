"""POST /v1/rankings, /v1/sizings and /v1/levers: whole spaces of plans, machines, and what may be tried at all."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from app.daemon import count_at_work, in_daemon_thread
from app.errors import JobTimeLimit, ServiceBusy
from app.levers import levers_of
from app.ranking import ranking_of, sizing_of
from app.routes.documented import problems, refuse_query
from app.schemas_levers import LeversAnswer, LeversRequest
from app.schemas_ranking import RankRequest, SizeRequest
from app.service import service_of
from app.uploads import received_json
from app.validation import parse
from projector.ranking.records import SpaceRanking
from projector.ranking.sizing_records import Sizing

router = APIRouter(tags=["rankings"])
M = TypeVar("M", bound=BaseModel)

# Searches at once, those whose client stopped waiting among them: each keeps a core busy for seconds to minutes.
MOST_AT_ONCE = 8

FAILED = problems(
    status_413="The request is too large",
    status_415="A content type that is not application/json",
    status_422="A description that is malformed or contradicts itself, or names what nobody knows",
    status_500="A fault of the service",
    status_503="As many searches run as the service runs at once",
    status_504="It took longer than the service lets it take",
)


def _body(record: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{record}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


@router.post(
    "/v1/rankings",
    responses={200: {"model": SpaceRanking, "description": "The ranked space"}, **FAILED},
    openapi_extra=_body("RankRequest"),
)
async def post_ranking(request: Request) -> Response:
    """Rank every legal plan of a workload on a cluster, without a trace and without an advisor.

    Layouts by their best plan and an objective, ranks shared within 2 %; on request the Pareto set over several
    objectives, and layouts by what they save of the term a diagnosed cause blames. Nothing is kept.
    """
    return await _answer(request, RankRequest, ranking_of)


@router.post(
    "/v1/sizings",
    responses={200: {"model": Sizing, "description": "Machines by cost"}, **FAILED},
    openapi_extra=_body("SizeRequest"),
)
async def post_sizing(request: Request) -> Response:
    """Compare chips and counts for a training: the cheapest that meet a target, each with its fastest plan that fits.

    The target limits tokens a second, step time, days or cost. Chips without a known price are ranked by chip-hours;
    state `prices_usd` to have them priced. Nothing is kept.
    """
    return await _answer(request, SizeRequest, sizing_of)


@router.post(
    "/v1/levers",
    responses={200: {"model": LeversAnswer, "description": "What may be tried"}, **FAILED},
    openapi_extra=_body("LeversRequest"),
)
async def post_levers(request: Request) -> Response:
    """What each plan field may be set to for a model on a cluster, and which cannot matter there, with the reason.

    Nothing is projected: values follow from the rules, the chip's vendor and the model. With a plan also the fields
    that cannot matter beside its others. Nothing is kept.
    """
    return await _answer(request, LeversRequest, levers_of)


async def _answer(request: Request, record: type[M], work: Callable[[M], BaseModel]) -> Response:
    """Work in a thread, within the limit of a job; what passes it is left to itself and counts until it ends."""
    refuse_query(request, body_keys=record.model_fields)
    asked = parse(record, await received_json(request))
    if count_at_work(ranking_of, sizing_of) >= MOST_AT_ONCE:
        raise ServiceBusy(f"{MOST_AT_ONCE} searches run already", hint="ask again in a minute")
    limit_s = service_of(request).settings.job_limit_s
    try:
        done = await asyncio.wait_for(in_daemon_thread(work, asked), limit_s)
    except TimeoutError:
        raise JobTimeLimit(
            f"the search took longer than the limit of {limit_s:g} s",
            hint="fix or bound axes in constraints, or name fewer machines",
        ) from None
    return Response(done.model_dump_json(), media_type="application/json")
