"""POST /v1/plans and GET /v1/plans/{id}: three forms, the answer, waiting, failing."""

import asyncio
import gzip
import json
import threading
from hashlib import sha256
from pathlib import Path

import httpx

from projector.errors import CorruptTrace

TRACE = gzip.compress(b'{"traceEvents": []}')
RAW = {"Content-Type": "application/gzip"}


async def test_a_form_with_a_trace_and_a_request_gives_the_whole_answer(client, planner) -> None:
    form = {"request": json.dumps({"hardware": ["tpu-v5p"], "wait": 30})}
    answer = await client.post("/v1/plans", data=form, files={"trace": ("rank0.json.gz", TRACE)})
    body = answer.json()
    assert answer.status_code == 200
    assert body["status"] == "done"
    assert body["diagnosis"]["bottleneck"] == "communication"
    assert [proposal["rank"] for proposal in body["proposals"]] == [1, 2, 3]
    assert {"plan", "citations", "evidence", "projections", "confidence"} <= set(body["proposals"][0])
    assert body["assumptions"][0]["field"] == "workload.seq_len"
    assert body["trace"]["window_ns"] == 1_000_000
    assert body["trace"]["chip"] == "NVIDIA B200"
    assert body["files"] == [{"name": "rank0.json.gz", "size_bytes": len(TRACE), "sha256": sha256(TRACE).hexdigest()}]
    request, traces = planner.asked[0]
    assert request.hardware == ("tpu-v5p",)
    assert traces == [TRACE]


async def test_a_form_takes_one_trace_file_a_rank(client, planner) -> None:
    files = [("trace", ("rank0.json", b"zero")), ("trace", ("rank1.json", b"one"))]
    answer = await client.post("/v1/plans", files=files)
    assert answer.status_code == 200
    assert planner.asked[0][1] == [b"zero", b"one"]


async def test_a_trace_alone_is_sent_raw(client, planner) -> None:
    for content_type in ("application/octet-stream", "application/gzip", "application/x-gzip"):
        answer = await client.post("/v1/plans", content=TRACE, headers={"Content-Type": content_type})
        assert answer.status_code == 200
    assert [traces for _, traces in planner.asked] == [[TRACE]] * 3


async def test_a_request_alone_is_json(client, planner) -> None:
    request = {"workload": {"model": "llama3-70b", "seq_len": 4096, "global_batch": 64}}
    answer = await client.post("/v1/plans", json=request)
    assert answer.status_code == 200
    assert answer.json()["trace"] is None
    asked, traces = planner.asked[0]
    assert asked.workload is not None
    assert asked.workload.seq_len == 4096
    assert traces == []


async def test_the_same_answer_is_found_again_under_its_id(client) -> None:
    posted = (await client.post("/v1/plans", content=TRACE, headers=RAW)).json()
    found = await client.get(posted["links"]["self"])
    assert found.status_code == 200
    assert found.json() == posted


async def test_the_same_post_twice_is_two_plans(client, planner) -> None:
    first = (await client.post("/v1/plans", content=TRACE, headers=RAW)).json()
    second = (await client.post("/v1/plans", content=TRACE, headers=RAW)).json()
    assert first["id"] != second["id"]
    assert len(planner.asked) == 2


async def test_a_plan_that_takes_longer_than_wait_is_accepted_and_found_later(client, planner) -> None:
    planner.gate.clear()
    accepted = await client.post("/v1/plans", json={"wait": 0})
    assert accepted.status_code == 202
    assert accepted.headers["Location"] == accepted.json()["links"]["self"]
    await asyncio.to_thread(planner.entered.acquire)
    running = await client.get(accepted.headers["Location"])
    assert (running.status_code, running.json()["status"]) == (202, "running")
    planner.gate.set()
    assert (await done(client, accepted.headers["Location"])).json()["status"] == "done"


async def test_the_service_limits_the_wait_and_says_so(serve, planner) -> None:
    planner.gate.clear()
    async with serve(max_wait_s=0) as client:
        accepted = await client.post("/v1/plans", json={"wait": 60})
        planner.gate.set()
    assert accepted.status_code == 202
    assert accepted.json()["waited_s"] == 0


async def test_a_plan_that_fails_answers_with_its_problem_now_and_later(client, planner) -> None:
    planner.error = CorruptTrace("the gzip stream ends early", hint="copy the file again")
    failed = await client.post("/v1/plans", content=TRACE, headers=RAW)
    assert failed.status_code == 400
    assert failed.headers["Content-Type"] == "application/problem+json"
    problem = failed.json()
    assert (problem["code"], problem["hint"]) == ("corrupt_trace", "copy the file again")
    later = await client.get(problem["instance"])
    assert (later.status_code, later.json()) == (400, problem)


async def test_our_own_fault_is_told_without_its_stack_and_logged_with_it(client, planner, caplog) -> None:
    planner.error = RuntimeError("secret detail")
    failed = await client.post("/v1/plans", json={})
    assert (failed.status_code, failed.json()["code"]) == (500, "internal_error")
    assert "secret" not in failed.text
    assert failed.json()["instance"] in caplog.text
    assert "secret detail" in caplog.text


async def test_two_posts_at_once_are_answered_both(client, planner) -> None:
    answers = await asyncio.gather(
        client.post("/v1/plans", json={"hardware": ["a"]}), client.post("/v1/plans", json={"hardware": ["b"]})
    )
    assert [answer.status_code for answer in answers] == [200, 200]
    assert {request.hardware for request, _ in planner.asked} == {("a",), ("b",)}


async def test_one_worker_plans_one_after_the_other_and_two_plan_side_by_side(serve, planner) -> None:
    for workers, planning in ((1, 1), (2, 2)):
        planner.gate.clear()
        async with serve(workers=workers) as client:
            accepted = [await client.post("/v1/plans", json={"wait": 0}) for _ in range(2)]
            for _ in range(planning):
                assert await asyncio.to_thread(planner.entered.acquire, timeout=30)
            states = [(await client.get(a.headers["Location"])).json()["status"] for a in accepted]
            assert sorted(states) == ["running"] * 2 if planning == 2 else ["queued", "running"]
            planner.gate.set()
            for answer in accepted:
                await done(client, answer.headers["Location"])
        planner.entered = threading.Semaphore(0)


async def test_uploads_are_kept_under_their_digest_and_no_other_name(client, tmp_path: Path) -> None:
    name = "../../etc/passwd\x00<b>"
    answer = await client.post("/v1/plans", files={"trace": (name, TRACE)})
    kept = [path.name for path in (tmp_path / "data" / "traces").iterdir() if path.is_file()]
    assert kept == [sha256(TRACE).hexdigest()]
    assert list((tmp_path / "data" / "traces" / "incoming").iterdir()) == []
    assert "\x00" not in answer.json()["files"][0]["name"]


async def test_an_unknown_plan_is_not_found(client) -> None:
    for plan_id in ("0e6f9a4e-0d9e-4f0f-9d1e-111111111111", "not-an-id"):
        missing = await client.get(f"/v1/plans/{plan_id}")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        assert (await client.get(f"/v1/plans/{plan_id}/report")).status_code == 404


async def done(client: httpx.AsyncClient, location: str) -> httpx.Response:
    """The answer at `location` once it is there."""
    while (answer := await client.get(location)).status_code == 202:
        await asyncio.sleep(0.01)
    return answer
