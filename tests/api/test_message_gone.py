"""A message whose plan was thrown away before its answer was asked for."""

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import UUID, uuid4

from agents.conversation.reading import read_message
from app.errors import NotFound
from app.storage.messages import Message
from app.talking import _answered


async def _gone(plan_id: UUID) -> None:
    raise NotFound(f"no plan {plan_id}")


async def test_the_turn_says_so_and_the_conversation_can_still_be_read() -> None:
    reading = read_message("TP must stay 8").model_dump_json(round_trip=True)
    message = Message(uuid4(), 1, datetime(2026, 1, 1, tzinfo=UTC), "TP must stay 8", reading, None, uuid4())
    turn = await _answered(SimpleNamespace(runner=SimpleNamespace(get=_gone)), message, None)
    assert turn.status == "done"
    assert "is not kept any more (say it again)" in turn.statements[0].text
