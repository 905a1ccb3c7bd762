"""Requests that state figures or a symptom: with nothing to plan, with a plan, with a trace."""

import pytest
from pydantic import ValidationError

from agents.advisors.rules import RulesAdvisor
from agents.findings import PlanResult
from agents.observed import Observed, PhaseTimes
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from projector.errors import InvalidDescription, UnknownName
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec
from tests.unit.agents.planning_examples import MILLISECOND_NS, summary_of
from traces.measure_types import IdleSplit

LAUNCHES = "The GPUs are 60 % idle; thousands of tiny kernels, the host sets the pace."
JOB = {
    "workload": WorkloadSpec(model="llama-3-8b", seq_len=4096, global_batch=64),
    "cluster": ClusterSpec(chip="h100-sxm", chips=8),
    "current_plan": ParallelismPlan(dp=8, fsdp=8, zero_stage=3, grad_accum=8),
}


def _answer(request: PlanRequest, summary=None) -> PlanResult:
    return run_plan(request, summary, knowledge=NoKnowledge(), advisor=RulesAdvisor())


def test_a_symptom_alone_is_answered_with_remedies_and_questions() -> None:
    answer = _answer(PlanRequest(hardware=("h100-sxm",), symptom=LAUNCHES))
    assert answer.diagnosis.source == "stated"
    assert answer.diagnosis.cause in ("launch_bound", "host_idle")
    assert answer.proposals == ()
    assert answer.not_plannable is not None
    assert "workload.model" in answer.not_plannable
    assert answer.remedies[0].first
    assert answer.remedies[0].lever in ("cuda_graph", "host")
    assert any(ask.startswith("workload.model") for ask in answer.asks)


def test_every_evidence_of_a_remedy_is_in_the_answer_and_stated() -> None:
    answer = _answer(PlanRequest(symptom=LAUNCHES))
    known = {entry.id: entry for entry in answer.evidence}
    named = {name for remedy in answer.remedies for name in remedy.evidence}
    assert named
    assert all(known[name].source == "stated" for name in named)


def test_figures_alone_are_enough() -> None:
    answer = _answer(PlanRequest(observed=Observed(out_of_memory=True)))
    assert answer.diagnosis.bottleneck == "memory"


def test_nothing_stated_stays_an_error() -> None:
    with pytest.raises(InvalidDescription, match="nothing to plan"):
        _answer(PlanRequest(symptom="  "))


def test_an_unknown_chip_is_still_named() -> None:
    with pytest.raises(UnknownName):
        _answer(PlanRequest(hardware=("h1000",), symptom=LAUNCHES))


def test_with_a_plan_both_remedies_and_proposals_come() -> None:
    answer = _answer(PlanRequest.model_validate({**JOB, "symptom": LAUNCHES}))
    assert answer.diagnosis.source == "stated"
    assert answer.remedies[0].first
    assert len(answer.proposals) == 3
    assert any("shares are of the projected step" in limit for limit in answer.diagnosis.limits)


def test_a_cause_the_layout_relieves_comes_after_the_proposals() -> None:
    answer = _answer(
        PlanRequest(symptom="All-reduces of tensor parallelism take 40 % of the step. Configuration: tp 8")
    )
    assert answer.diagnosis.cause == "exposed_tp"
    assert answer.remedies[0].layout
    assert not any(remedy.first for remedy in answer.remedies)


def test_without_anything_stated_a_projected_job_has_no_remedies() -> None:
    answer = _answer(PlanRequest.model_validate(JOB))
    assert (answer.remedies, answer.asks, answer.diagnosis.source) == ((), (), "modelled")


def test_a_trace_outweighs_words() -> None:
    summary = summary_of(compute_ms=200, communication_ms=700, exposed_ms=700, collectives=[("tp", 700)])
    answer = _answer(PlanRequest(symptom="CUDA out of memory all the time."), summary)
    assert answer.diagnosis.source == "measured"
    assert answer.diagnosis.bottleneck == "communication"
    assert any("what is stated points to" in limit for limit in answer.diagnosis.limits)


def test_a_gain_is_bounded_by_the_share_that_can_go_away() -> None:
    answer = _answer(PlanRequest(observed=Observed(host_frac=0.2)))
    best = answer.remedies[0]
    assert best.gain_bound_frac == pytest.approx(1 / 0.8 - 1)
    assert best.gain_expected_frac is not None
    assert best.gain_expected_frac <= best.gain_bound_frac


def test_building_tensors_is_not_the_wire() -> None:
    building = PhaseTimes(generation_s=40, update_s=20, weight_sync_s=30, sync_assembly_s=25, sync_wire_s=2)
    sending = PhaseTimes(generation_s=40, update_s=20, weight_sync_s=30, sync_assembly_s=2, sync_wire_s=25)
    causes = [
        _answer(PlanRequest(observed=Observed(phases=times))).diagnosis.bottleneck for times in (building, sending)
    ]
    assert causes == ["compute", "communication"]


