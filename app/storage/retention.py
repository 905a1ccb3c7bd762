"""What is thrown away: traces that no job needs any more, and jobs that are too old."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Text, delete, func, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.ext.asyncio import AsyncSession

from app.storage.database import JobRow, MessageRow
from app.storage.traces import StoredTrace, TraceStore

FINISHED = ("done", "failed")


async def drop_unreferenced(session: AsyncSession, store: TraceStore, digests: Iterable[str]) -> None:
    """Remove these traces where no job that is not failed refers to them: a failed job is not run again."""
    for digest in dict.fromkeys(digests):
        refers = sql_cast(JobRow.traces, Text).contains(digest, autoescape=True)
        query = select(func.count()).select_from(JobRow).where(JobRow.state != "failed", refers)
        if (await session.scalars(query)).one() == 0:
            store.remove(digest)


async def remove_old(session: AsyncSession, store: TraceStore, before: datetime) -> int:
    """Remove jobs that finished before this time, what was said of them, and the traces only they referred to; returns
    how many jobs.
    """
    statement = (
        delete(JobRow)
        .where(JobRow.state.in_(FINISHED), JobRow.finished_at < before)
        .returning(JobRow.id, JobRow.traces)
        .execution_options(synchronize_session=False)
    )
    removed = (await session.execute(statement)).all()
    talked = delete(MessageRow).where(MessageRow.plan_id.in_([job_id for job_id, _ in removed]))
    await session.execute(talked.execution_options(synchronize_session=False))
    traces = [StoredTrace.model_validate(trace) for _, of_one in removed for trace in of_one]
    await drop_unreferenced(session, store, [trace.sha256 for trace in traces])
    return len(removed)
