"""Which uploaded traces stay, and for how long."""

import os
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from app.storage.traces import TraceStore
from projector.errors import CorruptTrace

RAW = {"Content-Type": "application/octet-stream"}
DIGEST = sha256(b"trace").hexdigest()


@pytest.fixture
def kept(tmp_path: Path):
    folder = tmp_path / "data" / "traces"
    return lambda: [path.name for path in folder.iterdir() if path.is_file()]


async def post(client, content: bytes = b"trace"):
    return await client.post("/v1/plans", content=content, headers=RAW)


async def test_a_trace_that_cannot_be_planned_is_not_kept(client, planner, kept) -> None:
    planner.error = CorruptTrace("broken")
    for _ in range(2):
        assert (await post(client)).status_code == 400
        assert kept() == []


async def test_a_trace_stays_while_another_plan_refers_to_it(client, planner, kept) -> None:
    assert (await post(client)).status_code == 200
    planner.error = CorruptTrace("broken")
    assert (await post(client)).status_code == 400
    assert kept() == [DIGEST]


async def test_a_trace_stays_where_the_fault_is_ours(client, planner, kept) -> None:
    planner.error = RuntimeError("a fault")
    assert (await post(client)).status_code == 500
    assert kept() == [DIGEST]


def test_a_trace_on_its_way_to_a_job_is_not_removed(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    store.open()
    first, second = store.receive("a"), store.receive("b")
    first.write(b"trace")
    second.write(b"trace")
    stored = [first.commit(), second.commit()]
    store.settle(stored[:1])
    store.remove(DIGEST)
    assert store.path(stored[1]).exists()
    store.settle(stored[1:])
    store.remove(DIGEST)
    assert not store.path(stored[1]).exists()


async def test_plans_are_kept_for_ever_unless_a_limit_is_set(serve, clock, kept) -> None:
    async with serve() as client:
        location = (await post(client)).json()["links"]["self"]
    clock.forward(days=5000)
    async with serve() as client:
        assert (await client.get(location)).status_code == 200
    async with serve(keep_jobs_days=5001) as client:
        assert (await client.get(location)).status_code == 200
    clock.forward(days=2)
    async with serve(keep_jobs_days=5001) as client:
        assert (await client.get(location)).status_code == 404
    assert kept() == []


async def test_a_trace_of_an_old_plan_stays_while_a_new_one_refers_to_it(serve, clock, kept) -> None:
    async with serve() as client:
        await post(client)
        clock.forward(days=2)
        await post(client)
    async with serve(keep_jobs_days=1) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert kept() == [DIGEST]


def test_half_an_upload_is_removed_at_once_or_after_a_day_where_others_may_still_write_it(tmp_path, clock) -> None:
    store = TraceStore(tmp_path)
    store.open()
    for name, hours in (("old", 25), ("young", 1)):
        (store.incoming / name).write_bytes(b"half")
        written = (clock() - timedelta(hours=hours)).timestamp()
        os.utime(store.incoming / name, (written, written))
    store.open(clock() - timedelta(days=1))
    assert [path.name for path in store.incoming.iterdir()] == ["young"]
    store.open()
    assert list(store.incoming.iterdir()) == []


async def test_errors_name_a_trace_as_its_sender_did_or_by_its_place(client, planner) -> None:
    await client.post("/v1/plans", files=[("trace", ("rank0.json", b"0")), ("trace", ("rank\u202e1.json", b"1"))])
    assert planner.names == ["rank0.json", "rank?1.json"]
    await post(client)
    assert planner.names == ["trace 1"]


async def test_a_trace_that_cannot_be_read_is_named_as_its_sender_did(serve, tmp_path: Path) -> None:
    async with serve(planner=None) as client:
        answer = await client.post("/v1/plans", files={"trace": ("rank0.json", b"no trace")})
    assert answer.status_code == 415
    assert "rank0.json" in answer.json()["detail"]
    assert sha256(b"no trace").hexdigest() not in answer.text