def test_copies_of_the_cache_are_counted_by_heads() -> None:
    request = PlanRequest(
        workload=WorkloadSpec(phase="serving", model="llama-3-8b"),
        symptom="Serving. Configuration: tp 32",
    )
    claims = [entry.claim for entry in _answer(request).evidence]
    assert any("tp 32 > 8 KV heads: 4 copies" in claim for claim in claims)


@pytest.mark.parametrize(
    "figures",
    [
        {"idle_frac": 0.7, "exposed_communication_frac": 0.6},
        {"duty_cycle_frac": 0.9, "idle_frac": 0.5},
        {"mfu_frac": 40},
        {"phases": {"weight_sync_s": 3, "sync_assembly_s": 4}},
        {"peak_memory_gib": 3},
        {"mfu_frac": 0.95, "exposed_communication_frac": 0.9},
        {"peak_memory_gb": 1e18},
        {"expert_imbalance": 1e12},
    ],
)
def test_figures_that_cannot_be_are_refused(figures: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Observed.model_validate(figures)


def test_a_symptom_has_a_length() -> None:
    with pytest.raises(ValidationError):
        PlanRequest(symptom="x" * 4001)


def test_what_such_runs_mostly_wait_for_is_no_statement() -> None:
    alone = _answer(PlanRequest(workload=WorkloadSpec(phase="serving"), observed=Observed(step_time_s=0.02)))
    assert alone.diagnosis.abstained
    assert alone.evidence == ()
    projected = _answer(PlanRequest.model_validate({**JOB, "observed": Observed(step_time_s=4.0)}))
    assert projected.diagnosis.source == "modelled"


@pytest.mark.parametrize(
    "figures",
    [
        {"phases": {"generation_s": 0, "update_s": 0, "weight_sync_s": 0}},
        {"phases": {"generation_s": 5, "weight_sync_s": 0}},
        {"mfu_frac": 1e-320},
    ],
)
def test_figures_next_to_nothing_are_answered(figures: dict[str, object]) -> None:
    assert _answer(PlanRequest(observed=Observed.model_validate(figures))).diagnosis.source == "stated"


def test_a_dense_model_has_no_busiest_expert() -> None:
    with pytest.raises(InvalidDescription, match="has no experts"):
        _answer(PlanRequest.model_validate({**JOB, "observed": Observed(expert_imbalance=2.0)}))


def test_what_is_stated_is_not_said_of_the_projected_step() -> None:
    request = {**JOB, "observed": Observed(exposed_communication_frac=0.5)}
    for current in (JOB["current_plan"], None):
        answer = _answer(PlanRequest.model_validate({**request, "current_plan": current}))
        assert answer.diagnosis.source == "stated"
        for proposal in answer.proposals:
            assert "projected step is limited by" not in proposal.rationale
            assert "would be limited by" not in proposal.rationale


def test_a_figure_denies_words_about_memory() -> None:
    words = "It runs out of memory"
    assert _answer(PlanRequest(symptom=words)).diagnosis.cause == "hbm_capacity"
    denied = _answer(PlanRequest(symptom=words, observed=Observed(out_of_memory=False)))
    assert denied.diagnosis.cause != "hbm_capacity"
    assert "stated not to be out of memory" in denied.evidence[0].claim
    assert "speaks against" in denied.evidence[0].claim


def test_a_trace_that_shows_no_cause_puts_no_lever_first() -> None:
    idle = summary_of(compute_ms=20, launch_bound_frac=0.0)
    answer = _answer(PlanRequest(workload=WorkloadSpec(phase="serving")), idle)
    assert answer.diagnosis.abstained
    assert answer.remedies
    assert {remedy.lever for remedy in answer.remedies if remedy.first} <= {"diagnosis"}


def test_a_trace_is_not_made_to_say_more_than_its_cause() -> None:
    answer = _answer(PlanRequest(), summary_of(compute_ms=950))
    assert answer.diagnosis.cause == "compute_throughput"
    assert answer.remedies[0].why == "The bottleneck is arithmetic throughput."


@pytest.mark.parametrize(("loading_ms", "lever"), [(700, "data"), (200, "host")])
def test_a_device_that_waits_for_input_is_told_to_feed_it(loading_ms: int, lever: str) -> None:
    loading, host = loading_ms * MILLISECOND_NS, 800 * MILLISECOND_NS
    pause = 700 * MILLISECOND_NS
    split = IdleSplit(
        host_bound_ns=host, launch_gap_ns=0, dependency_ns=0, unknown_ns=0, input_ns=loading, pause_ns=pause
    )
    summary = summary_of(compute_ms=200, kinds={"gemm": 200}).model_copy(update={"idle": split})
    answer = _answer(PlanRequest(), summary)
    assert answer.diagnosis.cause == "host_idle"
    assert answer.remedies[0].lever == lever


def test_nothing_is_counted_in_a_projected_step() -> None:
    answer = _answer(PlanRequest.model_validate(JOB))
    assert any(one.limiter == "link" for one in answer.diagnosis.categories)
    assert {one.count for one in answer.diagnosis.categories} == {None}
