"""What may be asked for: each mode of a request as one example."""

from typing import Any

import pytest
from anchored_examples import CURRENT, REQUEST, machine, step_on, trace_on
from planning_examples import summary_of, sure

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.planning.graph import run_plan
from agents.planning.not_layout import said_first
from agents.planning.state import NoKnowledge
from agents.planning.titles import KEEP_TITLE
from agents.remedies.remedy import Remedy
from agents.request import PlanRequest
from projector.errors import InvalidDescription
from traces.summary_types import Implied, TraceSummary

LLAMA_8B = {
    "workload": {"model": "llama-3.1-8b", "phase": "training", "seq_len": 8192, "global_batch": 128},
    "cluster": {"chip": "h100-sxm", "chips": 16},
}
SERVED = {
    "workload": {
        "model": "llama-3.1-70b",
        "phase": "serving",
        "input_len": 1024,
        "output_len": 256,
        "concurrency": 64,
    },
    "cluster": {"chip": "h100-sxm", "chips": 8},
}
SLOW = {"dp": 1, "tp": 16, "micro_batch": 1, "grad_accum": 128, "recompute": "full"}
FITS_NOT = {"dp": 16, "micro_batch": 1, "grad_accum": 8}


def plan(request: dict[str, Any], summary: TraceSummary | None = None) -> PlanResult:
    return run_plan(PlanRequest.model_validate(request), summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())


def trace(**implied: Any) -> TraceSummary:
    """Two thirds of a step in exposed tensor-parallel traffic."""
    named = {name: sure(value) for name, value in implied.items()}
    seen = Implied(phase=sure("training"), is_transformer_lm=sure(True), **named)
    return summary_of(compute_ms=350, exposed_ms=650, kinds={"gemm": 350}, collectives=[("tp", 650)], implied=seen)


def test_without_a_current_plan_titles_name_the_layout():
    first = plan(LLAMA_8B).proposals[0]
    assert not first.title.startswith(("More", "Less"))
    assert "No current plan is known" in first.rationale
    assert first.trail[0].before.gain_frac == 0


def test_with_a_current_plan_titles_name_what_changes():
    first = plan({**LLAMA_8B, "current_plan": SLOW}).proposals[0]
    assert first.title.startswith("Less tensor parallelism (16 to")
    assert (first.relieves, first.enlarges) == ("exposed_communication", "dp")
    assert first.adoption_effort == "reshard"
    assert "checkpoint" in first.adoption


def test_with_a_trace_the_measured_step_is_what_a_gain_is_of():
    result = plan(REQUEST, trace_on(machine(gemm=1.2)))
    assert result.diagnosis.source == "measured"
    first = result.proposals[0]
    assert first.trail[0].before.step_time_s == pytest.approx(step_on(machine(gemm=1.2), CURRENT).total_s)
    assert first.experiment is not None
    assert first.experiment.reference == pytest.approx(1000 * first.trail[0].before.step_time_s)


def test_of_an_unknown_model_memory_is_never_said_to_fit():
    result = plan({}, trace(world_size=8, tp=8, chip_name="NVIDIA H100 80GB HBM3"))
    assert len(result.proposals) == 3
    for proposal in result.proposals:
        assert {step.fit for step in proposal.trail} <= {"unknown"}
        assert all(step.after.memory_bytes is None for step in proposal.trail)
        if proposal.projections[0].memory_direction in ("more", "unknown"):
            assert any(loss.what == "memory" and loss.after is None for loss in proposal.worse)
        assert "Memory is not known" in proposal.stop_condition


def test_for_another_topology_the_traced_layout_is_scaled():
    """A trace of 256 chips, 128 to plan for: half of the data parallelism is what comparisons start from."""
    traced = trace(world_size=256, tp=8, dp=32, pp=1, chip_name="NVIDIA H100 80GB HBM3")
    request = {**LLAMA_8B, "cluster": {"chip": "h100-sxm", "chips": 128}}
    result = plan(request, traced)
    assert {proposal.plan.devices for proposal in result.proposals} == {128}
    assert "the traced layout scaled to these devices (dp 16 tp 8)" in result.proposals[0].expected.basis
    assert next(one for one in result.assumptions if one.field == "baseline").value == "dp 16 tp 8"
    assert result.current is None


def test_a_fixed_axis_stays():
    result = plan({**LLAMA_8B, "constraints": {"fixed": {"tp": 8}}})
    assert len(result.proposals) == 3
    assert {proposal.plan.tp for proposal in result.proposals} == {8}


def test_an_impossible_fixed_axis_names_the_rule_and_what_would_do():
    asked = {**LLAMA_8B, "cluster": {"chip": "h100-sxm", "chips": 64}, "constraints": {"fixed": {"tp": 64}}}
    with pytest.raises(InvalidDescription, match=r"tp 64: tp \(attention heads\) 64 does not divide 32") as refused:
        plan(asked)
    assert refused.value.hint.startswith("tp can be 1")


