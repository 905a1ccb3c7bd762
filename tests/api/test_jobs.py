"""Jobs survive what happens to the process that runs them."""

import asyncio
import json
from pathlib import Path
from uuid import UUID

import pytest

from agents.request import PlanRequest
from app.errors import StorageMismatch
from app.jobs import FIRST_BUSY_PAUSE_S, LEASE_S, MAX_ATTEMPTS, MAX_BUSY_ATTEMPTS, JobRules, JobRunner
from app.storage import jobs
from app.storage.database import SCHEMA_VERSION, Database, SchemaRow
from app.storage.traces import TraceStore
from projector.errors import KnowledgeUnavailable, StoreBusy


@pytest.fixture
async def database(tmp_path: Path):
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'jobs.db'}")
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def make_runner(database, tmp_path, planner, clock):
    """A runner beside others over one database; `make_runner(sole=True)` for one that is alone."""
    store = TraceStore(tmp_path / "traces")
    store.open()

    def make(**rules: object) -> JobRunner:
        return JobRunner(database, store, planner, clock, JobRules(**{"sole": False, **rules}))

    return make


@pytest.fixture
async def runner(make_runner):
    return make_runner()


async def queued(database, clock, number: int = 1) -> UUID:
    job_id = UUID(int=number)
    async with database.transaction() as session:
        await jobs.insert(session, job_id, PlanRequest().model_dump_json(), (), clock())
    clock.forward(seconds=1)
    return job_id


async def claimed(database, clock) -> jobs.Job | None:
    async with database.transaction() as session:
        return await jobs.claim(session, clock())


async def state(database, job_id: UUID) -> str:
    async with database.transaction() as session:
        job = await jobs.get(session, job_id)
    assert job is not None
    return job.state


async def test_the_oldest_job_is_claimed_first_and_only_once(database, clock) -> None:
    first, second = await queued(database, clock, 1), await queued(database, clock, 2)
    oldest = await claimed(database, clock)
    assert oldest is not None
    assert oldest.id == first
    # which of several claimants at once gets the other one is chance; only one does
    taken = await asyncio.gather(*(claimed(database, clock) for _ in range(4)))
    assert [job.id for job in taken if job is not None] == [second]


async def test_a_job_whose_process_died_is_queued_again_and_done(database, runner, clock) -> None:
    job_id = await queued(database, clock)
    await claimed(database, clock)
    clock.forward(seconds=LEASE_S + 1)
    await runner.start()
    while await state(database, job_id) != "done":
        await asyncio.sleep(0.01)
    await runner.stop()


async def test_the_only_process_takes_over_at_once(database, make_runner, clock) -> None:
    job_id = await queued(database, clock)
    await claimed(database, clock)
    runner = make_runner(sole=True)
    await runner.start()
    while await state(database, job_id) != "done":
        await asyncio.sleep(0.01)
    await runner.stop()


async def test_interrupted_jobs_are_looked_for_while_others_run(
    database, make_runner, planner, clock, monkeypatch
) -> None:
    monkeypatch.setattr("app.jobs.LEASE_S", 0.04)
    planner.gate.clear()
    runner = make_runner()
    await runner.start()
    await runner.submit(PlanRequest(), ())
    await asyncio.to_thread(planner.entered.acquire)
    lost = await queued(database, clock)
    await claimed(database, clock)
    clock.forward(seconds=1)
    while await state(database, lost) != "queued":
        await asyncio.sleep(0.01)
    planner.gate.set()
    await runner.stop()


async def test_a_job_of_this_process_is_never_taken_for_interrupted(database, runner, planner, clock) -> None:
    planner.gate.clear()
    await runner.start()
    job_id = await runner.submit(PlanRequest(), ())
    await asyncio.to_thread(planner.entered.acquire)
    clock.forward(seconds=2 * LEASE_S)
    assert await runner.requeue_interrupted() == 0
    assert await state(database, job_id) == "running"
    planner.gate.set()
    await runner.stop()


