"""Rows of reinforcement learning: the steps and pairs of plans they may mean, and what is refused."""

import pytest
from evaluation_examples import row

from agents.evaluation.accuracy import accuracy
from agents.evaluation.anchoring import anchor_report
from agents.evaluation.cases import Case
from agents.evaluation.refusal import Refused
from agents.evaluation.rl_cases import rl_case_of, score_rl

ON_POLICY = {
    "algorithm": "GRPO",
    "policy": "On policy",
    "gen_tp": 2,
    "gen_pp": 1,
    "gen_gbs": 256,
    "gen_avg_seq": 1024,
}


def rl_row(extra=None, **changes):
    values = {"phase": "rl", "seq_len": 2048, "measured": {"step_time_s": 60.0}} | changes
    return row(adopted={"dp": None, "recompute": None, "extra": ON_POLICY | (extra or {})}, **values)


def case(extra=None, **changes) -> Case:
    return rl_case_of(rl_row(extra, **changes), "modern")


def test_an_on_policy_row_has_one_pair_of_colocated_plans_a_recompute_mode():
    one = case()
    assert {option.plan.placement for option in one.rl} == {"colocated"}
    assert {option.plan.training.recompute for option in one.rl} == {"none", "selective", "full"}
    plan, step = one.rl[0].plan, one.rl[0].step
    assert (plan.training.dp, plan.rollout.dp, plan.rollout.tp) == (8, 4, 2)
    assert (step.responses, step.updates, step.longest_response) == (256, 4, 2047)
    assert "prompt_tokens" in one.assumed
    assert "split of the devices" not in one.assumed


def test_an_off_policy_row_is_tried_with_every_split_both_pools_fill():
    one = case({"policy": "1-step Off"})
    splits = {(option.plan.training.dp, option.plan.rollout.dp) for option in one.rl}
    assert splits == {(2, 3), (4, 2), (6, 1)}
    assert {option.plan.steps_off_policy for option in one.rl} == {1}
    assert "split of the devices" in one.assumed


def test_a_step_is_compared_with_the_time_the_row_prints():
    scored = score_rl(case())
    assert scored.measured_s == pytest.approx(60.0)
    assert scored.projection.step_time_s > 0
    assert scored.projection.fit == "fits"
    assert scored.broken_rules == ()


def test_rows_of_all_phases_are_scored_in_one_report():
    report = accuracy([rl_row(), row("pretraining")], {}, with_rows=True)
    assert [entry.phase for entry in report.rows] == ["rl", "pretrain"]


def test_steps_of_two_plans_are_no_anchors_of_each_other():
    slower = rl_row({"gen_tp": 4}, name="other", measured={"step_time_s": 70.0})
    report = anchor_report([rl_row(), slower], {})
    assert (report.n_given, report.n_sweeps) == (2, 0)


@pytest.mark.parametrize(
    ("extra", "changes", "reason"),
    [
        ({"policy": None}, {}, "not known whether generation and training overlap"),
        ({"gen_tp": None}, {}, "tensor parallelism is not stated"),
        ({"gen_tp": 3}, {}, "no whole number of trainers and engines"),
        ({"gen_avg_seq": None}, {}, "mean length"),
        ({"gen_avg_seq": 4096}, {}, "below response_tokens"),
        ({"gen_gbs": 100}, {}, "no whole number of updates"),
        ({"algorithm": "SWE"}, {}, "environment is not modelled"),
        ({}, {"seq_len": None}, "sequence length not stated"),
        ({}, {"measured": {"step_time_s": None}}, "without its time"),
    ],
)
def test_what_cannot_be_told_is_refused_with_its_reason(extra, changes, reason):
    with pytest.raises(Refused, match=reason):
        case(extra, **changes)
