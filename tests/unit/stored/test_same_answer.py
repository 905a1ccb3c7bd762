"""The answer does not depend on names: a written or redacted summary gives the diagnosis and the plans of its trace."""

import os
from pathlib import Path

import pytest

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from traces.content import Content
from traces.stored.document import document_of, read_summary_document
from traces.summary import read_summary
from traces.summary_types import TraceSummary

BUNDLED = Path(__file__).parents[2] / "data" / "traces"
SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[4] / "shared")) / "traces"
PLANNABLE = (
    "deepseek/train.json",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "tracelens/inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz",
    "tracelens/inference/vllm_prefilldecode_piecewise/graph_execution.json.gz",
    "tracelens/torch_compile_triton/trace.json.gz",
)


def through_document(summary: TraceSummary, *, redacted: bool) -> TraceSummary:
    text = document_of(summary, redacted=redacted).model_dump_json().encode()
    return read_summary_document(Content("summary.json", text)).summary


def answer(summary: TraceSummary) -> PlanResult:
    return run_plan(PlanRequest(), summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())


def figures(result: PlanResult) -> list[object]:
    """What was decided and computed, without the words around it."""
    found = result.diagnosis
    decided: list[object] = [found.bottleneck, found.cause, found.shares, found.margin, found.scores]
    decided += [(evidence.id, evidence.value, evidence.unit) for evidence in result.evidence]
    decided += [bool(result.not_plannable), bool(result.fewer_because), result.candidates_considered]
    for proposal in result.proposals:
        decided += [proposal.rank, proposal.plan, proposal.confidence]
        decided += [(one.step_time_s, one.breakdown, one.memory) for one in proposal.projections]
    return decided


@pytest.mark.parametrize("redacted", [False, True])
@pytest.mark.parametrize("name", ["b200_vllm_eager.json.gz", "a100_ddp_resnet.json.gz"])
def test_the_bundled_traces(name: str, redacted: bool) -> None:
    summary = read_summary([BUNDLED / name])
    assert figures(answer(through_document(summary, redacted=redacted))) == figures(answer(summary))


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no samples at {SHARED}; set SHARDWISE_SHARED")
@pytest.mark.parametrize("name", PLANNABLE)
def test_the_samples_that_get_plans(name: str) -> None:
    summary = read_summary([SHARED / name])
    whole = answer(summary)
    assert whole.proposals
    assert figures(answer(through_document(summary, redacted=True))) == figures(whole)
