"""Practice: the choice model, votes of past runs, and the order of plans where nothing runs yet."""

import dataclasses

import numpy as np
import pytest
from advisor_examples import candidate, question

from agents.advisors.protocol import Adoption
from agents.advisors.ranking import rank
from agents.advisors.rules import RulesAdvisor
from agents.planning.analyzer import undiagnosed
from agents.planning.confidence import confidence
from agents.planning.graph import run_plan
from agents.planning.history import past_question
from agents.planning.practice import job_practice, job_table
from agents.planning.resolve import resolve
from agents.planning.scores import feasible, scored_space
from agents.planning.state import NoKnowledge
from agents.practice.choice import Choices, fitted, shares
from agents.practice.features import NAMES, features_of
from agents.practice.model import Calibration, shipped_model
from agents.practice.practice import SLOWER_FRAC, practice_of
from agents.practice.votes import NO_VOTES, VOTE_NAMES, vote_figures, votes_of
from agents.request import PlanRequest
from knowledge_base.history_files import bundled_history
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

NOTHING = undiagnosed("nothing was looked at")
MOE = PlanRequest(
    workload=WorkloadSpec(model="qwen3-30b-a3b", seq_len=4096, global_batch=512),
    cluster=ClusterSpec(chip="h100-sxm", chips=16),
    framework="megatron-bridge",
)


@pytest.fixture(scope="module")
def job():
    return resolve(MOE, None)


@pytest.fixture(scope="module")
def table(job):
    _, scores = scored_space(job)
    return job_table(job, scores, feasible(scores, job))


def test_a_fit_finds_the_weights_that_made_the_choices():
    draw = np.random.default_rng(7)
    truth = np.array([1.5, -0.8])
    figures, adopted = [], []
    for _ in range(600):
        one = draw.normal(size=(8, 2))
        chosen = draw.choice(8, p=shares(one, truth))
        figures.append(one)
        adopted.append((np.arange(8) == chosen).astype(float))
    found = fitted(Choices.of(figures, adopted), np.ones(600), np.zeros(2), np.full(2, 1e-3))
    assert found == pytest.approx(truth, abs=0.2)
    held = fitted(Choices.of(figures, adopted), np.ones(600), np.array([3.0, 0.0]), np.array([1e9, 1e-3]))
    assert held[0] == pytest.approx(3.0, abs=1e-3)


def test_a_job_without_an_adopted_layout_bears_on_nothing():
    told = Choices.of([np.eye(2), np.eye(2)], [np.array([1.0, 0.0]), np.zeros(2)])
    alone = Choices.of([np.eye(2)], [np.array([1.0, 0.0])])
    prior, penalty = np.zeros(2), np.ones(2)
    assert fitted(told, np.ones(2), prior, penalty) == pytest.approx(fitted(alone, np.ones(1), prior, penalty))


def test_a_table_holds_each_layout_once_with_the_plan_that_yields_most(table):
    degrees = [tuple(row) for row in table.degrees.tolist()]
    assert len(degrees) == len(set(degrees))
    assert features_of(table).shape == (len(table), len(NAMES))
    assert features_of(table)[:, NAMES.index("gain")].max() == 0.0


def test_shares_sum_to_one_and_faster_is_likelier_all_else_equal(table):
    practice = practice_of(table, (), None, shipped_model())
    assert practice.share.sum() == pytest.approx(1.0)
    slower = dataclasses.replace(table, good=table.good * np.where(np.arange(len(table)) == 0, 0.5, 1.0))
    assert practice_of(slower, (), None, shipped_model()).share[0] < practice.share[0]


def test_what_is_projected_clearly_slower_never_leads(table):
    practice = practice_of(table, (), None, shipped_model())
    first = practice.order()[0]
    slowed = np.where(np.arange(len(table)) == first, table.good.max() / (1 + 2 * SLOWER_FRAC), table.good)
    again = practice_of(dataclasses.replace(table, good=slowed, value=slowed), (), None, shipped_model())
    assert again.order()[0] != first


