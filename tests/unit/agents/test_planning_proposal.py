"""Gates, shortlist and what is assumed when the plan that ran would not fit."""

import numpy as np
import pytest
from planning_examples import summary_of, sure

from agents.advisors.ranking import PREFERENCE_FRAC
from agents.advisors.rules import RulesAdvisor
from agents.planning.analyzer import diagnose
from agents.planning.proposal import propose
from agents.planning.reference import reference_of
from agents.planning.resolve import resolve
from agents.planning.scores import feasible, legal_space, score, score_one
from agents.planning.shortlist import shortlist
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from projector.errors import InvalidDescription
from projector.ranking.relief import Relief
from projector.ranking.ties import TIE_FRAC
from projector.specs.plan_batch import PlanBatch
from traces.summary_types import Implied, ModelShapes

LLAMA = {
    "workload": {"model": "llama-3.1-70b", "phase": "training", "seq_len": 8192, "global_batch": 512},
    "cluster": {"chip": "h100-sxm", "chips": 64},
    "current_plan": {"dp": 8, "fsdp": 8, "zero_stage": 3, "tp": 8, "micro_batch": 1, "recompute": "full"},
}


@pytest.fixture(scope="module")
def searched():
    """(job, reference, shortlist) of a 70-billion-parameter model on 64 chips."""
    job = resolve(PlanRequest.model_validate(LLAMA), None)
    reference = reference_of(job)
    assert reference is not None
    scores = score(legal_space(job).plans, job)
    return job, reference, shortlist(scores, feasible(scores, job), job, reference, "compute_throughput")


def test_the_shortlist_is_short_ordered_and_holds_the_current_plan(searched):
    _, _, found = searched
    assert 3 <= len(found) <= 40
    gains = [candidate.gain_frac for candidate in found]
    assert gains == sorted(gains, reverse=True)
    assert [candidate.id for candidate in found] == [f"c{place}" for place in range(1, len(found) + 1)]
    assert sum(candidate.keeps for candidate in found) == 1


def test_it_spans_layouts_and_single_levers(searched):
    _, reference, found = searched
    assert len({candidate.plan.layout for candidate in found}) >= 8
    pure = [candidate for candidate in found if len(candidate.levers) == 1]
    assert any(candidate.plan.layout == reference.plan.layout for candidate in pure)


def test_gains_are_those_of_the_projector(searched):
    job, reference, found = searched
    for candidate in found[:5]:
        alone = score(PlanBatch.from_plans([candidate.plan]), job)
        assert alone.good[0] / reference.good - 1 == pytest.approx(candidate.gain_frac, abs=1e-8)
        assert candidate.projection == alone.projections[0]


def test_a_step_taken_back_is_a_projection_too(searched):
    """Leaving full recompute gains about what the forward pass costs: a quarter to a third."""
    _, _, found = searched
    steps = [step for candidate in found for step in candidate.steps if step.levers == ("recompute",)]
    gains = [step.gain_frac for step in steps if step.gain_frac is not None]
    assert gains
    assert max(gains) == pytest.approx(0.3, abs=0.07)


def test_numerics_stay_unless_allowed(searched):
    _, reference, found = searched
    assert {candidate.plan.compute_dtype for candidate in found} == {reference.plan.compute_dtype}
    opened = resolve(PlanRequest.model_validate({**LLAMA, "constraints": {"allow_numerics_changes": True}}), None)
    scores = score(legal_space(opened).plans, opened)
    wider = shortlist(scores, feasible(scores, opened), opened, reference, "compute_throughput")
    assert "fp8" in {candidate.plan.compute_dtype for candidate in wider}


@pytest.mark.parametrize("cause", ["exposed_tp", "exposed_dp", "compute_throughput", "hbm_capacity"])
def test_what_saves_most_of_the_blamed_term_near_the_best_is_listed(searched, cause):
    job, reference, _ = searched
    scores = score(legal_space(job).plans, job)
    passing = feasible(scores, job)
    found = shortlist(scores, passing, job, reference, cause)
    rows = np.flatnonzero(passing & (scores.good * (1 + PREFERENCE_FRAC) >= scores.good[passing].max()))
    now = score_one(reference.plan, job).projections
    saved = Relief.of(cause, now).saved_frac(scores.projections)[rows]
    listed = [Relief.of(cause, now).saved_frac(score_one(one.plan, job).projections)[0] for one in found]
    assert max(listed) * (1 + TIE_FRAC) >= saved.max()


def test_a_plan_that_ran_is_taken_to_fit():
    """70 billion weights of two bytes exceed one chip of 80 GB by far; it ran, so they were stored narrower."""
    implied = Implied(
        chip_name=sure("NVIDIA H100 80GB HBM3"),
        hbm_bytes=sure(85_028_765_696),
        world_size=sure(1),
        phase=sure("serving"),
        is_transformer_lm=sure(True),
        shapes=ModelShapes(hidden_size=8192, layers=80, vocab_shard=128_256, heads_per_rank=64, head_dim=128, tokens=4),
    )
    job = resolve(PlanRequest(), summary_of(compute_ms=900, kinds={"gemm": 900}, implied=implied))
    assert job.current is not None
    assert job.current.weight_dtype in ("fp8", "fp4")
    assumption = next(entry for entry in job.assumptions if entry.field == "current_plan")
    assert assumption.value == f"weight_dtype {job.current.weight_dtype}"
    assert "would not fit" in assumption.reason


def test_fixed_values_that_forbid_every_plan_are_named_with_the_rule_and_what_would_do():
    """Llama 70B has 8 KV heads and a batch of 3: tp at most 8 and dp 1 or 3 leave no plan of 64 devices without pp."""
    request = PlanRequest.model_validate(
        {
            "workload": {"model": "llama-3.1-70b", "phase": "training", "seq_len": 8192, "global_batch": 3},
            "cluster": {"chip": "h100-sxm", "chips": 64},
            "constraints": {"fixed": {"cp": 1, "pp": 1, "tp": 2}},
        }
    )
    job = resolve(request, None)
    asked = (job, diagnose(summary_of(device=False)), reference_of(job), NoKnowledge(), RulesAdvisor(), "rules")
    with pytest.raises(InvalidDescription, match=r"pp 1: .* != 3") as refused:
        propose(*asked)
    assert refused.value.hint.startswith("pp can be ")
