"""POST /v1/simulations: one serving plan, request by request."""

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.daemon import count_at_work, in_daemon_thread
from app.errors import JobTimeLimit, ServiceBusy
from app.routes.documented import problems, refuse_query
from app.schemas_simulation import SimulationAnswer, SimulationRequest
from app.service import service_of
from app.simulating import simulation_of
from app.uploads import received_json
from app.validation import parse

router = APIRouter(tags=["simulations"])

# Simulations at once, those whose client stopped waiting among them: each keeps a core busy for seconds.
MOST_AT_ONCE = 4


@router.post(
    "/v1/simulations",
    responses={
        200: {"model": SimulationAnswer, "description": "What requests saw"},
        **problems(
            status_413="The request is too large",
            status_415="A content type that is not application/json",
            status_422="A description that is malformed or contradicts itself, or names what nobody knows",
            status_500="A fault of the service",
            status_503="As many simulations run as the service runs at once",
            status_504="It took longer than the service lets it take",
        ),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/SimulationRequest"}}},
        }
    },
)
async def post_simulation(request: Request) -> Response:
    """Simulate the scheduler of a serving plan's engines, request by request, from a seed.

    Percentiles of TTFT, TPOT, inter-token latency, queueing and end-to-end latency, throughput, goodput under budgets,
    use of the KV pool, preemptions; under drawn arrivals or a recorded log. Nothing is kept.
    """
    refuse_query(request, body_keys=SimulationRequest.model_fields)
    asked = parse(SimulationRequest, await received_json(request))
    if count_at_work(simulation_of) >= MOST_AT_ONCE:
        raise ServiceBusy(f"{MOST_AT_ONCE} simulations run already", hint="ask again in a minute")
    limit_s = service_of(request).settings.job_limit_s
    try:
        done = await asyncio.wait_for(in_daemon_thread(simulation_of, asked), limit_s)
    except TimeoutError:
        raise JobTimeLimit(
            f"the simulation took longer than the limit of {limit_s:g} s", hint="ask for fewer requests"
        ) from None
    return Response(done.model_dump_json(), media_type="application/json")
