"""A step of reinforcement learning: rollout, forward passes, updates and hand-over, and what of it overlaps."""

import pytest
from projector_examples import cluster, dense_model, ideal, switched_chip

from projector.breakdown import TimeBreakdown
from projector.breakdown_sums import in_sequence, repeated
from projector.errors import InvalidDescription
from projector.project_rl import project_rl
from projector.rl_projection import RlProjection
from projector.rollout import DRIVEN_STEP_S, resident_tokens, survival
from projector.specs.plan import ParallelismPlan
from projector.specs.rl import RlPlan, RlStep

CHIP = switched_chip(calibration=ideal())


def step(**changes: object) -> RlStep:
    values = {"prompts": 16, "samples": 8, "prompt_tokens": 128, "response_tokens": 896, "row_tokens": 2048}
    return RlStep.model_validate(values | changes)


def plan_of(work: RlStep, *, trainers: int = 8, engines: int = 8, **placement: object) -> RlPlan:
    training = ParallelismPlan(dp=trainers, zero_stage=1)
    needed = work.micro_batches(training, work.responses // work.updates)
    return RlPlan.model_validate(
        {
            "training": training.model_copy(update={"grad_accum": needed}),
            "rollout": ParallelismPlan(phase="serving", dp=engines, max_num_seqs=64),
            **placement,
        }
    )


def projected(work: RlStep, chips: int = 8, **layout: object) -> RlProjection:
    return project_rl(plan_of(work, **layout), work, dense_model(), cluster(CHIP, chips), CHIP)


def assert_whole(found: RlProjection) -> None:
    parts = found.breakdown
    total = parts.compute_s + parts.exposed_communication_s + parts.exposed_copy_s + parts.idle_s
    assert total == pytest.approx(found.step_time_s) == pytest.approx(parts.total_s)


def test_colocated_phases_follow_each_other() -> None:
    found = projected(step())
    assert found.step_time_s == pytest.approx(sum(phase.time_s for phase in found.phases))
    assert {phase.pool for phase in found.phases} == {"both"}
    assert found.fit == "fits"
    assert found.tokens_per_s_per_chip == pytest.approx(128 * 1024 / found.step_time_s / 8)
    assert_whole(found)


def test_separate_pools_on_policy_wait_for_each_other() -> None:
    found = projected(step(), chips=16, placement="separate")
    assert found.step_time_s == pytest.approx(sum(phase.time_s for phase in found.phases))
    waiting = sum(phase.time_s for phase in found.phases if phase.pool not in (found.breakdown_of, "both"))
    assert found.breakdown.idle_s >= waiting
    assert_whole(found)


def test_separate_pools_one_step_ahead_take_as_long_as_the_longer_of_them() -> None:
    found = projected(step(), chips=16, placement="separate", steps_off_policy=1)
    trainer = sum(phase.time_s for phase in found.phases if phase.pool in ("trainer", "both"))
    engines = sum(phase.time_s for phase in found.phases if phase.pool in ("engines", "both"))
    assert found.step_time_s == pytest.approx(max(trainer, engines))
    assert_whole(found)


def test_engines_far_ahead_never_empty() -> None:
    tail = step(response_tokens=500, longest_response=1900)
    one, many = (projected(tail, chips=16, placement="separate", steps_off_policy=ahead) for ahead in (1, 8))
    assert many.phase_s("rollout") < one.phase_s("rollout")


def test_the_longest_response_ends_a_rollout_not_the_mean_one() -> None:
    alike, tail = (projected(step(response_tokens=500, longest_response=longest)) for longest in (None, 1500))
    assert 2.5 < tail.phase_s("rollout") / alike.phase_s("rollout") < 3.0
    assert tail.phase_s("rollout") > 1500 * DRIVEN_STEP_S
    assert any("no tail" in text for text in alike.assumptions)


def test_survival_has_the_mean_it_was_given() -> None:
    work = step(response_tokens=700, longest_response=1900)
    mean = sum(survival(work, t + 0.5) for t in range(1900))
    assert mean == pytest.approx(700, rel=1e-3)
    assert (survival(work, 0.0), survival(work, 1900.0)) == (1.0, 0.0)
    assert 128 < resident_tokens(work) < 128 + 1900


def test_more_requests_than_seats_are_generated_in_turns() -> None:
    few = plan_of(step()).model_copy(update={"rollout": ParallelismPlan(phase="serving", dp=8, max_num_seqs=4)})
    crowded = project_rl(few, step(), dense_model(), cluster(CHIP, 8), CHIP)
    assert crowded.phase_s("rollout") > 3 * projected(step()).phase_s("rollout")


def test_passes_that_train_nothing_take_a_third_of_an_update_each() -> None:
    both, none = projected(step()), projected(step(old_log_probs=False, reference=False))
    assert none.phase_s("log_probs") == 0
    assert both.phase_s("log_probs") == pytest.approx(2 / 3 * both.phase_s("training"), rel=0.15)


def test_a_critic_is_trained_and_scored_like_the_policy() -> None:
    grpo, ppo = projected(step()), projected(step(critic=True))
    assert ppo.phase_s("training") == pytest.approx(2 * grpo.phase_s("training"))
    assert ppo.phase_s("log_probs") == pytest.approx(1.5 * grpo.phase_s("log_probs"))


def test_packed_rows_hold_several_sequences_and_padded_ones_a_single() -> None:
    assert step().row_count(128) == 64
    assert step(rows="padded").row_count(128) == 128
    assert projected(step(rows="padded")).phase_s("training") > 1.5 * projected(step()).phase_s("training")


def test_several_updates_share_the_responses() -> None:
    one, four = projected(step()), projected(step(updates=4))
    assert four.phase_s("training") == pytest.approx(one.phase_s("training"), rel=0.1)


def test_trainer_and_engines_must_each_fit() -> None:
    found = project_rl(
        plan_of(step()),
        step(),
        dense_model(layers=200, hidden_size=4096, intermediate_size=16384, heads=64),
        cluster(CHIP, 8),
        CHIP,
    )
    assert found.fit == "too_large"
    assert any("the trainer" in rejection.quantity for rejection in found.rejections)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"longest_response": 100}, "below response_tokens"),
        ({"row_tokens": 512}, "do not fit rows"),
        ({"updates": 3}, "does not divide"),
    ],
)
def test_steps_that_contradict_themselves_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        step(**changes)


