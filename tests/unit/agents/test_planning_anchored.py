"""A trace of the current plan corrects what is projected of the others: gains, evidence, and when it may not."""

from pathlib import Path
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
from app.tables import show_plan
from projector import catalog
from projector.anchor.anchor import Anchor
from projector.anchor.anchored_batch import AnchoredBatch
from projector.anchor.measured_step import MeasuredStep
from projector.anchor.ratios import anchor_of
from projector.breakdown import TimeBreakdown
from projector.project import project_many
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec
from traces.summary import measured_breakdown, read_summary
from traces.summary_types import TraceSummary

TRACES = Path(__file__).parents[2] / "data" / "traces"


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
        assert "by a stated rule: 0.85 for a projection corrected by measured steps" in proposal.confidence_basis
        assert not proposal.confidence_calibrated


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
    """GEMMs are slow on this machine in bf16; nobody knows whether they are in fp8."""
    result = plan(trace_on(machine(gemm=1.8)), constraints={"allow_numerics_changes": True})
    narrow = [one for one in result.proposals if one.plan.compute_dtype == "fp8"]
    assert narrow
    for proposal in narrow:
        assert any("were this plan as much slower" in risk for risk in proposal.risks)


def test_the_command_line_tells_what_corrects_the_projections(capsys: pytest.CaptureFixture[str]) -> None:
    show_plan(plan(trace_on(machine(link=0.6))), None)
    shown = capsys.readouterr().out
    assert "What corrects the projections" in shown
    assert "on the own chip corrected by the trace" in shown


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


def test_a_plan_that_states_its_batch_needs_no_other_statement_of_it() -> None:
    result = plan(trace_on(machine()), **without("workload", "global_batch"))
    assert result.current is not None
    assert result.current.source == "anchored"


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


def test_a_real_profile_is_reproduced_to_the_last_digit() -> None:
    """Two A100 training for five steps: kinds that overlap, collectives of no axis, idle time and copies as they come.

    No language model is among the bundled training profiles, so its parts stand in for those of a step as long as the
    projected one; what is checked is that real parts, not ours, still sum to the step and come back whole.
    """
    real = measured_breakdown(read_summary([TRACES / "a100_ddp_resnet.json.gz"]))
    model, cluster, chip = catalog.architecture("mpt-125m"), ClusterSpec(chip="a100-80-sxm", chips=2), "a100-80-sxm"
    workload = WorkloadSpec(seq_len=1024, global_batch=32)
    plans = [ParallelismPlan(dp=2, micro_batch=4, grad_accum=4), ParallelismPlan(dp=2, micro_batch=2, grad_accum=8)]
    found = project_many(PlanBatch.from_plans(plans), workload, model, cluster, catalog.chip(chip))
    measured = stretched(real, 1.3 * float(found.step_time_s[0]) / real.total_s)
    now = project_many(PlanBatch.from_plans(plans[:1]), workload, model, cluster, catalog.chip(chip))
    anchor = anchor_of(now, MeasuredStep(total_s=measured.total_s, breakdown=measured, steps=5))
    assert isinstance(anchor, Anchor), anchor
    anchored = AnchoredBatch.of(found, anchor, cluster, catalog.chip(chip))
    assert float(anchored.terms.breakdown.total_s[0]) == pytest.approx(measured.total_s, rel=1e-9)
    assert anchored[0].breakdown.compute_s == pytest.approx(measured.compute_s)
    assert anchored[0].breakdown.exposed_communication_s == pytest.approx(measured.exposed_communication_s)
    assert anchored[0].step_time_s == measured.total_s
    other = anchored[1].breakdown
    assert TimeBreakdown.model_validate(other.model_dump()) == other


def stretched(step: TimeBreakdown, factor: float) -> TimeBreakdown:
    """Every time multiplied."""

    def visit(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: item * factor if name.endswith("_s") and isinstance(item, float) else visit(item)
                for name, item in value.items()
            }
        return [visit(item) for item in value] if isinstance(value, list | tuple) else value

    return TimeBreakdown.model_validate(visit(step.model_dump()))
