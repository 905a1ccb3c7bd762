"""The job runner: rows in, worker threads, results out.

The runner claims the oldest queued job whenever a worker is free, plans it in a thread, beats while it runs, and
stores the result. A job that passes its limit fails and its thread is left to itself. Jobs left running by a process
that died are queued again: at once where this process is the only one, else once their heartbeat is older than the
lease.
"""

import asyncio
import logging
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncSession

from agents.request import PlanRequest
from app.daemon import in_daemon_thread
from app.errors import JobInterrupted, JobTimeLimit, NotFound
from app.problems import problem_of
from app.schemas import JobResult, Problem, TraceHeadline
from app.storage import jobs as rows
from app.storage.database import Database
from app.storage.jobs import Job
from app.storage.retention import drop_unreferenced, remove_old
from app.storage.traces import StoredTrace, TraceStore
from app.wiring import Planner

LEASE_S = 60.0
BEAT_S = 5.0
GRACE_S = 3.0
ASK_ROW_S = 1.0  # how often a wait looks for a job that another process finished
ASK_QUEUE_S = 5.0  # how often an idle runner looks for a job that another process inserted
MAX_ATTEMPTS = 3
STORE_RETRY_S = (0.2, 1.0, 5.0)
BUSY_CODES = ("store_busy", "knowledge_unavailable", "workers_unavailable")
MAX_BUSY_ATTEMPTS = 8
FIRST_BUSY_PAUSE_S, LONGEST_BUSY_PAUSE_S = 2.0, 60.0

Clock = Callable[[], datetime]
Write = Callable[[AsyncSession], Awaitable[bool]]
_log = logging.getLogger("shardwise")


@dataclass(frozen=True)
class JobRules:
    """How jobs are run.

    workers: at the same time. limit_s: longest one may take. sole: no other process works on these rows.
    keep: how long finished jobs are kept; None: for ever.
    """

    workers: int = 1
    limit_s: float = 600.0
    sole: bool = True
    keep: timedelta | None = None


@dataclass(frozen=True)
class Attempt:
    """What came of one run: JSON text of the result, or the problem where it failed."""

    result: str = ""
    problem: Problem | None = None