def test_plans_that_do_not_share_the_machine_are_refused() -> None:
    for layout, message in (
        ({"engines": 4}, "occupy the same devices"),
        ({"steps_off_policy": 1}, "cannot run at once"),
    ):
        with pytest.raises(ValueError, match=message):
            plan_of(step(), **layout)
    with pytest.raises(InvalidDescription, match="occupy 8 devices"):
        projected(step(), chips=16)
    work = step()
    short = plan_of(work).training.model_copy(update={"grad_accum": 1})
    with pytest.raises(InvalidDescription, match="takes 8 micro-batches"):
        project_rl(plan_of(work).model_copy(update={"training": short}), work, dense_model(), cluster(CHIP, 8), CHIP)


def test_sums_of_breakdowns_keep_every_part() -> None:
    one = TimeBreakdown(
        source="modelled",
        total_s=3.0,
        compute_s=1.0,
        exposed_communication_s=1.0,
        overlapped_communication_s=0.5,
        idle_s=1.0,
    )
    assert repeated(one, 2).total_s == 6.0
    assert in_sequence([(one, 1.0), (one, 2.0)], waiting_s=1.0).idle_s == 4.0


def test_a_rollout_beside_a_prefill_pool_is_refused() -> None:
    plan = plan_of(step())
    split = plan.rollout.model_copy(update={"dp": 4, "prefill_replicas": 4})
    with pytest.raises(InvalidDescription, match="prefill pool is not modelled"):
        project_rl(plan.model_copy(update={"rollout": split}), step(), dense_model(), cluster(CHIP, 8), CHIP)


def test_a_cap_on_the_tokens_of_a_step_bounds_a_rollout_too() -> None:
    plan = plan_of(step())
    capped = plan.rollout.model_copy(update={"max_batched_tokens": 8})
    free, bounded = (
        project_rl(plan.model_copy(update={"rollout": one}), step(), dense_model(), cluster(CHIP, 8), CHIP)
        for one in (plan.rollout, capped)
    )
    assert bounded.step_time_s > free.step_time_s
