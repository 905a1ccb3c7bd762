"""POST and GET /v1/plans/{id}/messages, GET /v1/plans/{id}/messages/{number}."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from app import talking
from app.errors import NotFound
from app.routes.documented import problems, refuse_query
from app.routes.plans import plan_id_of
from app.schemas_messages import Conversation, MessageAnswer, MessageRequest
from app.service import service_of
from app.uploads import received_json
from app.validation import parse

router = APIRouter(tags=["plans"])

DONE = {"model": MessageAnswer, "description": "The answer"}
PENDING = {"model": MessageAnswer, "description": "What the message asks for is being planned; ask again at Location"}
BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/MessageRequest"}}},
    }
}


@router.post(
    "/v1/plans/{plan_id}/messages",
    responses={
        200: DONE,
        202: PENDING,
        **problems(
            status_404="No such plan",
            status_409="The plan is not done, or failed",
            status_413="The message is too large",
            status_415="A content type that is not application/json",
            status_422="A message that is empty or too long, or too many of them",
            status_500="A fault of the service",
        ),
    },
    openapi_extra=BODY,
)
async def post_message(request: Request, plan_id: str) -> Response:
    """Ask about a plan, or state a fact: a fixed axis, a memory limit, another machine, load or budget.

    Questions are answered from the plan's figures. A fact or a "what if" is planned, and the answer compares. Doubt
    without a fact keeps the order.
    """
    refuse_query(request, body_keys=MessageRequest.model_fields)
    asked = parse(MessageRequest, await received_json(request))
    return _answer(await talking.say(service_of(request), plan_id_of(plan_id), asked))


@router.get(
    "/v1/plans/{plan_id}/messages",
    responses=problems(status_404="No such plan", status_409="The plan is not done, or failed"),
)
async def get_messages(request: Request, plan_id: str) -> Conversation:
    """Everything said of a plan, the first message first."""
    refuse_query(request)
    return await talking.conversation(service_of(request), plan_id_of(plan_id))


@router.get(
    "/v1/plans/{plan_id}/messages/{number}",
    responses={
        200: DONE,
        202: PENDING,
        **problems(status_404="No such plan or message", status_409="The plan is not done, or failed"),
    },
)
async def get_message(request: Request, plan_id: str, number: str) -> Response:
    """One turn of a conversation."""
    refuse_query(request)
    if not number.isascii() or not number.isdigit() or len(number) > 6:
        raise NotFound(f"no message {number[:20]!r}", hint="messages are numbered from 1")
    return _answer(await talking.message_of(service_of(request), plan_id_of(plan_id), int(number)))


def _answer(turn: MessageAnswer) -> Response:
    pending = turn.status == "pending"
    headers = {"Location": turn.links.self, "Retry-After": "1"} if pending else {}
    return Response(turn.model_dump_json(), 202 if pending else 200, headers, "application/json")
