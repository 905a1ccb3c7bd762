"""The job runner: rows in, worker threads, results out.

The runner claims the oldest queued job whenever a worker is free, plans it in a thread, beats while it runs, and
stores the result. Jobs left running by a process that died are queued again once their heartbeat is older than the
lease.
"""

import asyncio
import logging
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from agents.request import PlanRequest
from app.errors import JobInterrupted, NotFound
from app.problems import problem_of
from app.schemas import JobResult, TraceHeadline
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.jobs import Job
from app.storage.traces import StoredTrace, TraceStore
from app.wiring import Planner

LEASE_S = 60.0
BEAT_S = 5.0
GRACE_S = 10.0
MAX_ATTEMPTS = 3

Clock = Callable[[], datetime]
_log = logging.getLogger("shardwise")


@dataclass(frozen=True)
class Attempt:
    """What came of one run: JSON text of the result, or of the problem where it failed."""

    ok: bool
    text: str


class JobRunner:
    """Runs the jobs of one database in this process. Start it before submitting, stop it at the end."""

    def __init__(self, database: Database, store: TraceStore, planner: Planner, clock: Clock, workers: int) -> None:
        self._database = database
        self._store = store
        self._planner = planner
        self._clock = clock
        self._workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="plan")
        self._running: set[asyncio.Task[None]] = set()
        self._finished: dict[UUID, asyncio.Event] = {}
        self._wake = asyncio.Event()
        self._stopping = False
        self._give_up = asyncio.Event()
        self._dispatcher: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take over what a dead process left, then work in the background."""
        await self.requeue_interrupted()
        self._dispatcher = asyncio.create_task(self._dispatch(), name="job dispatcher")

    async def stop(self) -> None:
        """Claim nothing more, give running jobs a moment to end, and put the rest back into the queue.

        Nothing is cancelled: a database call that is cut off would leave its connection behind.
        """
        self._stopping = True
        self._wake.set()
        if self._dispatcher is not None:
            await self._dispatcher
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE_S)
        self._give_up.set()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def submit(self, request: PlanRequest, traces: Sequence[StoredTrace]) -> UUID:
        """Insert a job and wake the dispatcher."""
        job_id = uuid4()
        self._finished[job_id] = asyncio.Event()
        async with self._database.transaction() as session:
            await rows.insert(session, job_id, request.model_dump_json(round_trip=True), traces, self._clock())
        self._wake.set()
        return job_id

    async def get(self, job_id: UUID) -> Job:
        """The job as it stands; NotFound for an unknown id."""
        async with self._database.transaction() as session:
            job = await rows.get(session, job_id)
        if job is None:
            raise NotFound(f"no plan {job_id}", hint="POST /v1/plans makes one")
        return job

    async def wait(self, job_id: UUID, timeout_s: float) -> Job:
        """The job as it stands when it is over or the time is up."""
        finished = self._finished.get(job_id)
        if finished is not None:
            await _is_set_within(finished, timeout_s)
        return await self.get(job_id)

    async def requeue_interrupted(self) -> int:
        """Queue again what has stopped beating, fail what did so too often; returns how many were queued."""
        now = self._clock()
        before = now - timedelta(seconds=LEASE_S)
        cut_off = problem_of(JobInterrupted(f"cut off {MAX_ATTEMPTS} times", hint="send the request again"))
        async with self._database.transaction() as session:
            failed = await rows.fail_stale(session, before, MAX_ATTEMPTS, cut_off.model_dump_json(), now)
            queued = await rows.requeue_stale(session, before, MAX_ATTEMPTS)
        if queued or failed:
            _log.warning("interrupted jobs: %d queued again, %d given up", queued, failed)
        return queued

    async def _dispatch(self) -> None:
        """Start a job whenever a worker is free; once a lease look for interrupted ones."""
        while not self._stopping:
            self._wake.clear()
            try:
                if len(self._running) < self._workers and (job := await self._claim()) is not None:
                    task = asyncio.create_task(self._run(job))
                    self._running.add(task)
                    task.add_done_callback(self._ran)
                elif not await _is_set_within(self._wake, LEASE_S):
                    await self.requeue_interrupted()
            except Exception:
                _log.exception("cannot claim a job; trying again in %s s", BEAT_S)
                await _is_set_within(self._wake, BEAT_S)

    async def _claim(self) -> Job | None:
        async with self._database.transaction() as session:
            return await rows.claim(session, self._clock())

    def _ran(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._wake.set()
        if (error := task.exception()) is not None:
            _log.error("a job's outcome could not be stored; it will be run again", exc_info=error)

    async def _run(self, job: Job) -> None:
        """Plan in a thread and store what came of it; put the job back when the service stops first."""
        planning = asyncio.get_running_loop().run_in_executor(self._threads, self._attempt, job)
        giving_up = asyncio.create_task(self._give_up.wait())
        either: set[asyncio.Future[Any]] = {planning, giving_up}
        try:
            while not (await asyncio.wait(either, timeout=BEAT_S, return_when=FIRST_COMPLETED))[0]:
                async with self._database.transaction() as session:
                    await rows.beat(session, job, self._clock())
        finally:
            giving_up.cancel()
        async with self._database.transaction() as session:
            if not planning.done():
                await rows.release(session, job)
            elif planning.result().ok:
                await rows.finish(session, job, planning.result().text, self._clock())
            else:
                await rows.fail(session, job, planning.result().text, self._clock())
        if (finished := self._finished.pop(job.id, None)) is not None:
            finished.set()

    def _attempt(self, job: Job) -> Attempt:
        """Plan, in a worker thread; every error becomes the job's problem."""
        try:
            request = PlanRequest.model_validate_json(job.request)
            outcome = self._planner.plan(request, [self._store.path(trace) for trace in job.traces])
            headline = TraceHeadline.of(outcome.summary) if outcome.summary is not None else None
            result = JobResult(plan=outcome.result, trace=headline, launch=outcome.launch)
            return Attempt(ok=True, text=result.model_dump_json(round_trip=True))
        except Exception as error:
            return Attempt(ok=False, text=problem_of(error, f"/v1/plans/{job.id}").model_dump_json())


async def _is_set_within(event: asyncio.Event, timeout_s: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout_s)
    return event.is_set()