def test_numerics_stay_unless_they_are_allowed():
    asked = {**LLAMA_8B, "current_plan": SLOW, "constraints": {"fixed": {"compute_dtype": "fp8"}}}
    with pytest.raises(InvalidDescription, match=r"compute_dtype = fp8.*has bf16: numerics would change"):
        plan(asked)
    opened = plan({**asked, "constraints": {**asked["constraints"], "allow_numerics_changes": True}})
    assert opened.proposals[0].numerics == ("precision",)
    assert "two seeds" in opened.proposals[0].stop_condition
    assert any("Numerics change" in risk for risk in opened.proposals[0].risks)


@pytest.mark.parametrize("objective", ["itl_ms", "ttft_ms", "cost_per_million_tokens"])
def test_a_goal_of_serving_is_what_is_watched(objective: str):
    chip = {"chip": "tpu-v6e", "chips": 8} if objective.startswith("cost") else SERVED["cluster"]
    result = plan({**SERVED, "cluster": chip, "objective": objective, "current_plan": {"phase": "serving", "tp": 8}})
    tested = [proposal.experiment for proposal in result.proposals if proposal.experiment is not None]
    assert {test.watch for test in tested} == {f"{objective} at the same load"}


def test_where_the_current_plan_does_not_fit_the_goal_to_fit_takes_the_cheapest_change():
    asked = {**LLAMA_8B, "current_plan": FITS_NOT}
    result, fastest = plan({**asked, "objective": "fits"}), plan(asked)
    assert result.current is not None
    assert result.current.fit == "too_large"
    first = result.proposals[0]
    assert first.projections[0].fit == "fits"
    assert first.adoption_effort in ("flag", "config")
    assert len(first.changes) <= len(fastest.proposals[0].changes)
    assert first.experiment is not None
    assert first.experiment.watch == "ranks[].memory_high_water_bytes"
    # and what is first tried would not have fitted
    assert first.trail[0].before.memory_bytes > first.projections[0].memory.capacity_bytes


def test_what_fits_is_kept_where_the_goal_is_to_fit():
    kept = plan({**LLAMA_8B, "current_plan": SLOW, "objective": "fits"}).proposals[0]
    assert kept.title == KEEP_TITLE
    assert "nothing has to change" in kept.rationale


def test_the_best_plan_is_kept_and_says_how_far_the_others_are():
    """Whoever takes the first proposal again and again soon has nothing left to change."""
    again = plan(LLAMA_8B)
    for _ in range(4):
        again = plan({**LLAMA_8B, "current_plan": again.proposals[0].plan.model_dump()})
    kept = again.proposals[0]
    assert kept.title == KEEP_TITLE
    assert kept.experiment is None
    assert kept.trail == ()
    assert "the best of them (" in kept.rationale
    assert "ahead, which is within the noise" in kept.rationale or " behind." in kept.rationale
    assert all(proposal.title != KEEP_TITLE for proposal in again.proposals[1:])


def test_two_chips_never_get_a_mesh_of_four():
    result = plan(
        {**SERVED, "workload": {"model": "qwen3-8b", "phase": "serving"}, "cluster": {"chip": "tpu-v6e", "chips": 2}}
    )
    assert {proposal.plan.devices for proposal in result.proposals} == {2}


def test_what_no_layout_relieves_is_said_first():
    launching = summary_of(
        compute_ms=100,
        kinds={"gemm": 100},
        launch_bound_frac=0.9,
        implied=Implied(world_size=sure(8), tp=sure(8), phase=sure("training"), is_transformer_lm=sure(True)),
    )
    result = plan({}, launching)
    assert result.diagnosis.cause == "launch_bound"
    first = "Before any change of layout: capture the step in graphs"
    assert result.diagnosis.summary.startswith(first)
    assert result.proposals[0].rationale.startswith(first)


def test_a_remedy_that_comes_first_is_named_before_the_proposals():
    remedy = Remedy(
        lever="packing",
        title="Pack documents into full rows",
        why="62 % of the tokens are padding.",
        relieves=("compute_throughput",),
        first=True,
        condition="padding > 10 %",
        effort="config",
        costs="attention needs a mask a document",
    )
    result = plan({**LLAMA_8B, "current_plan": SLOW})
    said = said_first(result.model_copy(update={"remedies": (remedy,)}), relieved=False)
    sentence = "Before any change of layout: pack documents into full rows. 62 % of the tokens are padding."
    assert said.diagnosis.summary.startswith(sentence)
    assert said.proposals[0].rationale.startswith(sentence)
    assert said_first(result, relieved=False) == result
