"""Job rows: insert, claim, heartbeat, finish, requeue. Every function is one statement in the caller's transaction.

queued -> running -> done | failed;  running -> queued when the heartbeat stops or the service shuts down.
`heartbeat_at` of a queued job is the time before which nobody takes it; None: take it at once.
A claim raises `attempts`, and whoever writes later must still hold that number: a process that was taken for dead
cannot overwrite the result of the one that took over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from sqlalchemy import CursorResult, Update, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.storage.database import JobRow
from app.storage.traces import StoredTrace

State = Literal["queued", "running", "done", "failed"]


@dataclass(frozen=True)
class Job:
    """A job row as read; `request`, `result` and `problem` are JSON text."""

    id: UUID
    state: State
    attempts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    request: str
    traces: tuple[StoredTrace, ...]
    result: str | None
    problem: str | None


def _job(row: JobRow) -> Job:
    return Job(
        id=row.id,
        state=cast(State, row.state),
        attempts=row.attempts,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        request=row.request,
        traces=tuple(StoredTrace.model_validate(trace) for trace in row.traces),
        result=row.result,
        problem=row.problem,
    )


async def insert(
    session: AsyncSession, job_id: UUID, request: str, traces: Sequence[StoredTrace], now: datetime
) -> None:
    """A new job, queued."""
    files = [trace.model_dump(mode="json") for trace in traces]
    session.add(JobRow(id=job_id, state="queued", attempts=0, created_at=now, request=request, traces=files))
    await session.flush()


async def get(session: AsyncSession, job_id: UUID) -> Job | None:
    """The job with this id, or None."""
    row = await session.get(JobRow, job_id)
    return None if row is None else _job(row)


async def claim(session: AsyncSession, now: datetime) -> Job | None:
    """Take the oldest queued job, or None. Two claimers never get the same one."""
    oldest = (
        select(JobRow.id)
        .where(JobRow.state == "queued", or_(JobRow.heartbeat_at.is_(None), JobRow.heartbeat_at <= now))
        .order_by(JobRow.created_at)
        .limit(1)
        .with_for_update(skip_locked=True)  # Postgres; SQLite has one writer anyway
        .scalar_subquery()
    )
    statement = (
        update(JobRow)
        .where(JobRow.id == oldest, JobRow.state == "queued")
        .values(state="running", attempts=JobRow.attempts + 1, started_at=now, heartbeat_at=now)
        .returning(JobRow)
        .execution_options(synchronize_session=False)
    )
    row = (await session.scalars(statement)).one_or_none()
    return None if row is None else _job(row)


async def _write(session: AsyncSession, statement: Update) -> int:
    result = await session.execute(statement.execution_options(synchronize_session=False))
    return cast(CursorResult[Any], result).rowcount


def _held(job: Job) -> Update:
    return update(JobRow).where(JobRow.id == job.id, JobRow.state == "running", JobRow.attempts == job.attempts)


async def beat(session: AsyncSession, job: Job, now: datetime) -> bool:
    """Say that the claim is alive; False when it was lost."""
    return await _write(session, _held(job).values(heartbeat_at=now)) == 1


async def finish(session: AsyncSession, job: Job, result: str, now: datetime) -> bool:
    """Store the result; False when the claim was lost."""
    return await _write(session, _held(job).values(state="done", result=result, finished_at=now)) == 1


async def fail(session: AsyncSession, job: Job, problem: str, now: datetime) -> bool:
    """Store why there is no result; False when the claim was lost."""
    return await _write(session, _held(job).values(state="failed", problem=problem, finished_at=now)) == 1


async def release(session: AsyncSession, job: Job, not_before: datetime) -> bool:
    """Put a claimed job back, to be taken from a time on; False when the claim was lost. The attempt counts."""
    return await _write(session, _held(job).values(state="queued", heartbeat_at=not_before)) == 1


async def requeue_stale(session: AsyncSession, before: datetime | None, but: Sequence[UUID], max_attempts: int) -> int:
    """Queue running jobs that are stale (see `_stale`) and have attempts left; returns how many."""
    stale = _stale(before, but).where(JobRow.attempts < max_attempts)
    return await _write(session, stale.values(state="queued", heartbeat_at=None))


async def fail_stale(
    session: AsyncSession, before: datetime | None, but: Sequence[UUID], max_attempts: int, problem: str, now: datetime
) -> int:
    """Fail running jobs that are stale (see `_stale`) and have no attempt left; returns how many."""
    stale = _stale(before, but).where(JobRow.attempts >= max_attempts)
    return await _write(session, stale.values(state="failed", problem=problem, finished_at=now))


def _stale(before: datetime | None, but: Sequence[UUID]) -> Update:
    """Running jobs whose heartbeat is older than `before` (None: all of them), except those in `but`."""
    stale = update(JobRow).where(JobRow.state == "running", JobRow.id.not_in(but))
    return stale if before is None else stale.where(JobRow.heartbeat_at < before)
