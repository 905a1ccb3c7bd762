"""A trace of the current plan corrects what is projected of the others: gains, evidence, and when it may not."""

from typing import Any

import pytest
from anchored_examples import CURRENT, REQUEST, machine, step_on, trace_on
from planning_examples import sure

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.planning.graph import run_plan
from agents.planning.resolve import resolve
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from traces.summary_types import TraceSummary


def plan(summary: TraceSummary | None, **changes: Any) -> PlanResult:
    request = PlanRequest.model_validate(REQUEST | changes)
    return run_plan(request, summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())


def without(part: str, *names: str) -> dict[str, Any]:
    return {part: {name: value for name, value in REQUEST[part].items() if name not in names}}


def refusal(result: PlanResult) -> str:
    return next(line for line in result.warnings if line.startswith("projections are not corrected by the trace"))


@pytest.mark.parametrize("slower", [{"link": 0.6}, {"gemm": 1.2}])
def test_proposals_are_nearer_to_what_the_machine_does(slower: dict[str, float]) -> None:
    """Gains against the measured step, by the machine as it is, with the trace and without it."""
    hardware = machine(**slower)
    now_s = step_on(hardware, CURRENT).total_s
    anchored, alone = plan(trace_on(hardware)), plan(None)

    def misses(result: PlanResult, told_s: float) -> list[float]:
        found = []
        for one in result.proposals:
            assert one.expected.step_time_frac is not None
            true_s = step_on(hardware, one.plan.model_dump()).total_s
            found.append(abs((1 + one.expected.step_time_frac) * told_s / true_s - 1))
        return found

    assert alone.current is not None
    assert max(misses(anchored, now_s)) < 0.1
    assert sum(misses(anchored, now_s)) < 0.65 * sum(misses(alone, alone.current.step_time_s))


def test_the_current_plan_is_what_was_measured() -> None:
    trace = trace_on(machine(link=0.6))
    result = plan(trace)
    assert result.current is not None
    assert result.current.source == "anchored"
    assert result.current.step_time_s == pytest.approx(trace.window_ns / 4 / 1e9)
    assert result.current.breakdown.by_axis[0].axis == "tp"
    for proposal in result.proposals:
        assert proposal.projections[0].source == "anchored"
        assert [one.source for one in proposal.projections[1:]] == ["modelled"] * (len(proposal.projections) - 1)
        assert "corrected by what the trace shows" in proposal.expected.basis
        assert proposal.confidence_basis.startswith("0.85 for a projection corrected by measured steps")


def test_every_ratio_a_projection_names_is_evidence() -> None:
    result = plan(trace_on(machine(link=0.6, gemm=1.2)))
    known = {entry.id: entry for entry in result.evidence}
    assert known["ev-anchor-gemm"].value == pytest.approx(1.2, rel=0.01)
    assert known["ev-anchor-tp"].value == pytest.approx(1 / 0.6, rel=0.02)
    assert known["ev-anchor-step"].claim.startswith("The measured step takes")
    assert "is measured to take" in known["ev-reference-step-time"].claim
    for proposal in result.proposals:
        for line in proposal.projections[0].assumptions:
            if "(ev-" in line:
                assert line.rsplit("(", 1)[1].rstrip(")") in known


def test_a_gain_that_rests_on_slowness_staying_behind_is_a_risk() -> None:
    """GEMMs are slow on this machine; nobody knows whether they are at another tp."""
    result = plan(trace_on(machine(gemm=1.2)))
    moved = [one for one in result.proposals if one.plan.tp != CURRENT["tp"]]
    assert moved
    for proposal in moved:
        assert any("were this plan as much slower" in risk for risk in proposal.risks)


def test_the_same_trace_gives_the_same_answer() -> None:
    trace = trace_on(machine(link=0.6))
    assert plan(trace) == plan(trace)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (without("workload", "seq_len"), "workload.seq_len of the recorded steps are assumed; state them"),
        ({"workload": REQUEST["workload"] | {"model": "llama-3.1-8b"}}, "outside 0.6 to 2.5"),
    ],
)
def test_what_is_no_step_of_the_current_plan_is_not_used_and_said(changes: dict[str, Any], words: str) -> None:
    result = plan(trace_on(machine()), **changes)
    assert words in refusal(result)
    assert result.current is not None
    assert result.current.source == "modelled"


def test_a_window_without_step_marks_is_no_step() -> None:
    result = plan(trace_on(machine(), marked=False))
    assert "it marks no training step" in refusal(result)


def test_a_layout_that_is_only_assumed_is_not_what_was_measured() -> None:
    trace = trace_on(machine())
    request = {name: value for name, value in REQUEST.items() if name != "current_plan"}
    job = resolve(PlanRequest.model_validate(request), trace)
    assert job.anchor is None
    assert any("projections are not corrected by the trace" in line for line in job.warnings)


def test_without_a_model_the_measured_step_is_scaled_as_ever() -> None:
    trace = trace_on(machine())
    implied = trace.implied.model_copy(update={"is_transformer_lm": sure(True)})
    request = PlanRequest.model_validate(
        {
            "workload": {"phase": "training", "seq_len": 8192, "global_batch": 128},
            "cluster": REQUEST["cluster"],
            "current_plan": CURRENT,
        }
    )
    job = resolve(request, trace.model_copy(update={"implied": implied}))
    assert (job.mode, job.anchor) == ("relative", None)