def test_votes_of_similar_runs_count_more_and_hidden_groups_not_at_all(job, table):
    question_ = past_question(job, NOTHING)
    seen = bundled_history().past(question_, k=50)
    votes = votes_of(seen, table.setting, job.framework)
    assert len(votes) > 5
    assert vote_figures(table, votes).shape == (len(table), len(VOTE_NAMES))
    own = {one.case.group for one in seen if one.match == "exact" or one.match == "same model"}
    blind = bundled_history().past(question_.model_copy(update={"hide_groups": frozenset(own)}), k=50)
    assert not own & {one.case.group for one in blind}
    told = list(zip(votes.weight, _adopted(seen), strict=True))
    same = [weight for weight, one in told if one.match == "same model"]
    other = [weight for weight, one in told if one.match != "same model"]
    assert max(same) > np.median(other)


def test_a_job_that_says_nothing_to_practice_is_left_alone():
    serving = PlanRequest(
        workload=WorkloadSpec(phase="serving", model="llama-3.1-8b", input_len=512, output_len=64, concurrency=8),
        cluster=ClusterSpec(chip="h100-sxm", chips=2),
    )
    found = resolve(serving, None)
    _, scores = scored_space(found)
    assert job_practice(found, scores, feasible(scores, found), (), shipped_model()) is None
    narrowed = resolve(MOE.model_copy(update={"constraints": Constraints(fixed={"pp": 1})}), None)
    space, scores = scored_space(narrowed)
    assert job_table(narrowed, scores, feasible(scores, narrowed)) is None
    open_ = resolve(MOE, None)
    space, scores = scored_space(open_)
    assert job_table(open_, scores, np.zeros(len(space.plans), dtype=bool)) is None


def likely(number, plan, gain, share):
    return candidate(number, plan, gain).model_copy(update={"adoption": Adoption(share=share, chance=share, cases=99)})


def test_where_nothing_runs_the_likeliest_layout_goes_first_and_a_much_slower_one_does_not():
    fast = likely(1, ParallelismPlan(tp=8, dp=8), 0.20, 0.1)
    usual = likely(2, ParallelismPlan(tp=4, dp=16), 0.15, 0.6)
    slow = likely(3, ParallelismPlan(tp=2, dp=32), -0.2, 0.9)
    asked = question([fast, usual, slow])
    scratch = asked.model_copy(update={"reference_is_current": False})
    assert [one.id for one in rank(scratch)] == ["c2", "c1", "c3"]
    # where something runs already practice decides nothing
    untold = tuple(one.model_copy(update={"adoption": None}) for one in asked.candidates)
    plain = rank(asked.model_copy(update={"candidates": untold}))
    assert [one.id for one in rank(asked)] == [one.id for one in plain]


def test_confidence_is_the_calibrated_chance_or_says_that_it_is_none(job):
    sure = confidence(likely(1, ParallelismPlan(tp=8, dp=8), 0.2, 0.4), NOTHING, job)
    assert (sure.value, sure.calibrated) == (0.4, True)
    assert "calibrated on 99 picks" in sure.basis
    by_rule = confidence(candidate(1, ParallelismPlan(tp=8, dp=8), 0.2), NOTHING, job)
    assert not by_rule.calibrated
    assert by_rule.basis.startswith("not calibrated for this job, by a stated rule: 0.70")


def test_a_calibration_moves_shares_the_way_it_says():
    assert Calibration(intercept=0.0, slope=1.0, cases=1, ece=0.0).chance(0.3) == pytest.approx(0.3)
    assert Calibration(intercept=-1.0, slope=1.0, cases=1, ece=0.0).chance(0.3) < 0.3


def test_the_shipped_weights_name_figures_and_nothing_else():
    model = shipped_model()
    for one in model.sets:
        assert tuple(one.weights) == ((*NAMES, *VOTE_NAMES) if one.with_past else NAMES)
        assert one.calibration is not None
        assert one.calibration.cases >= 100
    assert {(one.framework_named, one.with_past) for one in model.sets} == {
        (named, past) for named in (True, False) for past in (True, False)
    }
    assert len(NO_VOTES) == 0


def _adopted(matches):
    return [one for one in matches if one.case.kind == "published" and one.case.role == "adopted"]


def test_two_sets_of_degrees_still_give_three_distinct_layouts():
    """Two devices have tp 1 and tp 2 alone: the third differs in how weights are sharded."""
    body = {
        "workload": {"model": "llama-3.1-8b", "phase": "training", "seq_len": 2048, "global_batch": 8},
        "cluster": {"chip": "tpu-v5p", "chips": 2},
    }
    result = run_plan(PlanRequest.model_validate(body), None, knowledge=NoKnowledge(), advisor=RulesAdvisor())
    assert len({one.plan.layout for one in result.proposals}) == 3
