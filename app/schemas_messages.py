"""What the conversation about a plan takes and answers."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from agents.conversation.records import MOST_MESSAGE, Reading, Statement
from app.schemas import PlanLinks
from projector.specs.record import Record


class MessageRequest(Record):
    """Body of POST /v1/plans/{id}/messages."""

    text: str = Field(min_length=1, max_length=MOST_MESSAGE, description="a question about the plan, or a fact")
    wait: float = Field(10.0, ge=0, le=60, description="seconds to wait for a plan that the message asks for")


class MessageLinks(Record):
    """Where the answer is found again, and the plan it is about."""

    self: str
    plan: str


class MessageAnswer(Record):
    """One turn. status pending: the situation of the message is being planned; ask again at `links.self`."""

    plan_id: UUID
    number: int = Field(ge=1, description="place in the conversation")
    status: Literal["done", "pending"]
    created_at: datetime = Field(description="UTC")
    text: str = Field(description="the message; untrusted text")
    reading: Reading
    statements: tuple[Statement, ...]
    order_kept: bool | None = Field(description="whether the ranking stands as it was; None: not known yet")
    planned: PlanLinks | None = Field(description="the plan of the situation in the message; None: none was needed")
    links: MessageLinks


class Conversation(Record):
    """Answer of GET /v1/plans/{id}/messages, the first message first."""

    plan_id: UUID
    messages: tuple[MessageAnswer, ...]
