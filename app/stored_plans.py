"""A plan that the service of this data folder stored, read by a command."""

import asyncio
from uuid import UUID

from agents.findings import PlanResult
from agents.request import PlanRequest
from app.errors import NotFound
from app.history import plan_behind
from app.settings import Settings
from app.storage import jobs
from app.storage.database import Database


def stored_plan(settings: Settings, plan_id: UUID) -> tuple[PlanRequest, PlanResult]:
    """Request and result of a plan. NotFound: there is none here. Errors as `plan_behind`."""
    own = settings.data_dir.resolve() / "shardwise.db"
    if settings.database_url is None and not own.exists():
        raise NotFound(f"no plan {plan_id}: no service has stored plans here", hint="state the outcome without plan_id")
    return asyncio.run(_stored(settings, plan_id))


async def _stored(settings: Settings, plan_id: UUID) -> tuple[PlanRequest, PlanResult]:
    database = Database(settings.database)
    try:
        await database.open()
        async with database.transaction() as session:
            return plan_behind(await jobs.get(session, plan_id), plan_id)
    finally:
        await database.close()
