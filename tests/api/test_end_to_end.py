"""The real thing: the service in its own process, the real reader, projector, notes and embedder behind it."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from app.commands.demo import local_service

TRACES = Path(__file__).parents[1] / "data" / "traces"
TRACE = TRACES / "b200_vllm_eager.json.gz"
MARKUP = "<script>alert(1)</script>{{7*7}}"


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def client(data_dir: Path) -> Iterator[httpx.Client]:
    with local_service(data_dir) as url, httpx.Client(base_url=url, timeout=120) as client:
        yield client


def post(client: httpx.Client, *traces: tuple[str, bytes], **request: Any) -> httpx.Response:
    files = [("trace", trace) for trace in traces]
    return client.post("/v1/plans", files=files, data={"request": json.dumps({"wait": 60, **request})})


def kineto(kernel: str) -> bytes:
    """The smallest Kineto trace with one kernel."""
    event = {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": 10.0, "dur": 5.0}
    event["args"] = {"device": 0, "stream": 7}
    return json.dumps({"schemaVersion": 1, "traceEvents": [event]}).encode()


def test_a_bundled_trace_gives_three_projected_proposals_with_citations(client) -> None:
    answer = post(client, (TRACE.name, TRACE.read_bytes()), hardware=["tpu-v5p", "h100-sxm"])
    body = answer.json()
    assert answer.status_code == 200
    assert body["diagnosis"]["bottleneck"] in {"compute", "memory", "communication"}
    assert [proposal["rank"] for proposal in body["proposals"]] == [1, 2, 3]
    known = {evidence["id"] for evidence in body["evidence"] + body["diagnosis"]["evidence"]}
    for proposal in body["proposals"]:
        assert {projection["chip"] for projection in proposal["projections"]} >= {"tpu-v5p", "h100-sxm"}
        assert set(proposal["evidence"]) <= known
        assert proposal["evidence"]
        assert 0 <= proposal["confidence"] <= 1
    assert any(proposal["citations"] for proposal in body["proposals"])
    assert body["assumptions"]
    report = client.get(body["links"]["report"])
    assert report.status_code == 200
    assert body["proposals"][0]["citations"][0]["title"] in report.text


def test_a_trace_that_is_no_language_model_gets_its_diagnosis_and_the_reason(client) -> None:
    trace = TRACES / "a100_ddp_resnet.json.gz"
    answer = client.post("/v1/plans", content=trace.read_bytes(), headers={"Content-Type": "application/gzip"})
    body = answer.json()
    assert answer.status_code == 200
    assert body["not_plannable"]
    assert body["proposals"] == []
    assert client.get(body["links"]["report"]).status_code == 200


def test_what_a_request_leaves_out_stays_open_on_its_way_through_the_job(client) -> None:
    """A default that became a statement would overrule the precision the checkpoint is stored in."""
    workload = {"phase": "serving", "model": "deepseek-v3"}
    answer = client.post("/v1/plans", json={"workload": workload, "cluster": {"chip": "h200", "chips": 8}, "wait": 60})
    assumed = {each["field"]: each["value"] for each in answer.json()["assumptions"]}
    assert assumed["workload.precision"] == "fp8"
    assert len(answer.json()["proposals"]) == 3


def test_two_posts_at_once_get_their_own_answers(client) -> None:
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda name: post(client, (name, TRACE.read_bytes())), ("a", "b")))
    bodies = [answer.json() for answer in answers]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [body["files"][0]["name"] for body in bodies] == ["a", "b"]
    assert bodies[0]["proposals"] == bodies[1]["proposals"]


@pytest.mark.parametrize(
    ("trace", "status", "code"),
    [
        (TRACE.read_bytes()[:50_000] + bytes(1000) + TRACE.read_bytes()[51_000:], 400, "corrupt_trace"),
        (gzip.compress(b'{"traceEvents": [' + b" " * 60_000_000, 1), 413, "trace_too_large"),
        (b"\x89PNG\r\n\x1a\n", 415, "unknown_trace_format"),
        (b'{"traceEvents": []}', 400, "empty_trace"),
    ],
    ids=["damaged", "bomb", "picture", "empty"],
)
def test_a_trace_that_cannot_be_read_is_a_problem(client, trace, status, code) -> None:
    answer = post(client, ("trace.json.gz", trace))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_a_trace_that_was_cut_off_is_planned_with_a_warning(client) -> None:
    answer = post(client, ("trace.json.gz", TRACE.read_bytes()[:-100]))
    assert answer.status_code == 200
    assert any("ends early" in warning for warning in answer.json()["trace"]["warnings"])


def test_markup_in_a_kernel_name_comes_out_as_text(client) -> None:
    posted = post(client, ("trace.json", kineto(MARKUP)))
    assert posted.status_code == 200
    assert posted.headers["X-Content-Type-Options"] == "nosniff"
    assert posted.json()["trace"]["top_kernels"][0]["name"] == MARKUP
    page = client.get(posted.json()["links"]["report"])
    assert "<script" not in page.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in page.text


def test_the_demo_shows_the_answer_and_saves_its_report(client, data_dir: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("app.commands.demo.local_service", lambda _: nullcontext(str(client.base_url).rstrip("/")))
    assert main(["demo", str(TRACE), "--data-dir", str(data_dir), "--once"]) == 0
    shown = capsys.readouterr().out
    assert "3 proposals" in shown
    assert "tpu-v5p" in shown
    assert f"Report page: {client.base_url}/v1/plans/" in shown
    saved = Path(shown.rsplit("Saved to: ", 1)[1].strip())
    assert "<svg" in saved.read_text()


def test_the_plan_command_works_beside_the_service(client, data_dir: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "plan", str(TRACE), "--json"]
    environment = {**os.environ, "SHARDWISE_DATA_DIR": str(data_dir)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "this command keeps an index of its own" in done.stderr
    posted = post(client, (TRACE.name, TRACE.read_bytes())).json()
    assert json.loads(done.stdout)["proposals"] == posted["proposals"]