async def test_a_wait_ends_when_another_process_finishes_the_job(database, runner, clock, monkeypatch) -> None:
    monkeypatch.setattr("app.jobs.ASK_ROW_S", 0.01)
    job_id = await queued(database, clock)
    waiting = asyncio.create_task(runner.wait(job_id, 60))
    job = await claimed(database, clock)
    async with database.transaction() as session:
        assert await jobs.finish(session, job, "{}", clock())
    assert (await waiting).state == "done"
    assert runner._finished == {}


async def test_a_service_that_stops_answers_whoever_waits(database, runner, clock) -> None:
    job_id = await queued(database, clock)
    waiting = asyncio.create_task(runner.wait(job_id, 60))
    await asyncio.sleep(0)
    runner.end_waits()
    assert (await waiting).state == "queued"


async def test_a_job_past_its_limit_fails_and_its_worker_is_free_again(make_runner, planner) -> None:
    runner = make_runner(limit_s=0.05)
    await runner.start()
    planner.gate.clear()
    stuck = await runner.wait(await runner.submit(PlanRequest(), ()), 60)
    assert stuck.state == "failed"
    problem = json.loads(stuck.problem)
    assert (problem["status"], problem["code"], problem["instance"]) == (504, "job_time_limit", f"/v1/plans/{stuck.id}")
    assert "SHARDWISE_JOB_LIMIT_S" in problem["hint"]
    planner.gate.set()
    assert (await runner.wait(await runner.submit(PlanRequest(), ()), 60)).state == "done"
    assert (await runner.get(stuck.id)).state == "failed"
    await runner.stop()


async def test_a_busy_store_is_waited_for_where_processes_share_it(make_runner, planner, clock, monkeypatch) -> None:
    monkeypatch.setattr("app.jobs.ASK_QUEUE_S", 0.01)
    planner.error = StoreBusy("another process owns the store")
    runner = make_runner()
    await runner.start()
    job_id = await runner.submit(PlanRequest(), ())
    while (job := await runner.get(job_id)).attempts == 0 or job.state != "queued":
        await asyncio.sleep(0.01)
    assert await claimed_now(runner) is None
    planner.error = None
    clock.forward(seconds=FIRST_BUSY_PAUSE_S)
    assert (await runner.wait(job_id, 60)).state == "done"
    await runner.stop()


async def claimed_now(runner) -> jobs.Job | None:
    return await runner._claim()


async def test_a_busy_store_is_given_up_at_last(make_runner, planner, clock, monkeypatch) -> None:
    monkeypatch.setattr("app.jobs.ASK_QUEUE_S", 0.01)
    monkeypatch.setattr("app.jobs.FIRST_BUSY_PAUSE_S", 0)
    planner.error = KnowledgeUnavailable("no server")
    runner = make_runner()
    await runner.start()
    job = await runner.wait(await runner.submit(PlanRequest(), ()), 60)
    assert (job.state, job.attempts) == ("failed", MAX_BUSY_ATTEMPTS)
    assert json.loads(job.problem)["code"] == "knowledge_unavailable"
    await runner.stop()


async def test_a_busy_store_fails_the_job_where_one_process_is_alone(make_runner, planner) -> None:
    planner.error = StoreBusy("another process owns the store")
    runner = make_runner(sole=True)
    await runner.start()
    job = await runner.wait(await runner.submit(PlanRequest(), ()), 60)
    assert (job.state, job.attempts) == ("failed", 1)
    await runner.stop()


async def test_a_plan_outlives_errors_of_the_database(make_runner, planner, monkeypatch, caplog) -> None:
    failing = {"beat": 1, "finish": 2}

    def fails_at_first(name):
        real = getattr(jobs, name)

        async def write(*arguments):
            if failing[name] > 0:
                failing[name] -= 1
                raise OSError(f"no {name} today")
            return await real(*arguments)

        return write

    for name in failing:
        monkeypatch.setattr(jobs, name, fails_at_first(name))
    monkeypatch.setattr("app.jobs.BEAT_S", 0.01)
    monkeypatch.setattr("app.jobs.STORE_RETRY_S", (0, 0))
    planner.gate.clear()
    runner = make_runner()
    await runner.start()
    job_id = await runner.submit(PlanRequest(), ())
    while failing["beat"]:
        await asyncio.sleep(0.01)
    planner.gate.set()
    assert (await runner.wait(job_id, 60)).state == "done"
    assert "no finish today" in caplog.text
    await runner.stop()


