"""POST /v1/simulations and `shardwise simulate`."""

import json
from pathlib import Path

import pytest

from app.cli import main

LOGS = Path(__file__).parents[1] / "data/request_logs"
WORKLOAD = {"phase": "serving", "model": "llama-3.1-8b", "input_len": 512, "output_len": 64, "concurrency": 8}
SIMULATE = {
    "workload": WORKLOAD,
    "cluster": {"chip": "h100", "chips": 2},
    "plan": {"phase": "serving", "dp": 2},
    "requests": 200,
}
ARGUMENTS = ["simulate", "--model", "llama-3.1-8b", "--chip", "h100", "--chips", "2", "--plan", "dp=2"]
SIZES = ["--input-len", "512", "--output-len", "64", "--concurrency", "8", "--requests", "200"]


async def test_a_plan_is_simulated(client) -> None:
    answer = await client.post("/v1/simulations", json=SIMULATE | {"slo": {"ttft_ms_p99": 1, "tpot_ms": 1e6}})
    body = answer.json()
    assert answer.status_code == 200
    found = body["result"]
    assert (found["requests"], found["seed"], found["saturated"]) == (200, 0, False)
    assert found["ttft"]["p50_s"] <= found["ttft"]["p99_s"]
    assert [miss["rule"] for miss in found["slo_misses"]] == ["ttft_ms_p99"]
    assert found["assumptions"]
    again = await client.post("/v1/simulations", json=SIMULATE | {"slo": {"ttft_ms_p99": 1, "tpot_ms": 1e6}})
    assert again.json() == body


async def test_a_log_stands_in_for_the_traffic(client) -> None:
    asked = SIMULATE | {"workload": {"phase": "serving", "model": "llama-3.1-8b"}, "requests": None}
    log = {"text": (LOGS / "sessions.jsonl").read_text()}
    found = (await client.post("/v1/simulations", json=asked | {"log": log})).json()["result"]
    assert found["requests"] == 60
    assert found["prefix_hit_frac"] > 0
    broken = (await client.post("/v1/simulations", json=asked | {"log": {"text": "a,b\n"}})).json()
    assert broken["code"] == "invalid_description"
    assert "header of the log" in broken["detail"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "invalid_description"),
        (SIMULATE | {"request": 5}, 422, "invalid_description"),
        (SIMULATE | {"requests": 10**6}, 422, "invalid_description"),
        (SIMULATE | {"routing": "random"}, 422, "invalid_description"),
        (SIMULATE | {"plan": {"phase": "serving", "dp": 4}}, 422, "invalid_description"),
        (SIMULATE | {"workload": {"model": "llama-3.1-8b"}}, 422, "invalid_description"),
        (SIMULATE | {"workload": WORKLOAD | {"model": "llama-9"}}, 422, "unknown_name"),
        (SIMULATE | {"workload": WORKLOAD | {"arrivals": "poisson"}}, 422, "invalid_description"),
        (SIMULATE | {"cluster": {"chip": "h900", "chips": 2}}, 422, "unknown_name"),
    ],
)
async def test_typed_refusals_of_simulations(client, body, status, code) -> None:
    answer = await client.post("/v1/simulations", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_no_more_simulations_run_at_once_than_the_service_bears(client, monkeypatch) -> None:
    monkeypatch.setattr("app.routes.simulations.MOST_AT_ONCE", 0)
    answer = await client.post("/v1/simulations", json=SIMULATE)
    assert (answer.status_code, answer.json()["code"]) == (503, "service_busy")


async def test_a_simulation_past_the_limit_is_a_timeout(serve) -> None:
    async with serve(job_limit_s=0.001) as client:
        answer = await client.post("/v1/simulations", json=SIMULATE)
        assert (answer.status_code, answer.json()["code"]) == (504, "job_time_limit")


def test_the_command_simulates(capsys) -> None:
    open_loop = ["--traffic", "arrivals=poisson,request_rate_per_s=500"]
    assert main([*ARGUMENTS, *SIZES, *open_loop, "--slo", "ttft_ms=100,request_latency_ms_p90=1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["result"]["saturated"]
    assert main([*ARGUMENTS, *SIZES, *open_loop, "--slo", "ttft_ms=100,request_latency_ms_p90=1"]) == 0
    printed = capsys.readouterr().out
    assert "SATURATED" in printed
    assert "request latency p90" in printed
    assert main([*ARGUMENTS, "--log", str(LOGS / "plain.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["requests"] == 40


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*ARGUMENTS, *SIZES, "--traffic", "rate=5"], "unknown property of the traffic 'rate'"),
        ([*ARGUMENTS, *SIZES, "--traffic", "arrivals"], "--traffic: 'arrivals'"),
        ([*ARGUMENTS, *SIZES, "--engine", "vlmm"], "unknown engine 'vlmm'"),
        ([*ARGUMENTS, *SIZES, "--lora-rank", "8"], "--lora-rank is of a training workload"),
        ([*ARGUMENTS, "--log", "nowhere.csv"], "no file 'nowhere.csv'"),
        ([*ARGUMENTS, *SIZES, "--block-tokens", "16"], "--block-tokens without --log"),
        ([*ARGUMENTS, "--seq-len", "4096"], "--seq-len is of a training workload"),
        (ARGUMENTS, "lacks concurrency, input_len, output_len"),
        ([*ARGUMENTS, *SIZES, "--slo", "ttft=5"], "unknown latency budget 'ttft'"),
    ],
)
def test_bad_arguments_of_simulate_are_exit_2(arguments, told, capsys) -> None:
    assert main(arguments) == 2
    assert told in capsys.readouterr().err
