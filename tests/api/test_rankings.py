"""POST /v1/rankings, POST /v1/sizings, `shardwise rank` and `shardwise size`.

Golden tables are in tests/api/golden; `python tests/api/test_rankings.py` writes them anew.
"""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import sample_answer

from app.cli import main
from app.schemas_ranking import RankRequest, SizeRequest
from app.tables_ranking import show_ranking, show_sizing
from projector.breakdown import Interval
from projector.ranking.records import (
    ObjectiveValue,
    ParetoPlan,
    ParetoSet,
    RankedPlan,
    ReliefRanking,
    RelievingPlan,
    SpaceRanking,
    UnknownFigure,
)
from projector.ranking.sizing_records import CostPoint, Sizing, SizingOption, SizingRefusal, SizingTarget
from projector.specs.objective import OBJECTIVES, Rejection
from projector.specs.plan import ParallelismPlan

GOLDEN = Path(__file__).parent / "golden"
WORKLOAD = {"model": "llama-3.1-8b", "seq_len": 4096, "global_batch": 64}
RANK = {"workload": WORKLOAD, "cluster": {"chip": "h100", "chips": 8}}
SIZE = {
    "workload": WORKLOAD,
    "target": {"tokens_per_s": 50_000},
    "machines": [{"chip": "v5p", "chips": [8, 16]}, {"chip": "h100", "chips": [1, 8]}],
}
PLANS = (sample_answer.CURRENT, ParallelismPlan(dp=4, tp=4, sp=True, recompute="full"))
RANK_ARGUMENTS = [
    "rank",
    "--model",
    "llama-3.1-8b",
    "--chip",
    "h100",
    "--chips",
    "8",
    "--seq-len",
    "4096",
    "--global-batch",
    "64",
]
SIZE_ARGUMENTS = [
    "size",
    "--model",
    "llama-3.1-8b",
    "--seq-len",
    "4096",
    "--global-batch",
    "64",
    "--tokens-per-s",
    "50000",
]


def figures(step_time_s: float) -> tuple[ObjectiveValue, ...]:
    return (
        ObjectiveValue(objective="tokens_per_s_per_chip", value=4096 / step_time_s, unit="tokens/s/chip"),
        ObjectiveValue(objective="step_time_s", value=step_time_s, unit="s"),
        ObjectiveValue(objective="memory_per_chip_gb", value=60.0, unit="GB"),
    )


def ranking() -> SpaceRanking:
    """A made-up space of two layouts within the tie and one behind."""
    first, second = (sample_answer.projection(plan, "b200", 1.0 + i / 100) for i, plan in enumerate(PLANS))
    return SpaceRanking(
        objective=OBJECTIVES[0],
        candidates_considered=1200,
        candidates_feasible=800,
        layouts_count=30,
        leading_count=2,
        ranked=(
            RankedPlan(rank=1, behind_frac=0.0, gain_frac=0.5, figures=figures(1.0), projection=first),
            RankedPlan(rank=1, behind_frac=0.01, gain_frac=0.49, figures=figures(1.01), projection=second),
        ),
        pareto=ParetoSet(
            objectives=("step_time_s", "memory_per_chip_gb"),
            members_count=3,
            plans=(
                ParetoPlan(
                    plan=PLANS[0],
                    step_time_interval_s=Interval(low=0.9, high=1.2, basis="made up"),
                    figures=figures(1.0)[1:],
                ),
            ),
        ),
        relief=ReliefRanking(
            cause="exposed_tp",
            share_frac=0.2,
            plans=(RelievingPlan(rank=1, saved_frac=0.1, gain_frac=0.49, figures=figures(1.01), projection=second),),
        ),
        current=first,
        nearest_miss=None,
        unknown=(UnknownFigure(objective="cost_per_million_tokens", reason="the price of b200 is unknown"),),
        notes=("more than 1000000 plans: hybrid sharding is left out",),
        assumptions=("energy is modelled",),
    )


def option(rank: int | None, chips: int, *misses: Rejection) -> SizingOption:
    projection = sample_answer.projection(PLANS[0], "b200", 1.0)
    return SizingOption(
        rank=rank,
        chip="b200",
        chips=chips,
        met="no" if misses else "with_margin",
        misses=misses,
        tokens_per_s=262144.0,
        tokens_per_s_interval=Interval(low=222000.0, high=288000.0, basis="made up"),
        hourly_usd=48.0,
        run_days=44.15,
        run_usd=50862.0,
        run_chip_hours=8477.0 * chips / 8,
        candidates_considered=100,
        projection=projection,
    )


def sizing() -> Sizing:
    """A made-up comparison of two machines with a price."""
    late = Rejection(rule="days", quantity="training", value=88.3, limit=50.0, unit="days")
    return Sizing(
        target=SizingTarget(days=50, budget_tokens=10**12),
        cost_unit="USD of the run",
        options=(option(1, 16), option(None, 8, late)),
        unpriced=(),
        unpriced_unit="chip-hours of the run",
        pareto=(CostPoint(chip="b200", chips=16, step_time_s=1.0, cost=50862.0, met="with_margin"),),
        refused=(SizingRefusal(chip="b200", chips=1, reason="none of 15 legal plans fits the memory"),),
        notes=("b200: 6 USD a chip and hour, stated in the request",),
    )


