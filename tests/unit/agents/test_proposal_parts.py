"""The parts of a proposal, one by one: aim, diversity, trail, links, losses, test, adoption."""

from typing import Any, get_args

import numpy as np
import pytest
from advisor_examples import CURRENT, candidate, question

from agents.advisors.diversity import DIVERSITY_GAP_FRAC, without_near_duplicates
from agents.advisors.ranking import rank
from agents.planning.adoption import adoption_text, effort_of
from agents.planning.aims import enlarged_axis, resource_of
from agents.planning.axis_links import axis_links
from agents.planning.baseline import scaled_to
from agents.planning.expected import outlook_of
from agents.planning.experiment import experiment_of, stop_condition
from agents.planning.job import Job
from agents.planning.numerics import numerics_changed
from agents.planning.reference import Reference, reference_of
from agents.planning.resolve import resolve
from agents.planning.scores import score_one
from agents.planning.shortlist import shortlist
from agents.planning.trail import trails_of
from agents.planning.worse import worsenings
from agents.proposal_parts import RESOURCE_WORDS, Resource
from agents.request import PlanRequest
from projector.specs.plan import ParallelismPlan

LLAMA = {
    "workload": {"model": "llama-3.1-8b", "phase": "training", "seq_len": 4096, "global_batch": 64},
    "cluster": {"chip": "h100-sxm", "chips": 16},
    "current_plan": {
        "dp": 2,
        "tp": 8,
        "sp": True,
        "micro_batch": 1,
        "grad_accum": 32,
        "recompute": "full",
        "zero_stage": 1,
    },
}


def asked(**changes: Any) -> tuple[Job, Reference]:
    job = resolve(PlanRequest.model_validate(LLAMA | changes), None)
    reference = reference_of(job)
    assert reference is not None
    return job, reference


def changed(plan: ParallelismPlan, **fields: Any) -> ParallelismPlan:
    return ParallelismPlan.model_validate(plan.model_dump() | fields)


# aims -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "axis"),
    [
        ({"dp": 16, "tp": 4}, "dp"),
        ({"dp": 8, "fsdp": 8, "zero_stage": 3}, "fsdp"),
        ({"dp": 2, "tp": 8, "cp": 4}, "cp"),
        ({"tp": 4, "dp": 4}, None),
    ],
)
def test_the_axis_is_the_degree_that_grows_by_the_largest_factor(after: dict[str, Any], axis: str | None) -> None:
    assert enlarged_axis(ParallelismPlan(dp=8, tp=8), ParallelismPlan(**after)) == axis


def test_every_resource_has_words() -> None:
    assert set(RESOURCE_WORDS) == set(get_args(Resource))


def test_the_first_prefill_engine_counts_as_a_new_axis() -> None:
    before = ParallelismPlan(phase="serving", tp=8)
    after = ParallelismPlan(phase="serving", tp=4, prefill_replicas=1, prefill_tp=4)
    assert enlarged_axis(before, after) == "prefill_devices"


def test_what_is_relieved_is_the_term_that_falls_most() -> None:
    job, reference = asked()
    for plan, term in (
        (changed(reference.plan, tp=2, dp=8, grad_accum=8), "exposed_communication"),
        (changed(reference.plan, recompute="none"), "compute"),
    ):
        scores = score_one(plan, job)
        found = resource_of(scores.projections[0], outlook_of(scores, 0, reference), reference, "exposed_tp", job)
        assert found == term


def test_memory_leads_where_what_runs_does_not_fit() -> None:
    whole = {"dp": 16, "micro_batch": 1, "grad_accum": 4}
    job, reference = asked(current_plan=whole)
    assert reference.projection.fit == "too_large"
    scores = score_one(changed(reference.plan, zero_stage=1), job)
    outlook = outlook_of(scores, 0, reference)
    assert resource_of(scores.projections[0], outlook, reference, "hbm_capacity", job) == "optimizer_memory"