class JobRunner:
    """Runs the jobs of one database in this process. Start it before submitting, stop it at the end."""

    def __init__(
        self, database: Database, store: TraceStore, planner: Planner, clock: Clock, rules: JobRules = JobRules()
    ) -> None:
        self._database = database
        self._store = store
        self._planner = planner
        self._clock = clock
        self._rules = rules
        self._running: dict[asyncio.Task[None], UUID] = {}
        self._finished: dict[UUID, asyncio.Event] = {}
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._give_up = asyncio.Event()
        self._background: list[asyncio.Task[None]] = []
        # held while a trace gains its first reference, or loses its last one
        self._referring = asyncio.Lock()

    async def start(self) -> None:
        """Take over what a dead process left, then work in the background."""
        await self.requeue_interrupted(at_once=self._rules.sole)
        self._background = [
            asyncio.create_task(self._dispatch(), name="job dispatcher"),
            asyncio.create_task(self._repeat(self.requeue_interrupted, LEASE_S / 4), name="job requeue"),
        ]
        if self._rules.keep is not None:
            await self.remove_old()
            daily_s = timedelta(days=1).total_seconds()
            self._background.append(asyncio.create_task(self._repeat(self.remove_old, daily_s), name="job retention"))

    async def stop(self) -> None:
        """Claim nothing more, give running jobs a moment to end, and put the rest back into the queue.

        Nothing is cancelled: a database call that is cut off would leave its connection behind.
        """
        self.end_waits()
        self._wake.set()
        await asyncio.gather(*self._background)
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE_S)
        self._give_up.set()
        await asyncio.gather(*self._running, return_exceptions=True)

    def end_waits(self) -> None:
        """Answer whoever waits with the job as it stands: the service is stopping."""
        self._stopping.set()
        for finished in self._finished.values():
            finished.set()

    async def submit(self, request: PlanRequest, traces: Sequence[StoredTrace]) -> UUID:
        """Insert a job and wake the dispatcher."""
        job_id = uuid4()
        async with self._referring:
            try:
                async with self._database.transaction() as session:
                    # what was not written must stay unwritten: a default is no statement
                    text = request.model_dump_json(round_trip=True, exclude_unset=True)
                    await rows.insert(session, job_id, text, traces, self._clock())
            finally:
                self._store.settle(traces)
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
        """The job as it stands when it is over or the time is up, whichever process runs it."""
        time = asyncio.get_running_loop().time
        until = time() + timeout_s
        finished = self._finished.setdefault(job_id, asyncio.Event())
        try:
            while True:
                job = await self.get(job_id)
                left_s = until - time()
                if job.state in ("done", "failed") or left_s <= 0 or self._stopping.is_set():
                    return job
                await _is_set_within(finished, min(left_s, ASK_ROW_S))
        finally:
            self._finished.pop(job_id, None)

    async def requeue_interrupted(self, *, at_once: bool = False) -> int:
        """Queue again what has stopped beating, fail what did so too often; returns how many were queued.

        at_once: whatever runs, for nobody but this process could be running it.
        """
        now = self._clock()
        before = None if at_once else now - timedelta(seconds=LEASE_S)
        ours = tuple(self._running.values())
        async with self._database.transaction() as session:
            failed = await rows.fail_stale(session, before, ours, MAX_ATTEMPTS, _cut_off().model_dump_json(), now)
            queued = await rows.requeue_stale(session, before, ours, MAX_ATTEMPTS)
        if queued or failed:
            _log.warning("interrupted jobs: %d queued again, %d given up", queued, failed)
            self._wake.set()
        return queued

    async def remove_old(self) -> int:
        """Remove finished jobs older than they are kept, with traces nobody refers to; returns how many jobs."""
        if self._rules.keep is None:
            return 0
        async with self._referring, self._database.transaction() as session:
            removed = await remove_old(session, self._store, self._clock() - self._rules.keep)
        if removed:
            _log.info("%d finished jobs were older than %s and are removed", removed, self._rules.keep)
        return removed

    async def _repeat(self, work: Callable[[], Awaitable[object]], every_s: float) -> None:
        """Until the service stops; an error is logged, and the next turn tries again."""
        while not await _is_set_within(self._stopping, every_s):
            try:
                await work()
            except Exception:
                _log.exception("upkeep of the jobs failed; trying again in %s s", every_s)

    async def _dispatch(self) -> None:
        """Start a job whenever a worker is free."""
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                if len(self._running) < self._rules.workers and (job := await self._claim()) is not None:
                    task = asyncio.create_task(self._run(job))
                    self._running[task] = job.id
                    task.add_done_callback(self._ran)
                else:
                    await _is_set_within(self._wake, ASK_QUEUE_S)
            except Exception:
                _log.exception("cannot claim a job; trying again in %s s", BEAT_S)
                await _is_set_within(self._wake, BEAT_S)

    async def _claim(self) -> Job | None:
        async with self._database.transaction() as session:
            return await rows.claim(session, self._clock())

    def _ran(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._wake.set()
        if (error := task.exception()) is not None:
            _log.error("a job's outcome could not be stored; it will be run again", exc_info=error)

    async def _run(self, job: Job) -> None:
        """Plan in a thread and store what came of it; put the job back when the service stops first."""
        attempt = await self._planned(job)
        await self._store_outcome(job, self._outcome(job, attempt))
        problem = attempt.problem if attempt is not None else None
        if problem is not None and HTTPStatus.BAD_REQUEST <= problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            await self._drop_traces(job)
        if (finished := self._finished.get(job.id)) is not None:
            finished.set()

    async def _drop_traces(self, job: Job) -> None:
        """Of a job that nobody could plan: nobody will ask for its traces again."""
        try:
            async with self._referring, self._database.transaction() as session:
                await drop_unreferenced(session, self._store, [trace.sha256 for trace in job.traces])
        except Exception:
            _log.exception("the traces of plan %s could not be removed", job.id)

    async def _planned(self, job: Job) -> Attempt | None:
        """What came of the job, or None where the service stopped first. Past its limit, its thread is abandoned."""
        time = asyncio.get_running_loop().time
        until = time() + self._rules.limit_s
        planning = in_daemon_thread(self._attempt, job)
        giving_up = asyncio.create_task(self._give_up.wait())
        try:
            while not planning.done() and not self._give_up.is_set() and time() < until:
                pause_s = min(BEAT_S, max(until - time(), 0))
                done, _ = await asyncio.wait((planning, giving_up), timeout=pause_s, return_when=FIRST_COMPLETED)
                if not done:
                    await self._beat(job)
        finally:
            giving_up.cancel()
        if planning.done():
            return planning.result()
        planning.cancel()
        if self._give_up.is_set():
            return None
        _log.error("plan %s passed its limit of %g s; its thread is abandoned", job.id, self._rules.limit_s)
        error = JobTimeLimit(
            f"the plan took longer than the limit of {self._rules.limit_s:g} s",
            hint="send fewer or smaller traces, narrow the search with constraints, or raise SHARDWISE_JOB_LIMIT_S",
        )
        return Attempt(problem=problem_of(error, _path(job)))

    async def _beat(self, job: Job) -> None:
        try:
            async with self._database.transaction() as session:
                await rows.beat(session, job, self._clock())
        except Exception:
            _log.exception("plan %s could not beat; going on", job.id)

    def _outcome(self, job: Job, attempt: Attempt | None) -> Write:
        """What is to be written of a run."""
        now = self._clock()
        if attempt is None and job.attempts < MAX_ATTEMPTS:
            return lambda session: rows.release(session, job, now)
        problem = _cut_off(_path(job)) if attempt is None else attempt.problem
        if problem is None:
            result = attempt.result if attempt is not None else ""
            return lambda session: rows.finish(session, job, result, now)
        if problem.code in BUSY_CODES and not self._rules.sole and job.attempts < MAX_BUSY_ATTEMPTS:
            pause_s = min(FIRST_BUSY_PAUSE_S * 2 ** (job.attempts - 1), LONGEST_BUSY_PAUSE_S)
            _log.warning("plan %s: %s; trying again in %g s", job.id, problem.detail, pause_s)
            return lambda session: rows.release(session, job, now + timedelta(seconds=pause_s))
        return lambda session: rows.fail(session, job, problem.model_dump_json(), now)

    async def _store_outcome(self, job: Job, write: Write) -> None:
        """Write it, several times where the database fails; the last error is raised."""
        for pause_s in (*STORE_RETRY_S, None):
            try:
                async with self._database.transaction() as session:
                    held = await write(session)
                break
            except Exception:
                if pause_s is None:
                    raise
                _log.exception("the outcome of plan %s could not be stored; trying again in %g s", job.id, pause_s)
                await asyncio.sleep(pause_s)
        if not held:
            _log.warning("plan %s was taken over by another process; this outcome is discarded", job.id)

    def _attempt(self, job: Job) -> Attempt:
        """Plan, in a worker thread; every error becomes the job's problem."""
        try:
            request = PlanRequest.model_validate_json(job.request)
            paths = [self._store.path(trace) for trace in job.traces]
            names = [trace.name or f"trace {number}" for number, trace in enumerate(job.traces, 1)]
            outcome = self._planner.plan(request, paths, names, job.id)
            headline = TraceHeadline.of(outcome.summary) if outcome.summary is not None else None
            result = JobResult(plan=outcome.result, trace=headline, launch=outcome.launch)
            return Attempt(result=result.model_dump_json(round_trip=True))
        except Exception as error:
            return Attempt(problem=problem_of(error, _path(job)))


def _path(job: Job) -> str:
    return f"/v1/plans/{job.id}"


def _cut_off(instance: str | None = None) -> Problem:
    error = JobInterrupted(f"started {MAX_ATTEMPTS} times and cut off each time", hint="send the request again")
    return problem_of(error, instance)


async def _is_set_within(event: asyncio.Event, timeout_s: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout_s)
    return event.is_set()
