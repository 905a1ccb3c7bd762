"""POST /v1/levers and `shardwise levers`: what may be tried, and what cannot matter."""

import json

import pytest

from app.cli import main

ASKED = {
    "workload": {"phase": "serving", "model": "deepseek-v3"},
    "cluster": {"chip": "MI355X", "chips": 8},
}
ARGUMENTS = ["levers", "--model", "deepseek-v3", "--chip", "MI355X", "--chips", "8"]


async def test_the_service_and_the_command_say_the_same(client, capsys) -> None:
    answer = await client.post("/v1/levers", json=ASKED)
    assert answer.status_code == 200
    assert main([*ARGUMENTS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer.json()
    fields = {one["field"]: one for one in answer.json()["fields"]}
    assert fields["attention_backend"]["values"] == ["auto", "aiter", "ck", "triton"]
    assert fields["tp"]["values"] == [1, 2, 4, 8]
    assert fields["quick_reduce"]["numerics"]
    assert answer.json()["chip"] == "mi355x"


async def test_with_a_plan_it_says_what_cannot_matter_beside_the_others(client) -> None:
    plan = {"phase": "serving", "dp": 8, "attention_dp": 8, "ep": 8}
    answer = (await client.post("/v1/levers", json=ASKED | {"plan": plan})).json()
    reasons = {one["field"]: one["because"] for one in answer["inert_in_plan"]}
    assert reasons["tp_all_reduce"] == "tp is 1: nothing is reduced"
    assert "expert_all_to_all" not in reasons


@pytest.mark.parametrize(
    ("change", "nearest"),
    [
        ({"workload": {"phase": "serving", "model": "deepseek-v4"}}, "deepseek-v3"),
        ({"cluster": {"chip": "mi350", "chips": 8}}, "mi325x"),
        ({"worklod": {}}, "workload"),
    ],
)
async def test_unknown_names_are_refused_with_the_nearest(client, change, nearest) -> None:
    answer = await client.post("/v1/levers", json=ASKED | change)
    assert answer.status_code == 422
    assert nearest in answer.text


async def test_a_plan_of_the_other_phase_is_refused(client) -> None:
    answer = await client.post("/v1/levers", json=ASKED | {"plan": {"phase": "training"}})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_description")


def test_the_table_marks_defaults_and_names_what_is_inert(capsys) -> None:
    arguments = ["levers", "--model", "llama-3.1-70b", "--chip", "h200", "--chips", "8", "--plan", "tp=8"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "auto*, flashinfer, flash_attention, triton" in printed
    assert "expert_dtype: the model has no experts" in printed
    assert "kv_transfer: there is no prefill pool" in printed
    assert main(["levers", "--model", "llama-3.1-8b", "--chip", "h200", "--chips", "8", "--phase", "training"]) == 0
    assert "recompute" in capsys.readouterr().out


def test_an_unknown_phase_is_refused(capsys) -> None:
    assert main([*ARGUMENTS, "--phase", "inference"]) == 2
    assert "unknown phase" in capsys.readouterr().err
