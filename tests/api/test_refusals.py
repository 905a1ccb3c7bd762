"""What POST /v1/plans refuses, and how it says so."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

RAW = {"Content-Type": "application/octet-stream"}
FORM = {"Content-Type": "multipart/form-data; boundary=b"}


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    disposition = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename is not None else "")
    return b"--b\r\nContent-Disposition: " + disposition.encode() + b"\r\n\r\n" + content + b"\r\n"


END = b"--b--\r\n"


async def refused(client, status: int, code: str, **request) -> dict:
    answer = await client.post("/v1/plans", **request)
    problem = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert problem["type"] == f"urn:shardwise:problem:{code}"
    return problem


@pytest.mark.parametrize(
    ("body", "path", "nearest"),
    [
        ({"workloads": {}}, "workloads", "workload"),
        ({"workload": {"seq_length": 1}}, "workload.seq_length", "seq_len"),
        ({"cluster": {"chip": "a", "chips": 1, "slice": 2}}, "cluster.slice", "slices"),
        ({"current_plan": {"tp": 8, "micro_batches": 1}}, "current_plan.micro_batches", "micro_batch"),
        ({"constraints": {"bounds": {"tp": {"hihg": 3}}}}, "constraints.bounds.tp.hihg", "high"),
    ],
)
async def test_an_unknown_key_is_named_with_the_nearest_known(client, body, path, nearest) -> None:
    problem = await refused(client, 422, "invalid_description", json=body)
    (named,) = [error for error in problem["errors"] if error["path"] == path]
    assert nearest in named["nearest"]
    assert nearest in problem["nearest"]


async def test_an_unknown_plan_field_in_a_constraint_is_an_unknown_name(client) -> None:
    problem = await refused(client, 422, "unknown_name", json={"constraints": {"fixed": {"tpp": 3}}})
    assert "tp" in problem["nearest"]


async def test_values_out_of_range_are_listed_key_by_key(client) -> None:
    body = {"wait": -1, "workload": {"phase": "trainig"}}
    problem = await refused(client, 422, "invalid_description", json=body)
    assert {error["path"] for error in problem["errors"]} == {"wait", "workload.phase"}


async def test_broken_json_is_refused(client) -> None:
    await refused(client, 422, "invalid_description", content=b"{", headers={"Content-Type": "application/json"})


async def test_a_trace_sent_as_json_gets_a_hint(client) -> None:
    problem = await refused(client, 422, "invalid_description", json={"traceEvents": []})
    assert "application/octet-stream" in problem["hint"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_other_content_types_are_refused_with_the_forms(client, content_type) -> None:
    problem = await refused(client, 415, "unsupported_media", content=b"x", headers={"Content-Type": content_type})
    assert "multipart/form-data" in problem["hint"]


async def test_an_encoded_body_is_refused(client) -> None:
    await refused(client, 415, "unsupported_media", content=b"x", headers={**RAW, "Content-Encoding": "gzip"})


async def test_query_parameters_are_refused(client) -> None:
    answer = await client.post("/v1/plans?wait=3", json={})
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_name")
    assert answer.json()["hint"] == "wait is a key of the request in the body"


async def test_a_key_given_twice_is_refused(client) -> None:
    body = b'{"workload": {"seq_len": 1, "seq_len": 2}}'
    problem = await refused(
        client, 422, "invalid_description", content=body, headers={"Content-Type": "application/json"}
    )
    assert problem["errors"] == [{"path": "seq_len", "message": "the key is given more than once", "nearest": []}]


async def test_an_empty_body_is_refused(client) -> None:
    await refused(client, 400, "empty_trace", content=b"", headers=RAW)
    await refused(client, 400, "empty_trace", content=part("trace", b"", "a.json") + END, headers=FORM)


async def test_a_file_input_left_empty_is_no_trace(client, planner) -> None:
    body = part("trace", b"", "") + part("request", b" ") + END
    assert (await client.post("/v1/plans", content=body, headers=FORM)).status_code == 200
    assert planner.asked[0][1] == []


async def test_unknown_form_fields_are_refused(client) -> None:
    problem = await refused(client, 422, "unknown_name", content=part("traces", b"x", "a") + END, headers=FORM)
    assert problem["nearest"][0] == "trace"


async def test_a_second_request_part_is_refused(client) -> None:
    body = part("request", b"{}") + part("request", b"{}") + END
    await refused(client, 422, "invalid_description", content=body, headers=FORM)


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (part("trace", b"abc", "a"), FORM["Content-Type"]),  # no last boundary
        (b"no multipart at all", FORM["Content-Type"]),
        (b"", "multipart/form-data"),
        (b"--b\r\nbroken header\r\n\r\nx\r\n" + END, FORM["Content-Type"]),
    ],
)
async def test_a_broken_form_is_refused_and_leaves_nothing(client, tmp_path: Path, content, content_type) -> None:
    await refused(client, 400, "malformed_body", content=content, headers={"Content-Type": content_type})
    assert [path for path in (tmp_path / "data" / "traces").rglob("*") if path.is_file()] == []


async def test_a_declared_length_over_the_limit_is_refused_before_a_byte_is_read(serve) -> None:
    async def never() -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""

    async with serve(max_upload_bytes=10) as client:
        problem = await refused(
            client, 413, "trace_too_large", content=never(), headers={**RAW, "Content-Length": "11"}
        )
        assert "11 bytes > limit of 10 bytes" in problem["detail"]


async def test_a_running_length_over_the_limit_is_refused_while_it_streams(serve, tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 4
            yield b"abcd"

    async with serve(max_upload_bytes=10) as client:
        await refused(client, 413, "trace_too_large", content=endless(), headers=RAW)
        assert sent == 12
        assert [path for path in (tmp_path / "data" / "traces").rglob("*") if path.is_file()] == []


async def test_a_form_is_limited_while_it_streams(serve, tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield part("trace", b"", "a").removesuffix(b"\r\n")
        while True:
            yield b"abcd"

    async with serve(max_upload_bytes=10) as client:
        await refused(client, 413, "trace_too_large", content=endless(), headers=FORM)
        both = part("trace", b"123456", "a") + part("trace", b"12345", "b") + END
        await refused(client, 413, "trace_too_large", content=both, headers=FORM)
        fits = part("trace", b"12345", "a") + part("trace", b"12345", "b") + END
        assert (await client.post("/v1/plans", content=fits, headers=FORM)).status_code == 200
        assert not list((tmp_path / "data" / "traces" / "incoming").iterdir())


async def test_a_request_description_is_limited_too(client) -> None:
    long = json.dumps({"hardware": ["x" * 1_000_001]}).encode()
    problem = await refused(
        client, 413, "request_too_large", content=long, headers={"Content-Type": "application/json"}
    )
    assert "limit of 1000000 bytes" in problem["detail"]
    await refused(client, 413, "request_too_large", content=part("request", long) + END, headers=FORM)


async def test_unknown_paths_and_methods_are_problems(client) -> None:
    missing = await client.get("/v1/plan")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert "/v1/plans" in missing.json()["nearest"]
    wrong = await client.get("/v1/plans")
    assert (wrong.status_code, wrong.json()["code"], wrong.headers["Allow"]) == (405, "method_not_allowed", "POST")


async def test_an_unforeseen_error_in_a_route_is_a_problem_without_its_stack(client, monkeypatch, caplog) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("app.routes.plans.receive", broken)
    problem = await refused(client, 500, "internal_error", json={})
    assert "secret" not in json.dumps(problem)
    assert problem["instance"] in caplog.text
