"""The catalogue over HTTP and on the command line: every figure with its source, every wrong name with the nearest."""

import json

import pytest

from app.cli import main


async def test_every_figure_of_every_chip_says_where_it_comes_from(client) -> None:
    chips = (await client.get("/v1/catalog/chips")).json()["chips"]
    assert len(chips) >= 27
    figures = [figure for chip in chips for figure in chip["figures"]]
    assert all(figure["source"] and figure["retrieved"] and figure["unit"] for figure in figures)
    assert {figure["unverified"] for figure in figures} == {True, False}
    for chip in chips:
        assert chip["unverified"] == any(figure["unverified"] for figure in chip["figures"])


async def test_a_chip_is_found_by_alias_in_any_case(client) -> None:
    by_alias = (await client.get("/v1/catalog/chips/V5P")).json()
    assert by_alias["id"] == "tpu-v5p"
    assert by_alias == (await client.get("/v1/catalog/chips/tpu-v5p")).json()


async def test_models_say_whether_their_count_was_checked(client) -> None:
    answer = (await client.get("/v1/catalog/models")).json()
    checked = [model for model in answer["models"] if model["parameters_basis"] == "published"]
    assert len(checked) >= 40
    assert all(model["published_parameters_source"] for model in checked)
    assert all(model["source"] for model in answer["models"])
    assert all(model["reason"] and model["source"] for model in answer["refused"])


async def test_a_model_is_found_by_its_hub_id(client) -> None:
    answer = (await client.get("/v1/catalog/models/openai/gpt-oss-120b")).json()
    assert (answer["name"], answer["modelled"], answer["refused"]) == ("gpt-oss-120b", True, None)
    assert answer["model"]["experts"] == 128


@pytest.mark.parametrize("name", ["kimi-k3", "moonshotai/Kimi-K3"])
async def test_a_refused_model_is_answered_with_its_reason(client, name) -> None:
    answer = await client.get(f"/v1/catalog/models/{name}")
    body = answer.json()
    assert (answer.status_code, body["modelled"], body["model"]) == (200, False, None)
    assert "across layers" in body["refused"]["reason"]


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("chips/h101-sxm", "h100-sxm"),
        ("models/llama-3.1-9b", "llama-3.1-8b"),
        ("models/kimi-k4", "kimi-k3"),
        ("levers/tensor_paralelism", "tensor_parallelism"),
        ("objectives/step_time", "step_time_s"),
    ],
)
async def test_an_unknown_name_in_a_path_is_404_with_the_nearest(client, path, nearest) -> None:
    answer = await client.get(f"/v1/catalog/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert nearest in answer.json()["nearest"]


async def test_levers_and_objectives(client) -> None:
    levers = (await client.get("/v1/catalog/levers")).json()["levers"]
    assert levers[0]["name"] == "tensor_parallelism"
    assert (await client.get("/v1/catalog/levers/Tensor-Parallelism")).json() == levers[0]
    objectives = (await client.get("/v1/catalog/objectives")).json()["objectives"]
    defaults = {phase: entry["name"] for entry in objectives for phase in entry["default_of"]}
    assert defaults == {"training": "tokens_per_s_per_chip", "serving": "decode_throughput_tps_per_gpu"}
    assert (await client.get("/v1/catalog/objectives/mfu")).json()["unit"] == "fraction"


async def test_a_query_parameter_nobody_reads_is_refused(client) -> None:
    answer = await client.get("/v1/catalog/chips?kind=gpu")
    assert (answer.status_code, answer.json()["code"]) == (422, "unknown_name")


@pytest.mark.parametrize("kind", ["chips", "models", "levers", "objectives"])
async def test_the_command_prints_the_document_of_the_service(client, capsys, kind) -> None:
    assert main(["catalog", kind, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == (await client.get(f"/v1/catalog/{kind}")).json()


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], "refused by name"),
        (["chips"], "tpu-v5p"),
        (["chips", "a100-40-sxm"], "unverified"),
        (["models"], "Known and refused"),
        (["models", "kimi-k3"], "Not modelled: "),
        (["models", "llama-3.1-8b"], "Against the published count"),
        (["levers"], "changes results"),
        (["levers", "fsdp"], "adopting it takes"),
        (["objectives", "mfu"], "fraction"),
    ],
)
def test_the_command_prints_tables_for_people(arguments, shown, capsys) -> None:
    assert main(["catalog", *arguments]) == 0
    printed = capsys.readouterr()
    assert shown in printed.out
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["chip"], "nearest known: chips"),
        (["chips", "h101"], "h100"),
        (["levers", "fdsp"], "fsdp"),
        (["--json"], "needs a kind"),
    ],
)
def test_a_wrong_name_is_exit_2_with_the_nearest(arguments, told, capsys) -> None:
    assert main(["catalog", *arguments]) == 2
    printed = capsys.readouterr()
    assert told in printed.err + printed.out