async def test_a_job_that_still_beats_is_left_alone(database, runner, clock) -> None:
    job_id = await queued(database, clock)
    job = await claimed(database, clock)
    clock.forward(seconds=LEASE_S)
    async with database.transaction() as session:
        assert await jobs.beat(session, job, clock())
    clock.forward(seconds=LEASE_S)
    assert await runner.requeue_interrupted() == 0
    assert await state(database, job_id) == "running"


async def test_who_lost_a_job_cannot_write_its_result(database, runner, clock) -> None:
    job_id = await queued(database, clock)
    lost = await claimed(database, clock)
    clock.forward(seconds=LEASE_S + 1)
    assert await runner.requeue_interrupted() == 1
    held = await claimed(database, clock)
    async with database.transaction() as session:
        assert not await jobs.beat(session, lost, clock())
        assert not await jobs.finish(session, lost, "{}", clock())
        assert await jobs.finish(session, held, "{}", clock())
    assert await state(database, job_id) == "done"


async def test_a_job_that_kills_its_process_every_time_is_given_up(database, runner, clock) -> None:
    job_id = await queued(database, clock)
    for _ in range(MAX_ATTEMPTS):
        await claimed(database, clock)
        clock.forward(seconds=LEASE_S + 1)
        await runner.requeue_interrupted()
    job = await runner.get(job_id)
    assert job.state == "failed"
    assert "job_interrupted" in job.problem


async def test_a_service_that_stops_puts_its_running_job_back_and_the_attempt_counts(
    make_runner, planner, monkeypatch
) -> None:
    monkeypatch.setattr("app.jobs.GRACE_S", 0)
    planner.gate.clear()
    job_id = None
    for attempt in range(1, MAX_ATTEMPTS + 1):
        runner = make_runner()
        await runner.start()
        job_id = job_id or await runner.submit(PlanRequest(), ())
        await asyncio.to_thread(planner.entered.acquire)
        await runner.stop()
        job = await runner.get(job_id)
        assert job.attempts == attempt
        assert job.state == ("failed" if attempt == MAX_ATTEMPTS else "queued")
    assert "job_interrupted" in job.problem


async def test_a_service_that_stops_lets_a_job_end_that_is_about_to(database, runner, planner) -> None:
    planner.gate.clear()
    await runner.start()
    job_id = await runner.submit(PlanRequest(), ())
    await asyncio.to_thread(planner.entered.acquire)
    stopping = asyncio.create_task(runner.stop())
    await asyncio.sleep(0)
    planner.gate.set()
    await stopping
    assert await state(database, job_id) == "done"


async def test_plans_outlive_the_service(serve) -> None:
    async with serve() as client:
        posted = (await client.post("/v1/plans", json={})).json()
    async with serve() as client:
        assert (await client.get(posted["links"]["self"])).json() == posted


async def test_a_database_of_another_version_is_refused(database) -> None:
    async with database.transaction() as session:
        row = await session.get(SchemaRow, SCHEMA_VERSION)
        row.version = SCHEMA_VERSION + 1
    with pytest.raises(StorageMismatch, match=f"schema version {SCHEMA_VERSION + 1}"):
        await database.open()


async def test_a_stored_plan_that_no_longer_reads_says_so(serve, tmp_path) -> None:
    async with serve() as client:
        posted = (await client.post("/v1/plans", json={})).json()
        database = Database(f"sqlite+aiosqlite:///{tmp_path / 'data' / 'shardwise.db'}")
        async with database.transaction() as session:
            row = await session.get(jobs.JobRow, UUID(posted["id"]))
            row.result = '{"plan": {}, "trace": null}'
        await database.close()
        answer = await client.get(posted["links"]["self"])
        assert (answer.status_code, answer.json()["code"]) == (500, "storage_mismatch")


async def test_sqlite_runs_with_the_pragmas_that_concurrency_needs(database) -> None:
    async with database.engine.connect() as connection:
        mode = await connection.exec_driver_sql("PRAGMA journal_mode")
        timeout = await connection.exec_driver_sql("PRAGMA busy_timeout")
        assert (mode.scalar_one(), timeout.scalar_one()) == ("wal", 5000)
