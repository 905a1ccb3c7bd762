"""Jobs survive what happens to the process that runs them."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from agents.request import PlanRequest
from app.errors import StorageMismatch
from app.jobs import LEASE_S, MAX_ATTEMPTS, JobRunner
from app.storage import jobs
from app.storage.database import SCHEMA_VERSION, Database, SchemaRow
from app.storage.traces import TraceStore


@pytest.fixture
async def database(tmp_path: Path):
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'jobs.db'}")
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def runner(database, tmp_path, planner, clock):
    store = TraceStore(tmp_path / "traces")
    store.open()
    return JobRunner(database, store, planner, clock, workers=1)


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
    taken = await asyncio.gather(*(claimed(database, clock) for _ in range(4)))
    assert [job.id for job in taken if job is not None] == [first, second]


async def test_a_job_whose_process_died_is_queued_again_and_done(database, runner, clock) -> None:
    job_id = await queued(database, clock)
    await claimed(database, clock)
    clock.forward(seconds=LEASE_S + 1)
    await runner.start()
    while await state(database, job_id) != "done":
        await asyncio.sleep(0.01)
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


async def test_a_service_that_stops_puts_its_running_job_back(database, runner, planner, clock, monkeypatch) -> None:
    monkeypatch.setattr("app.jobs.GRACE_S", 0)
    planner.gate.clear()
    await runner.start()
    job_id = await runner.submit(PlanRequest(), ())
    await asyncio.to_thread(planner.entered.acquire)
    await runner.stop()
    job = await runner.get(job_id)
    assert (job.state, job.attempts) == ("queued", 0)
    planner.gate.set()


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
