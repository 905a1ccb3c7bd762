"""Ranking and sizing of serving from the command line: the example a serving tuner ships, and a cheapest fleet."""

import json

import pytest

from app.cli import main

# the example a serving tuner ships: DeepSeek-R1 on a node of MI355X, prompts of 4096, answers of 256, any load
EXAMPLE = (
    "rank --model deepseek-r1 --precision fp8 --input-len 4096 --output-len 256 --chip mi355x --chips 8 "
    "--slo ttft_ms=500,tpot_ms=25 --top 3"
)


def test_the_packaged_example_gets_a_recipe_with_its_margins(capsys) -> None:
    assert main([*EXAMPLE.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    best = document["ranked"][0]
    assert {one["quantity"] for one in best["margins"]} == {"TTFT", "TPOT", "memory of a device"}
    assert all(one["value"] <= one["limit"] for one in best["margins"])
    assert best["projection"]["ttft_s"] <= 0.5
    assert best["projection"]["tpot_s"] <= 0.025
    plan = best["projection"]["plan"]
    assert plan["dp"] * plan["tp"] * plan["pp"] + plan["prefill_replicas"] * plan["prefill_tp"] * plan["prefill_pp"] * (
        plan["prefill_attention_dp"]
    ) == 8  # fmt: skip
    # the narrowest type a rank may use is the workload's: numerics were not to change
    assert plan["weight_dtype"] == "fp8"


def test_where_nothing_keeps_the_budgets_the_nearest_miss_names_the_binding_one(capsys) -> None:
    strict = EXAMPLE.replace("ttft_ms=500,tpot_ms=25", "ttft_ms=5,tpot_ms=1")
    assert main(strict.split()) == 0
    printed = capsys.readouterr().out
    assert "Nearest miss" in printed
    assert "TTFT" in printed
    assert "> 5.0 ms" in printed


def test_a_table_of_serving_plans_says_what_users_feel(capsys) -> None:
    assert main(EXAMPLE.split()) == 0
    printed = capsys.readouterr().out
    for word in ("tokens/s", "TTFT", "TPOT", "What the first keeps", "every seat"):
        assert word in printed


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("--slo ttft=500", "ttft_ms"),
        ("--slo ttft_ms=500,ttft_ms=400", "each once"),
        ("--measured tpot_ms=20", "current_plan"),
    ],
)
def test_a_budget_nobody_knows_is_refused_with_the_nearest(wrong, told, capsys) -> None:
    arguments = EXAMPLE.replace("--slo ttft_ms=500,tpot_ms=25", wrong)
    assert main(arguments.split()) != 0
    assert told in capsys.readouterr().err


def test_what_was_measured_of_the_current_plan_corrects_a_ranking(capsys) -> None:
    current = "dp=8,attention_dp=8,ep=8,weight_dtype=fp8,compute_dtype=fp8,max_num_seqs=64"
    measured = [*EXAMPLE.split(), "--current", current, "--measured", "tpot_ms=24,ttft_ms=600", "--json"]
    assert main(measured) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["current"]["tpot_s"] == pytest.approx(0.024)
    assert document["current"]["ttft_s"] == pytest.approx(0.6)


def test_the_cheapest_fleet_for_a_rate(capsys) -> None:
    job = "size --model llama-3.1-8b --precision fp8 --input-len 1024 --output-len 256 --requests-per-s 50"
    given = "--slo ttft_ms=1000,tpot_ms=25 --chips h100,mi300x --max-chips 16 --price h100=2.5"
    assert main([*job.split(), *given.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["options"][0]["rank"] == 1
    assert document["options"][0]["requests_per_s"] >= 50 * (1 - 1e-9)
    assert {one["chip"] for one in document["unpriced"]} == {"mi300x"}
    assert main([*job.split(), *given.split()]) == 0
    assert "USD/M" in capsys.readouterr().out


SIZES = ["--model", "llama-3.1-8b", "--chip", "h200", "--chips", "8", "--input-len", "1024", "--output-len", "128"]


def test_the_traffic_is_stated_alike_to_project_and_to_rank(capsys) -> None:
    traffic = ["--traffic", "request_rate_per_s=50,length_spread_frac=0.2,prefix_hit_frac=0.5", "--engine", "vllm 0.19"]
    assert main(["project", *SIZES, *traffic, "--plan", "tp=8", "--json"]) == 0
    projected = json.loads(capsys.readouterr().out)
    assert projected["workload"]["request_rate_per_s"] == 50
    assert main(["rank", *SIZES, *traffic, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["ranked"][0]["projection"]["assumptions"]
    assert any("uniform within 20%" in one and "at random (Poisson)" in one for one in said)


@pytest.mark.parametrize(
    ("traffic", "told"),
    [
        ("request_rate_per_s=1e-300", "request_rate_per_s: Input should be greater than or equal to 0.000001"),
        ("request_rate_per_s=1e300", "request_rate_per_s: Input should be less than or equal to"),
        ("request_rate_per_s=5,expert_imbalance=1e300", "expert_imbalance: Input should be less than or equal to"),
        ("request_rate_per_s=5,arrivals=closed", "no meaning with closed arrivals"),
        ("arrivals=poisson", "state request_rate_per_s"),
        ("prefix_hit=0.5", "unknown property of the traffic 'prefix_hit'"),
    ],
)
def test_traffic_nobody_has_is_refused(traffic, told, capsys) -> None:
    assert main(["project", *SIZES, "--traffic", traffic, "--plan", "tp=8"]) == 2
    assert told in capsys.readouterr().err


def test_a_projection_shows_its_figures_however_long_the_basis_of_its_range(capsys) -> None:
    arguments = ["project", *SIZES, "--concurrency", "8", "--plan", "tp=8"]
    assert main([*arguments, "--json"]) == 0
    tpot_ms = json.loads(capsys.readouterr().out)["projection"]["tpot_s"] * 1e3
    assert main(arguments) == 0
    line = next(one for one in capsys.readouterr().out.splitlines() if one.startswith("TPOT [ms]"))
    assert float(line.split()[-1]) == pytest.approx(tpot_ms, rel=1e-3)
