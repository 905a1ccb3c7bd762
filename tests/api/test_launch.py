"""Launch configurations of proposals, as JSON and on the report page."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import sample_answer
from test_pages import Tags

from agents.request import PlanRequest
from app.launch import launch_of
from app.wiring import PlanOutcome
from projector.catalog import architecture

RAW = {"Content-Type": "application/octet-stream"}
REQUEST = PlanRequest.model_validate(
    {
        "workload": {"model": "llama-3.1-8b", "seq_len": 4096, "global_batch": 64},
        "cluster": {"chip": "h100-sxm", "chips": 16},
    }
)
HOSTILE = "$(touch pwned); `id` '</pre><script>alert(1)</script>"


@dataclass
class LaunchingPlanner:
    """Answers with the sample and what the exporters make of it."""

    request: PlanRequest = REQUEST

    def plan(
        self, request: PlanRequest, traces: list[Path], names: object = None, plan_id: object = None
    ) -> PlanOutcome:
        result = sample_answer.result()
        return PlanOutcome(result, None, launch_of(self.request, None, result))


async def posted(client) -> dict[str, str]:
    return (await client.post("/v1/plans", content=b"x", headers=RAW)).json()["links"]


async def test_every_proposal_is_launched_or_refused_by_every_framework(serve) -> None:
    async with serve(planner=LaunchingPlanner()) as client:
        links = await posted(client)
        answer = (await client.get(links["launch"])).json()
    assert [proposal["rank"] for proposal in answer["proposals"]] == [1, 2, 3]
    for proposal in answer["proposals"]:
        configs = {each["config"]["framework"]: each for each in proposal["configs"]}
        assert set(configs) >= {"megatron", "maxtext", "vllm"}
        assert "--tensor-model-parallel-size" in configs["megatron"]["shell"]
        assert configs["maxtext"]["file_text"]
        assert not configs["vllm"]["launchable"]
        assert "training" in configs["vllm"]["config"]["refused"][0]["reason"]
        assert all(each["config"]["version"] for each in configs.values())


async def test_the_report_has_the_commands_to_copy_and_the_refusals(serve) -> None:
    async with serve(planner=LaunchingPlanner()) as client:
        report = await client.get((await posted(client))["report"])
    text = " ".join(Tags(report.text).text.split())
    assert "--tensor-model-parallel-size 4" in text
    assert "vLLM cannot launch this plan" in text
    assert ("a", {"href": "/knowledge/tp"}) in Tags(report.text).tags


async def test_an_identifier_of_a_request_can_neither_leave_the_shell_word_nor_the_page(serve) -> None:
    own = architecture("llama-3.1-8b").model_copy(update={"name": HOSTILE, "hf_id": HOSTILE})
    stated = {**REQUEST.model_dump(exclude_unset=True), "architecture": own.model_dump()}
    del stated["workload"]["model"]
    request = PlanRequest.model_validate(stated)
    async with serve(planner=LaunchingPlanner(request)) as client:
        links = await posted(client)
        report = await client.get(links["report"])
        answer = (await client.get(links["launch"])).json()
    assert "script" not in {tag for tag, _ in Tags(report.text).tags}
    shells = [each["shell"] for proposal in answer["proposals"] for each in proposal["configs"]]
    lines = [line for shell in shells for line in shell.splitlines() if not line.startswith("#")]
    assert not any("touch pwned" in line for line in lines)


async def test_an_answer_without_proposals_launches_nothing() -> None:
    bare = sample_answer.result().model_copy(update={"proposals": ()})
    assert launch_of(REQUEST, None, bare) == ()


async def test_a_plan_stored_before_there_were_launch_configurations_says_so(client) -> None:
    links = await posted(client)
    answer = await client.get(links["launch"])
    assert (answer.status_code, answer.json()["code"]) == (500, "storage_mismatch")
    report = await client.get(links["report"])
    assert report.status_code == 200
    assert "cannot launch" not in report.text


@pytest.mark.parametrize("plan_id", ["nope", "00000000-0000-0000-0000-000000000000"])
async def test_an_unknown_plan_has_no_launch(client, plan_id) -> None:
    assert (await client.get(f"/v1/plans/{plan_id}/launch")).status_code == 404