# diversity ------------------------------------------------------------------------------------------------------------


def aimed(number: int, plan: ParallelismPlan, gain: float, axis: str) -> Any:
    update = {"resource": "exposed_communication", "enlarges": axis}
    return candidate(number, plan, gain, relieving=True).model_copy(update=update)


def test_a_near_duplicate_gives_way_to_a_plan_that_differs() -> None:
    best = aimed(1, ParallelismPlan(tp=4, dp=16), 0.40, "dp")
    twin = aimed(2, ParallelismPlan(tp=2, dp=32), 0.38, "dp")
    other = aimed(3, ParallelismPlan(tp=4, dp=8, cp=2), 0.36, "cp")
    asking = question([best, twin, other], wanted=2)
    assert [one.id for one in rank(asking)] == ["c1", "c3"]
    assert [one.id for one in rank(asking.model_copy(update={"diversity": False}))] == ["c1", "c2"]


def test_a_near_duplicate_stands_where_what_differs_costs_too_much() -> None:
    best = aimed(1, ParallelismPlan(tp=4, dp=16), 0.40, "dp")
    twin = aimed(2, ParallelismPlan(tp=2, dp=32), 0.39, "dp")
    other = aimed(3, ParallelismPlan(tp=4, dp=8, cp=2), 1.39 / (1 + DIVERSITY_GAP_FRAC) - 1.01, "cp")
    assert [one.id for one in without_near_duplicates([twin, other], [best])] == ["c2", "c3"]


def test_nothing_duplicates_the_plan_that_is_kept() -> None:
    kept, flag = candidate(1, CURRENT, 0.0), candidate(2, ParallelismPlan(tp=4, dp=16), 0.0)
    assert without_near_duplicates([flag], [kept]) == [flag]


# trail ----------------------------------------------------------------------------------------------------------------


def test_a_trail_takes_one_lever_at_a_time_and_adds_up() -> None:
    job, reference = asked()
    after = changed(reference.plan, tp=2, dp=8, grad_accum=8, recompute="selective", overlap_tp=True)
    (trail,) = trails_of([after], job, reference)
    assert sorted(step.levers for step in trail.steps) == [("overlap",), ("recompute",), ("tensor_parallelism",)]
    assert trail.note == ""
    assert trail.steps[0].before.step_time_s == reference.step_time_s
    assert trail.steps[-1].plan == after
    assert {step.fit for step in trail.steps} == {"fits"}
    gains = [step.after.gain_frac - step.before.gain_frac for step in trail.steps]
    scores = score_one(after, job)
    assert sum(gains) == pytest.approx(outlook_of(scores, 0, reference).gain_frac)
    # data parallelism takes the devices that tensor parallelism leaves, in the same step
    moved = next(step for step in trail.steps if step.levers == ("tensor_parallelism",))
    assert moved.title == "Less tensor parallelism (8 to 2) and more data parallelism (2 to 8)"