def tables() -> dict[str, str]:
    def shown(show: Any, *arguments: object) -> str:
        with redirect_stdout(io.StringIO()) as out:
            show(*arguments)
        return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())

    return {
        "rank.txt": shown(show_ranking, ranking(), RankRequest.model_validate(RANK)),
        "size.txt": shown(show_sizing, sizing(), SizeRequest.model_validate(SIZE)),
    }


@pytest.mark.parametrize("name", ["rank.txt", "size.txt"])
def test_a_table_reads_like_its_golden(name: str) -> None:
    assert tables()[name] == (GOLDEN / name).read_text()


async def test_a_space_is_ranked_with_its_pareto_set_and_what_relieves_a_cause(client) -> None:
    current = {"dp": 1, "tp": 8, "sp": True, "micro_batch": 1, "grad_accum": 64}
    wanted = {"pareto": ["step_time_s", "memory_per_chip_gb"], "relieve": "exposed_tp", "current_plan": current}
    answer = await client.post("/v1/rankings", json=RANK | wanted | {"top": 3})
    body = answer.json()
    assert answer.status_code == 200
    assert len(body["ranked"]) == 3
    assert body["ranked"][0]["rank"] == 1
    assert body["ranked"][0]["projection"]["step_time_interval_s"]["high"] > body["ranked"][0]["figures"][1]["value"]
    assert body["ranked"][0]["gain_frac"] > 0
    assert body["pareto"]["objectives"] == ["step_time_s", "memory_per_chip_gb"]
    assert body["relief"]["plans"][0]["saved_frac"] > 0
    assert body["tie_frac"] == 0.02
    assert body["candidates_feasible"] <= body["candidates_considered"]


async def test_a_framework_bounds_the_plans(client) -> None:
    own = (await client.post("/v1/rankings", json=RANK | {"framework": "torchtitan", "top": 200})).json()
    plans = [entry["projection"]["plan"] for entry in own["ranked"]]
    assert plans
    assert all(plan["fsdp"] > 1 or plan["dp"] == 1 for plan in plans)
    alone = {"framework": "DeepSpeed ZeRO", "constraints": {"fixed": {"tp": 8}}}
    refused = (await client.post("/v1/rankings", json=RANK | alone)).json()
    assert refused["detail"] == "constraints.fixed asks for tp 8, and DeepSpeed ZeRO-3 has 1 only"
    nothing = {"framework": "torchtitan", "constraints": {"fixed": {"fsdp": 1, "dp": 8}}}
    found = (await client.post("/v1/rankings", json=RANK | nothing)).json()
    assert found["why_none"] == "no legal plan that torchtitan runs for 8 devices keeps the constraints"
    sized = (await client.post("/v1/sizings", json=SIZE | {"framework": "maxtext"})).json()
    assert {entry["projection"]["plan"]["zero_stage"] for entry in sized["options"]} <= {0, 3}


