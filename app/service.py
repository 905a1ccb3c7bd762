"""The running service: its parts, started and stopped together."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta

from fastapi import Request

from agents.advisors.protocol import Advisor
from app.audit import AuditLog
from app.daemon import in_daemon_thread
from app.jobs import Clock, JobRules, JobRunner
from app.reading import rules_of
from app.settings import Settings
from app.storage.database import Database
from app.storage.owner import DataDirLock
from app.storage.traces import TraceStore
from app.wiring import KnowledgeOwner, Planner, TracePlanner, advisor_of, audit_of, close_advisor

RETRY_WARM_S = 15.0
CLOSE_WITHIN_S = 3.0
_log = logging.getLogger("shardwise")


@dataclass(frozen=True)
class Service:
    """What the routes work with."""

    settings: Settings
    clock: Clock
    lock: DataDirLock
    database: Database
    store: TraceStore
    knowledge: KnowledgeOwner
    advisor: Advisor
    runner: JobRunner
    audit: AuditLog | None

    def alone(self) -> AbstractContextManager[None]:
        """Hold the data folder, where it is not shared. DataDirBusy: another process does."""
        return self.lock.held() if self.settings.owns_data_dir else nullcontext()


def build(settings: Settings, planner: Planner | None, clock: Clock) -> Service:
    """Parts of the service, nothing opened yet. `planner` None: the planning graph over the knowledge store.

    InvalidDescription for a file of kernel rules that is not accepted: told now, not with the first trace.
    """
    rules_of(settings)
    database = Database(settings.database)
    store = TraceStore(settings.data_dir / "traces")
    knowledge = KnowledgeOwner(settings)
    advisor = advisor_of(settings)
    audit = audit_of(settings, clock)
    planner = planner or TracePlanner(knowledge.get, settings, advisor, scratch=settings.scratch_dir, audit=audit)
    runner = JobRunner(database, store, planner, clock, _job_rules(settings))
    lock = DataDirLock(settings.data_dir)
    return Service(settings, clock, lock, database, store, knowledge, advisor, runner, audit)


@asynccontextmanager
async def running(service: Service) -> AsyncIterator[None]:
    """Open everything, warm what is slow in the background, and close in reverse order.

    DataDirBusy before anything is touched, where another process owns the data folder.
    """
    with service.alone():
        await _open(service)
        warming = asyncio.create_task(_warm(service.knowledge)) if service.settings.warm_embedder else None
        try:
            yield
        finally:
            if warming is not None:
                warming.cancel()
                with suppress(asyncio.CancelledError):
                    await warming
            await service.runner.stop()
            await _close_knowledge(service.knowledge)
            close_advisor(service.advisor)
            await service.database.close()


def _job_rules(settings: Settings) -> JobRules:
    keep = None if settings.keep_jobs_days is None else timedelta(days=settings.keep_jobs_days)
    return JobRules(workers=settings.workers, limit_s=settings.job_limit_s, sole=settings.owns_jobs, keep=keep)


async def _open(service: Service) -> None:
    service.settings.data_dir.mkdir(parents=True, exist_ok=True)
    if service.settings.owns_data_dir:  # what a process that was killed left there
        shutil.rmtree(service.settings.scratch_dir, ignore_errors=True)
    service.settings.scratch_dir.mkdir(exist_ok=True)
    service.store.open(None if service.settings.owns_data_dir else service.clock() - timedelta(days=1))
    await service.database.open()
    await service.runner.start()


async def _warm(knowledge: KnowledgeOwner) -> None:
    while True:
        try:
            await in_daemon_thread(knowledge.warm)
            return
        except Exception:
            _log.exception("cannot warm the knowledge store; trying again in %s s", RETRY_WARM_S)
            await asyncio.sleep(RETRY_WARM_S)


async def _close_knowledge(knowledge: KnowledgeOwner) -> None:
    """Close the store; one that is still being opened is left to the end of the process."""
    closing = in_daemon_thread(knowledge.close)
    try:
        await asyncio.wait_for(closing, CLOSE_WITHIN_S)
    except TimeoutError:
        _log.warning("the knowledge store is still at work; it ends with the process")


def service_of(request: Request) -> Service:
    """The service behind a request."""
    service: Service = request.app.state.service
    return service
