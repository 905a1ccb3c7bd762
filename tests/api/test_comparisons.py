"""POST /v1/comparisons and `shardwise compare`: two runs, and what was promised of the second."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from app.cli import main
from tests.unit.traces.trace_examples import device_annotation, document, kernel


def run_of(all_reduce_us: float, rank: int = 0) -> bytes:
    """Five profiler steps of a product of 60 us and an all-reduce."""
    events, now = [], 1000.0
    for number in range(5):
        length = 60 + all_reduce_us
        events.append(device_annotation(f"ProfilerStep#{number}", now, length))
        events.append(kernel("sm90_gemm", now, 60))
        events.append(kernel("ncclDevKernel_AllReduce_Sum_bf16", now + 60, all_reduce_us, stream=9))
        now += length
    return json.dumps(document(*events, distributedInfo={"rank": rank, "world_size": 2})).encode()


BEFORE, AFTER = run_of(40), run_of(20)


async def test_two_traces_and_a_promise(client) -> None:
    files = {"before": ("a.json", BEFORE), "after": ("b.json", AFTER)}
    answer = await client.post(
        "/v1/comparisons", files=files, data={"request": json.dumps({"predicted_change_frac": -0.2})}
    )
    body = answer.json()
    assert answer.status_code == 200
    assert body["basis"] == "step"
    assert body["change_frac"] == pytest.approx(-0.2)
    assert body["prediction"]["verdict"] == "arrived"
    assert body["before"]["files"] == ["a.json"]


async def test_several_files_a_side_are_the_ranks_of_one_job(client) -> None:
    files = [
        ("before", ("0.json", run_of(40))),
        ("before", ("1.json", run_of(40, rank=1))),
        ("after", ("0.json", run_of(20))),
        ("after", ("1.json", run_of(20, rank=1))),
    ]
    body = (await client.post("/v1/comparisons", files=files)).json()
    assert (body["before"]["ranks"], body["after"]["ranks"]) == (2, 2)
    assert body["prediction"] is None


async def test_the_promise_of_a_plan_of_this_service(client) -> None:
    plan = (await client.post("/v1/plans", files={"trace": ("a.json", BEFORE)})).json()
    promised = plan["proposals"][0]["expected"]["step_time_frac"]
    files = {"before": ("a.json", BEFORE), "after": ("b.json", AFTER)}
    body = (
        await client.post("/v1/comparisons", files=files, data={"request": json.dumps({"plan_id": plan["id"]})})
    ).json()
    assert body["prediction"]["predicted_change_frac"] == promised


async def test_nothing_of_an_upload_is_kept(client, tmp_path) -> None:
    await client.post("/v1/comparisons", files={"before": ("a", BEFORE), "after": ("b", AFTER)})
    kept = [path for path in (tmp_path / "data" / "traces").rglob("*") if path.is_file()]
    assert kept == []


@pytest.mark.parametrize(
    ("files", "request_text", "status", "code"),
    [
        ({"before": ("a", BEFORE)}, "", 422, "invalid_description"),
        ({"before": ("a", BEFORE), "after": ("b", b"")}, "", 400, "empty_trace"),
        ({"before": ("a", BEFORE), "after": ("b", b"no trace")}, "", 415, "unknown_trace_format"),
        ({"before": ("a", BEFORE), "after": ("b", AFTER)}, '{"predicted": 1}', 422, "invalid_description"),
        (
            {"before": ("a", BEFORE), "after": ("b", AFTER)},
            '{"predicted_change_frac": -1.5}',
            422,
            "invalid_description",
        ),
        ({"before": ("a", BEFORE), "after": ("b", AFTER)}, '{"proposal": 2}', 422, "invalid_description"),
        ({"before": ("a", BEFORE), "after": ("b", AFTER)}, json.dumps({"plan_id": str(uuid4())}), 404, "not_found"),
        ({"before": ("a", BEFORE), "before2": ("b", AFTER)}, "", 422, "unknown_name"),
    ],
)
async def test_typed_refusals(client, files, request_text, status, code) -> None:
    answer = await client.post("/v1/comparisons", files=files, data={"request": request_text} if request_text else {})
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_only_a_form_is_taken(client) -> None:
    answer = await client.post("/v1/comparisons", json={})
    assert answer.status_code == 415


def test_the_command_compares_traces_and_written_summaries_alike(tmp_path: Path, capsys) -> None:
    before, after, written = tmp_path / "before.json", tmp_path / "after.json", tmp_path / "written.json"
    before.write_bytes(BEFORE)
    after.write_bytes(AFTER)
    assert main(["summarise", str(before), "--redact", "-o", str(written)]) == 0
    for first in (before, written):
        assert main(["compare", str(first), str(after), "--predicted", "-0.2", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["change_frac"] == pytest.approx(-0.2)
        assert found["prediction"]["verdict"] == "arrived"
    assert main(["compare", str(before), str(after)]) == 0
    shown = capsys.readouterr().out
    assert "A step takes 0.08 ms instead of 0.1 ms (-20.0 %" in shown
    assert "exposed communication" in shown


def test_the_command_takes_the_promise_from_a_written_plan(tmp_path: Path, capsys) -> None:
    before, after, plan = tmp_path / "before.json", tmp_path / "after.json", tmp_path / "plan.json"
    before.write_bytes(BEFORE)
    after.write_bytes(AFTER)
    expected = {
        "step_time_frac": -0.4,
        "objective_frac": None,
        "memory_frac": None,
        "exposed_communication_frac": None,
        "idle_frac": None,
        "step_time_direction": "less",
        "memory_direction": "same",
        "basis": "modelled",
    }
    plan.write_text(json.dumps({"proposals": [{"rank": 2, "expected": expected, "title": "more"}]}))
    arguments = ["compare", str(before), str(after), "--json", "--plan", str(plan), "--proposal"]
    assert main([*arguments, "2"]) == 0
    assert json.loads(capsys.readouterr().out)["prediction"]["verdict"] == "partly"
    assert main([*arguments, "1"]) == 2
    assert "no proposal 1" in json.loads(capsys.readouterr().out)["detail"]


def test_a_summary_takes_the_place_of_no_trace(tmp_path, capsys) -> None:
    trace, summary = tmp_path / "rank0.json", tmp_path / "summary.json"
    trace.write_bytes(BEFORE)
    for given in (trace, tmp_path):
        assert main(["summarise", str(given), "-o", str(trace)]) == 2
        assert "is one of the traces" in capsys.readouterr().err
    assert trace.read_bytes() == BEFORE
    for _ in range(2):
        assert main(["summarise", str(tmp_path), "-o", str(summary)]) == 0