async def test_machines_are_sized(client) -> None:
    answer = await client.post("/v1/sizings", json=SIZE)
    body = answer.json()
    assert answer.status_code == 200
    assert [one["chip"] for one in body["options"]] == ["tpu-v5p", "tpu-v5p"]
    assert [one["chip"] for one in body["unpriced"]] == ["h100-sxm"]
    assert [(one["chip"], one["chips"]) for one in body["refused"]] == [("h100-sxm", 1)]
    priced = (await client.post("/v1/sizings", json=SIZE | {"prices_usd": {"h100": 2.0}})).json()
    assert priced["unpriced"] == []


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/rankings", {}, 422, "invalid_description"),
        ("/v1/rankings", RANK | {"objectiv": "mfu"}, 422, "invalid_description"),
        ("/v1/rankings", RANK | {"objective": "mfus"}, 422, "unknown_name"),
        ("/v1/rankings", RANK | {"objective": "ttft_ms"}, 422, "invalid_description"),
        ("/v1/rankings", RANK | {"objective": "cost_per_million_tokens"}, 422, "invalid_description"),
        ("/v1/rankings", RANK | {"pareto": ["mfu"]}, 422, "invalid_description"),
        ("/v1/rankings", RANK | {"relieve": "exposed_tp"}, 422, "invalid_description"),
        ("/v1/rankings", RANK | {"top": 0}, 422, "invalid_description"),
        ("/v1/rankings", RANK | {"framework": "megatronn or none"}, 422, "unknown_name"),
        ("/v1/rankings", RANK | {"cluster": {"chip": "h900", "chips": 8}}, 422, "unknown_name"),
        ("/v1/rankings", RANK | {"workload": {"seq_len": 4096, "global_batch": 64}}, 422, "invalid_description"),
        ("/v1/rankings", RANK | {"workload": WORKLOAD | {"model": "llama-9"}}, 422, "unknown_name"),
        ("/v1/rankings", RANK | {"current_plan": {"dp": 4}}, 422, "invalid_description"),
        ("/v1/sizings", SIZE | {"target": {}}, 422, "invalid_description"),
        ("/v1/sizings", SIZE | {"target": {"days": 3}}, 422, "invalid_description"),
        ("/v1/sizings", SIZE | {"chips": ["h100"]}, 422, "invalid_description"),
        ("/v1/sizings", SIZE | {"prices_usd": {"v4": 2}}, 422, "invalid_description"),
        ("/v1/sizings", SIZE | {"prices_usd": {"h100": 0}}, 422, "invalid_description"),
        ("/v1/sizings", SIZE | {"machines": [{"chip": "h100", "chips": [0]}]}, 422, "invalid_description"),
        ("/v1/sizings", SIZE | {"constraints": {"max_chips": 4}}, 422, "invalid_description"),
    ],
)
async def test_typed_refusals(client, path, body, status, code) -> None:
    answer = await client.post(path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_only_json_is_taken_and_no_query(client) -> None:
    assert (await client.post("/v1/rankings", content=b"x")).status_code == 415
    assert (await client.post("/v1/rankings?top=3", json=RANK)).json()["code"] == "unknown_name"
    huge = {"Content-Type": "application/json"}
    assert (await client.post("/v1/sizings", content=b" " * 1_000_001, headers=huge)).status_code == 413


async def test_no_more_searches_run_at_once_than_the_service_bears(client, monkeypatch) -> None:
    monkeypatch.setattr("app.routes.rankings.MOST_AT_ONCE", 0)
    for path, body in (("/v1/rankings", RANK), ("/v1/sizings", SIZE)):
        answer = await client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (503, "service_busy")


async def test_a_search_past_the_limit_is_a_timeout(serve) -> None:
    async with serve(job_limit_s=0.01) as client:
        answer = await client.post("/v1/rankings", json=RANK)
        assert (answer.status_code, answer.json()["code"]) == (504, "job_time_limit")


def test_the_command_ranks(capsys) -> None:
    current = "dp=1,tp=8,sp=true,micro_batch=1,grad_accum=64"
    extra = ["--top", "2", "--pareto", "step_time_s,memory_per_chip_gb", "--current", current]
    assert main([*RANK_ARGUMENTS, *extra, "--relieve", "exposed_tp", "--fix", "pp=1,sp=true", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["ranked"]) == 2
    assert {entry["projection"]["plan"]["pp"] for entry in document["ranked"]} == {1}
    assert document["relief"]["cause"] == "exposed_tp"
    assert main(RANK_ARGUMENTS) == 0
    assert "share the first rank" in capsys.readouterr().out


def test_the_command_says_why_nothing_is_ranked(capsys) -> None:
    alone = [*RANK_ARGUMENTS, "--max-chips", "1"]
    assert main(alone) == 0
    told = capsys.readouterr().out
    assert "legal plans fits the memory" in told
    assert "Nearest miss" in told


def test_the_command_sizes(capsys) -> None:
    assert main([*SIZE_ARGUMENTS, "--chips", "v5p,h100", "--counts", "8,16", "--price", "h100=2", "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert {(one["chip"], one["chips"]) for one in document["options"]} == {
        (chip, count) for chip in ("tpu-v5p", "h100-sxm") for count in (8, 16)
    }
    assert "8 x tpu-v5p: " in printed.err
    assert main([*SIZE_ARGUMENTS, "--chips", "v5p", "--max-chips", "8"]) == 0
    assert "machines by USD an hour" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*RANK_ARGUMENTS, "--relieve", "tp"], "unknown cause 'tp'"),
        ([*RANK_ARGUMENTS, "--fix", "tq=8"], "unknown plan field 'tq'"),
        ([*RANK_ARGUMENTS, "--fix", "tp"], "--fix: 'tp'"),
        ([*RANK_ARGUMENTS, "--current", "phase=serving"], "--current says phase=serving"),
        ([*RANK_ARGUMENTS, "--top", "1000"], "top: Input should be less than or equal to 200"),
        ([*SIZE_ARGUMENTS, "--price", "h100"], "--price: 'h100'"),
        ([*SIZE_ARGUMENTS, "--counts", "8", "--max-chips", "8"], "both say how many chips"),
        ([*SIZE_ARGUMENTS, "--chips", "h100", "--counts", "eight"], "Input should be a valid integer"),
        ([*SIZE_ARGUMENTS, "--days", "3"], "state budget_tokens"),
        (SIZE_ARGUMENTS[:-4], "--global-batch missing"),
    ],
)
def test_bad_arguments_are_exit_2(arguments, told, capsys) -> None:
    assert main(arguments) == 2
    assert told in capsys.readouterr().err


if __name__ == "__main__":
    for name, text in tables().items():
        (GOLDEN / name).write_text(text)
