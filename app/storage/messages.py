"""Message rows: what was said of a plan, in order. Every function works in the caller's transaction."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.storage.database import MessageRow


@dataclass(frozen=True)
class Message:
    """A message as read; reading and answer are JSON text. answer None: the plan it asks for is not done yet."""

    plan_id: UUID
    number: int
    created_at: datetime
    text: str
    reading: str
    answer: str | None
    planned_id: UUID | None


def _message(row: MessageRow) -> Message:
    return Message(
        plan_id=row.plan_id,
        number=row.number,
        created_at=row.created_at,
        text=row.text,
        reading=row.reading,
        answer=row.answer,
        planned_id=row.planned_id,
    )


async def insert(
    session: AsyncSession,
    plan_id: UUID,
    text: str,
    reading: str,
    answer: str | None,
    planned_id: UUID | None,
    now: datetime,
) -> Message:
    """The next message of the plan. IntegrityError where another one took its number: try again."""
    last = (await session.scalars(select(func.max(MessageRow.number)).where(MessageRow.plan_id == plan_id))).one()
    row = MessageRow(
        plan_id=plan_id,
        number=(last or 0) + 1,
        created_at=now,
        text=text,
        reading=reading,
        answer=answer,
        planned_id=planned_id,
    )
    session.add(row)
    await session.flush()
    return _message(row)


async def of_plan(session: AsyncSession, plan_id: UUID) -> list[Message]:
    """All messages about a plan, the first one first."""
    rows = await session.scalars(select(MessageRow).where(MessageRow.plan_id == plan_id).order_by(MessageRow.number))
    return [_message(row) for row in rows]


async def answered(session: AsyncSession, message: Message, answer: str) -> None:
    """Store the answer that was waited for."""
    row = (MessageRow.plan_id == message.plan_id, MessageRow.number == message.number)
    await session.execute(update(MessageRow).where(*row).values(answer=answer))
