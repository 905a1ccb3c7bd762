"""What holds of every proposal of every job: its trail adds up, its words have the direction of its numbers."""

import re
from itertools import pairwise
from math import isclose

import pytest
from hypothesis import HealthCheck, assume, given, settings
from proposal_jobs import answer, jobs

from agents.findings import PlanResult, Proposal
from agents.planning.aims import AXES
from agents.planning.titles import DEGREES, KEEP_TITLE, SIZES
from projector.errors import InvalidDescription
from projector.specs.plan import ParallelismPlan

EXAMPLES = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
MOVE = re.compile(r"(more|less|fewer|larger|smaller|higher|lower) ([a-z-][a-z -]*?) \((\d+) to (\d+)\)", re.IGNORECASE)
GROWS = {"more", "larger", "higher"}
FIELD_OF = {words: field for field, words in DEGREES.items()} | {words[2]: field for field, words in SIZES.items()}


def check_job(body):
    try:
        result = answer(body)
    except InvalidDescription:
        # a current plan or a fixed axis that cannot run: refused, and tested elsewhere
        assume(False)
    # three whenever there are three to choose from
    assert len(result.proposals) == min(3, result.candidates_feasible)
    assert (result.fewer_because is None) == (len(result.proposals) == 3)
    assert len({proposal.plan for proposal in result.proposals}) == len(result.proposals)
    devices = body["cluster"]["chips"]
    for proposal in result.proposals:
        # the device count is a gate: two chips never get a layout of four
        assert proposal.plan.devices == devices
        assert all(getattr(proposal.plan, axis) == value for axis, value in _fixed(body).items())
        _trail_adds_up(proposal)
        _words_have_the_direction_of_numbers(proposal)
        _what_is_kept_is_named(proposal, result)
        _batch_and_numerics_stay(proposal, body)
        _test_can_fail(proposal)


def _fixed(body):
    return body.get("constraints", {}).get("fixed", {})


def _trail_adds_up(proposal: Proposal) -> None:
    trail = proposal.trail
    if not trail:
        assert not proposal.changes
        return
    assert trail[0].before.gain_frac == 0
    assert trail[-1].plan == proposal.plan
    assert isclose(trail[-1].after.step_time_s, proposal.projections[0].step_time_s, rel_tol=1e-9)
    gains = sum(step.after.gain_frac - step.before.gain_frac for step in trail)
    assert isclose(gains, proposal.expected.objective_frac, rel_tol=1e-6, abs_tol=1e-6)
    for step, following in pairwise(trail):
        assert step.after == following.before
    if proposal.expected.memory_frac is not None and trail[0].before.memory_bytes:
        grown = trail[-1].after.memory_bytes / trail[0].before.memory_bytes - 1
        assert isclose(grown, proposal.expected.memory_frac, rel_tol=1e-6, abs_tol=1e-6)


def _words_have_the_direction_of_numbers(proposal: Proposal) -> None:
    for title, plan in [(proposal.title, proposal.plan), *((step.title, step.plan) for step in proposal.trail)]:
        for word, words, old, new in MOVE.findall(title):
            assert getattr(plan, FIELD_OF[words]) == int(new)
            assert (word.lower() in GROWS) == (int(new) > int(old))
    gain = proposal.expected.objective_frac
    assert gain is not None
    for side, number in re.findall(r"(improves|worsens) by (\d+\.\d) % against", proposal.rationale):
        assert (side == "improves") == (gain >= 0)
        assert isclose(float(number), abs(gain) * 100, abs_tol=0.06)
    for loss in proposal.worse:
        if loss.before is not None and loss.after is not None:
            assert (loss.after < loss.before) == (" fall from " in loss.text)
    if proposal.enlarges is not None:
        assert proposal.enlarges in AXES


def _what_is_kept_is_named(proposal: Proposal, result: PlanResult) -> None:
    current = result.current.plan if result.current else None
    assert (proposal.title == KEEP_TITLE) == (proposal.plan == current)
    assert (proposal.experiment is None) == (proposal.title == KEEP_TITLE)


def _batch_and_numerics_stay(proposal: Proposal, body) -> None:
    plan: ParallelismPlan = proposal.plan
    assert proposal.numerics == ()
    if plan.phase == "training":
        assert plan.dp * plan.micro_batch * plan.grad_accum == body["workload"]["global_batch"]


def _test_can_fail(proposal: Proposal) -> None:
    test = proposal.experiment
    if test is None:
        return
    assert test.low <= test.predicted <= test.high
    # what is expected does not refute itself
    lower_is_better = f"above {_shown(test.refuted_beyond)}" in test.text
    assert test.predicted <= test.refuted_beyond if lower_is_better else test.predicted >= test.refuted_beyond


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


@EXAMPLES
@given(jobs())
def test_every_proposal_is_what_it_says(body):
    check_job(body)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@MANY
@given(jobs())
def test_hundreds_of_proposals_are_what_they_say(body):
    check_job(body)
