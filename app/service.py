"""The running service: its parts, started and stopped together."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from fastapi import Request

from app.jobs import Clock, JobRunner
from app.settings import Settings
from app.storage.database import Database
from app.storage.traces import TraceStore
from app.wiring import KnowledgeOwner, Planner, TracePlanner, advisor_of, limits_of

RETRY_WARM_S = 15.0
_log = logging.getLogger("shardwise")


def utc_now() -> datetime:
    """The clock of the service."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Service:
    """What the routes work with."""

    settings: Settings
    database: Database
    store: TraceStore
    knowledge: KnowledgeOwner
    runner: JobRunner


def build(settings: Settings, planner: Planner | None, clock: Clock) -> Service:
    """Parts of the service, nothing opened yet. `planner` None: the planning graph over the knowledge store."""
    database = Database(settings.database)
    store = TraceStore(settings.data_dir / "traces")
    knowledge = KnowledgeOwner(settings)
    planner = planner or TracePlanner(knowledge.get, limits_of(settings), advisor_of(settings))
    return Service(settings, database, store, knowledge, JobRunner(database, store, planner, clock, settings.workers))


@asynccontextmanager
async def running(service: Service) -> AsyncIterator[None]:
    """Open everything, warm what is slow in the background, and close in reverse order."""
    service.settings.data_dir.mkdir(parents=True, exist_ok=True)
    service.store.open()
    await service.database.open()
    await service.runner.start()
    warming = asyncio.create_task(_warm(service.knowledge)) if service.settings.warm_embedder else None
    try:
        yield
    finally:
        if warming is not None:
            warming.cancel()
            with suppress(asyncio.CancelledError):
                await warming
        await service.runner.stop()
        await asyncio.to_thread(service.knowledge.close)
        await service.database.close()


async def _warm(knowledge: KnowledgeOwner) -> None:
    while True:
        try:
            await asyncio.to_thread(knowledge.warm)
            return
        except Exception:
            _log.exception("cannot warm the knowledge store; trying again in %s s", RETRY_WARM_S)
            await asyncio.sleep(RETRY_WARM_S)


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    return service