def test_steps_that_only_work_together_are_one_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no plan in between were legal."""
    monkeypatch.setattr("agents.planning.trail.legal_mask", lambda batch, *_: np.zeros(len(batch), dtype=bool))
    job, reference = asked()
    after = changed(reference.plan, tp=2, dp=8, grad_accum=8, recompute="selective")
    (trail,) = trails_of([after], job, reference)
    assert [step.levers for step in trail.steps] == [("tensor_parallelism", "recompute")]
    assert trail.note == (
        "tensor parallelism and recompute: taken in one step, as no order of single steps passes only plans of which "
        "each is legal and fits"
    )


def test_what_does_not_fit_today_fits_as_soon_as_it_can() -> None:
    job, reference = asked(current_plan={"dp": 16, "micro_batch": 1, "grad_accum": 4})
    after = changed(reference.plan, zero_stage=3, fsdp=16, recompute="selective", overlap_grad_reduce=False)
    (trail,) = trails_of([after], job, reference)
    fits = [step.fit == "fits" for step in trail.steps]
    assert fits == sorted(fits)
    assert trail.steps[0].levers in {("fsdp",), ("recompute",)}


def test_the_plan_that_is_kept_has_no_trail() -> None:
    job, reference = asked()
    assert trails_of([reference.plan], job, reference)[0].steps == ()
    assert trails_of([], job, reference) == ()


# links ----------------------------------------------------------------------------------------------------------------


def placed(plan: dict[str, Any], **changes: Any) -> dict[tuple[str, str | None], Any]:
    job, reference = asked(current_plan=plan, **changes)
    return {(one.axis, one.tier): one for one in axis_links(reference.projection, job)}


def test_inner_axes_stay_in_a_node_and_outer_ones_cross_the_network() -> None:
    found = placed({"dp": 2, "tp": 4, "pp": 2, "micro_batch": 1, "grad_accum": 32})
    assert set(found) == {("tp", "nvlink"), ("dp", "nvlink"), ("pp", "nic")}
    assert found["dp", "nvlink"].ranks == (0, 4)
    assert (found["pp", "nic"].stride, found["pp", "nic"].groups) == (8, 8)
    assert "groups of 4 neighbouring ranks (0, 1, 2, 3), inside one NVLink domain of 8 devices" in (
        found["tp", "nvlink"].text
    )
    assert (
        "2 ranks 8 apart (0, 8), over 2 domains of fast links on the network between nodes" in found["pp", "nic"].text
    )
    assert found["tp", "nvlink"].communication_s >= found["tp", "nvlink"].exposed_s > 0


def test_a_slice_shows_the_torus_dimensions_and_whether_they_close() -> None:
    cluster = {"chip": "tpu-v5e", "chips": 256, "topology": [16, 16]}
    work = {**LLAMA["workload"], "global_batch": 256}
    plan = {"dp": 16, "fsdp": 16, "zero_stage": 3, "tp": 16, "micro_batch": 1, "grad_accum": 16}
    found = placed(plan, cluster=cluster, workload={**work, "model": "llama-3.1-70b"})
    tensor, data = found["tp", "ici"], found["fsdp", "ici"]
    assert tensor.wraps is True
    assert data.wraps is True
    assert "along a whole dimension of 16 chips (closed to a ring)" in tensor.text
    assert data.stride == 16
    narrow = placed(
        {**plan, "tp": 8, "dp": 32, "fsdp": 32, "grad_accum": 8},
        cluster=cluster,
        workload={**work, "model": "llama-3.1-70b"},
    )
    assert narrow["tp", "ici"].wraps is False
    assert "8 of the 16 chips of a dimension (an open line)" in narrow["tp", "ici"].text


def test_several_slices_are_joined_by_the_network_between_them() -> None:
    cluster = {"chip": "tpu-v5e", "chips": 512, "topology": [16, 16], "slices": 2}
    plan = {"dp": 512, "fsdp": 256, "zero_stage": 3, "micro_batch": 1, "grad_accum": 1}
    found = placed(plan, cluster=cluster, workload={**LLAMA["workload"], "global_batch": 512})
    assert set(found) == {("fsdp", "ici"), ("dp", "dcn")}
    assert "over 2 slices on the data-centre network between slices" in found["dp", "dcn"].text
    assert found["dp", "dcn"].wraps is None


# what gets worse, the test, adoption ----------------------------------------------------------------------------------


def test_what_gets_worse_is_told_with_both_numbers() -> None:
    job, reference = asked()
    after = changed(reference.plan, tp=1, dp=16, sp=False, grad_accum=4, recompute="selective")
    found = worsenings(after, score_one(after, job).projections[0], reference, "reshard", job)
    told = {loss.what: loss for loss in found}
    assert {"memory of weights", "memory of gradients", "sequences a data rank takes a step", "checkpoint"} <= set(told)
    weights = told["memory of weights"]
    assert weights.after == pytest.approx(8 * weights.before, rel=0.05)
    assert told["sequences a data rank takes a step"].text.endswith("fall from 32 to 4")
    assert found[0].what.startswith("memory")


def test_a_plan_that_only_gains_has_nothing_worse() -> None:
    job, reference = asked()
    after = changed(reference.plan, overlap_tp=True)
    assert worsenings(after, score_one(after, job).projections[0], reference, "flag", job) == ()


def test_the_smaller_the_gain_the_longer_the_test() -> None:
    job, reference = asked()
    steps = {}
    for plan in (changed(reference.plan, overlap_tp=True), changed(reference.plan, tp=2, dp=8, grad_accum=8)):
        several = score_one(plan, job)
        (one,) = shortlist(several, several.projections.fits, job, reference, "exposed_tp")
        test = experiment_of(one, reference, job)
        assert test is not None
        assert test.low <= test.predicted <= test.high
        assert test.refuted_beyond == pytest.approx(0.99 * test.reference)
        steps[one.gain_frac] = test.steps
        assert "Stop if a device holds more than" in stop_condition(one, reference, (), job)
    assert steps[min(steps)] >= steps[max(steps)]


@pytest.mark.parametrize(
    ("change", "effort"),
    [
        ({"overlap_tp": True}, "flag"),
        ({"recompute": "none"}, "config"),
        ({"micro_batch": 2, "grad_accum": 16}, "config"),
        ({"cp": 2, "dp": 1, "grad_accum": 64}, "relaunch"),
        ({"tp": 4, "dp": 4, "grad_accum": 16}, "reshard"),
        ({"pp": 2, "dp": 1, "grad_accum": 64}, "reshard"),
        ({"compute_dtype": "fp8"}, "code"),
    ],
)
def test_the_effort_is_read_off_what_changes(change: dict[str, Any], effort: str) -> None:
    job, reference = asked()
    after = changed(reference.plan, **change)
    found = effort_of(reference.plan, after, job, runs=True)
    assert found == effort
    assert adoption_text(reference.plan, after, found, job, runs=True)


def test_an_engine_cuts_its_checkpoint_while_it_loads() -> None:
    served = {"model": "llama-3.1-8b", "phase": "serving", "input_len": 512, "output_len": 128, "concurrency": 16}
    job, reference = asked(workload=served, current_plan={"phase": "serving", "dp": 2, "tp": 8})
    after = changed(reference.plan, dp=4, tp=4)
    assert effort_of(reference.plan, after, job, runs=True) == "relaunch"
    assert "as they load it" in adoption_text(reference.plan, after, "relaunch", job, runs=True)


def test_what_alters_numerics_is_named() -> None:
    before = ParallelismPlan(dp=8)
    assert numerics_changed(before, changed(before, tp=2)) == ()
    assert numerics_changed(before, changed(before, compute_dtype="fp8", optimizer="adafactor", grad_accum=2)) == (
        "precision",
        "optimizer",
        "global batch",
    )


@pytest.mark.parametrize(
    ("before", "devices", "after"),
    [
        ({"dp": 32, "tp": 8}, 128, {"dp": 16, "tp": 8}),
        ({"dp": 2, "cp": 32, "tp": 4}, 128, {"dp": 1, "cp": 32, "tp": 4}),
        ({"dp": 1, "cp": 32, "tp": 8}, 128, {"dp": 1, "cp": 16, "tp": 8}),
        ({"dp": 4, "tp": 4}, 64, {"dp": 16, "tp": 4}),
        ({"dp": 3, "tp": 4}, 8, None),
    ],
)
def test_a_layout_is_scaled_by_data_parallelism_first(
    before: dict[str, int], devices: int, after: dict[str, int] | None
) -> None:
    expected = None if after is None else ParallelismPlan(**after)
    assert scaled_to(ParallelismPlan(**before), devices, None) == expected
