"""Anchoring: a measured step corrects its neighbours by what it showed, as far as that holds for them."""

import numpy as np
import pytest
from anchor_examples import BY_LAUNCHES, CHIP, DENSE, LARGE_JOB, SMALL_JOB, errors, machine

from projector import catalog
from projector.anchor.anchored_batch import AnchoredBatch
from projector.anchor.limits import STEP_RANGE
from projector.anchor.measured_step import LinkRatio, MeasuredStep
from projector.anchor.ratios import anchor_of
from projector.breakdown import AxisTime, KindTime


def plan(**changes):
    return DENSE.model_validate(DENSE.model_dump() | changes)


def assert_same_parts(found, measured):
    assert found.total_s == pytest.approx(measured.total_s, rel=1e-9)
    for part in ("compute_s", "exposed_communication_s", "exposed_copy_s", "idle_s"):
        assert getattr(found, part) == pytest.approx(getattr(measured, part), rel=1e-9, abs=1e-9), part


def ratios(anchor):
    assert anchor.parts is not None
    compute = {one.part: one.ratio for one in anchor.parts.compute}
    return compute | {one.flow: one.ratio for one in anchor.parts.flows}


def test_a_measurement_that_agrees_with_the_model_changes_nothing():
    for job in (LARGE_JOB, SMALL_JOB):
        anchored = job.anchored(job.step_on(catalog.chip(CHIP)))
        assert anchored.step_time_s == pytest.approx(anchored.modelled.step_time_s, rel=1e-9)
        assert anchored.terms.breakdown.idle_s == pytest.approx(anchored.modelled.breakdown.idle_s, abs=1e-9)


@pytest.mark.parametrize("slower", [{"link": 0.6}, {"gemm": 1.2}, {"link": 0.5, "gemm": 1.3}])
def test_the_current_plan_is_projected_as_it_was_measured(slower):
    step = LARGE_JOB.step_on(machine(**slower), copy_s=0.1)
    found = LARGE_JOB.anchored(step, DENSE)
    projection = found[0]
    assert projection.step_time_s == step.total_s
    assert float(found.terms.breakdown.total_s[0]) == pytest.approx(step.total_s, rel=1e-9)
    assert_same_parts(projection.breakdown, step.breakdown)
    assert (projection.source, projection.breakdown.source) == ("anchored", "anchored")
    assert "this plan was measured" in projection.assumptions[0]


def test_what_is_slower_than_modelled_is_found_term_by_term():
    links = ratios(LARGE_JOB.anchor(LARGE_JOB.step_on(machine(link=0.6))))
    assert links["tp"] == pytest.approx(1 / 0.6, rel=0.02)
    assert [links[name] for name in ("gemm", "attention", "other", "pp")] == pytest.approx([1.0] * 4, abs=1e-6)
    products = ratios(LARGE_JOB.anchor(LARGE_JOB.step_on(machine(gemm=1.2))))
    assert products["gemm"] == pytest.approx(1.2, rel=0.01)
    assert products["tp"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("slower", "near", "far"),
    [({"link": 0.6}, 0.01, 0.02), ({"gemm": 1.2}, 0.03, 0.06), ({"link": 0.6, "gemm": 1.2}, 0.03, 0.06)],
)
def test_neighbours_are_nearer_to_the_truth_the_nearer_they_are(slower, near, far):
    """Means over all plans that fit: NVLink at 60 %, GEMMs 20 % slower, both."""
    hardware = machine(**slower)
    step = LARGE_JOB.step_on(hardware)
    modelled, anchored = errors(LARGE_JOB, hardware, step, doublings=1.0)
    assert modelled > 0.06
    assert anchored < near
    _, further = errors(LARGE_JOB, hardware, step, doublings=3.0)
    assert anchored < further < far


def test_a_slow_host_is_carried_by_launches():
    hardware = machine(host=2.0)
    step = SMALL_JOB.step_on(hardware, idle=BY_LAUNCHES)
    anchor = SMALL_JOB.anchor(step)
    assert anchor.parts is not None
    assert anchor.parts.idle.host_paced
    modelled, anchored = errors(SMALL_JOB, hardware, step, doublings=2.0)
    assert modelled > 0.35
    assert anchored < 0.08
    current = SMALL_JOB.anchored(step, SMALL_JOB.current)
    assert float(current.terms.breakdown.total_s[0]) == pytest.approx(step.total_s, rel=1e-9)
    # half as many micro-batches, each twice as large, need half the launches
    twice = SMALL_JOB.current.model_copy(update={"micro_batch": 2, "grad_accum": 4})
    before, after = SMALL_JOB.anchored(step, SMALL_JOB.current, twice).step_time_s
    assert after < 0.7 * before


def test_terms_sum_to_the_step_for_every_plan():
    step = LARGE_JOB.step_on(machine(link=0.7, gemm=1.1), copy_s=0.2)
    anchored = LARGE_JOB.anchored(step)
    found = anchored.terms.breakdown
    summed = found.compute_s + found.exposed_communication_s + found.idle_s + found.exposed_copy_s
    assert summed == pytest.approx(anchored.step_time_s, rel=1e-9)
    assert sum(found.by_kind.values()) == pytest.approx(found.compute_s)
    for index in range(0, len(anchored), 97):
        record = anchored[index].breakdown  # validated: the parts sum to the total
        assert type(record).model_validate(record.model_dump()) == record
        assert record.exposed_copy_s == pytest.approx(0.2)


def test_the_interval_widens_with_distance_and_never_past_the_unanchored_one():
    step = LARGE_JOB.step_on(machine(gemm=1.2), deviation_frac=0.01)
    other = plan(tp=4, dp=8, grad_accum=16)
    dtype = plan(compute_dtype="fp8")
    found = LARGE_JOB.anchored(step, DENSE, plan(grad_accum=16, micro_batch=2), other, dtype)
    widths = [(one.step_time_interval_s.high - one.step_time_interval_s.low) / one.step_time_s for one in found]
    assert widths[0] == pytest.approx(2 * 1.28 * 0.01)
    low, high = found.unanchored_factors()
    shares = widths / (high - low)
    assert shares[0] < shares[1] < shares[2] < shares[3] < 1
    assert "measured step (5 steps)" in found[1].step_time_interval_s.basis


def test_every_correction_of_a_projection_names_its_evidence():
    step = LARGE_JOB.step_on(machine(link=0.6, gemm=1.2))
    lines = LARGE_JOB.anchored(step, plan(compute_dtype="fp8"))[0].assumptions
    assert "matrix products: measured 1.20 x modelled, not carried (ev-anchor-gemm)" in lines
    assert "tensor-parallel communication: measured 1.65 x modelled, carried in full (ev-anchor-tp)" in lines


def test_a_ratio_of_links_holds_on_the_same_tier_only():
    """tp 8 fills an NVLink domain; tp 16 leaves it."""
    step = LARGE_JOB.step_on(machine(link=0.6))
    inside, outside = plan(tp=4, dp=8, grad_accum=16), plan(tp=16, dp=2, grad_accum=64)
    found = LARGE_JOB.anchored(step, inside, outside)
    longer = found.terms.breakdown.by_axis["tp"].total_s / found.modelled.breakdown.by_axis["tp"].total_s
    assert 1.2 < longer[0] < 1.65
    assert longer[1] == 1.0


def test_an_axis_the_plan_lacks_has_no_ratio_but_the_links_may():
    job = LARGE_JOB
    alone = job.step_on(machine(link=0.6))
    ring = plan(cp=2, tp=4)
    with_links = job.step_on(machine(link=0.6), links=(LinkRatio(tier="inside", ratio=0.6, collectives=9),))
    times = [job.anchored(step, ring).terms.breakdown.by_axis["cp"].total_s[0] for step in (alone, with_links)]
    modelled = job.on(catalog.chip(CHIP), ring).breakdown.by_axis["cp"].total_s[0]
    assert times == pytest.approx([modelled, modelled / 0.6])


@pytest.mark.parametrize("times", [STEP_RANGE[0] / 1.01, STEP_RANGE[1] * 1.01])
def test_a_step_that_is_no_measurement_of_the_plan_is_refused(times):
    now = LARGE_JOB.on(catalog.chip(CHIP), DENSE)
    found = anchor_of(now, MeasuredStep(total_s=times * float(now.step_time_s[0])))
    assert isinstance(found, str)
    assert "another workload or plan, no whole step, or profiler overhead" in found


def test_an_implausible_ratio_is_told_and_not_carried():
    step = LARGE_JOB.step_on(catalog.chip(CHIP))
    assert step.breakdown is not None
    tensor = next(one for one in step.breakdown.by_axis if one.axis == "tp")
    longer = AxisTime(axis="tp", total_s=8 * tensor.total_s, exposed_s=tensor.exposed_s)
    parts = step.breakdown.model_copy(
        update={
            "by_axis": tuple(longer if one.axis == "tp" else one for one in step.breakdown.by_axis),
            "overlapped_communication_s": step.breakdown.overlapped_communication_s + 7 * tensor.total_s,
        }
    )
    step = step.model_copy(update={"breakdown": parts})
    assert any("tp communication is 8 times the modelled" in line for line in LARGE_JOB.anchor(step).told)
    near = plan(micro_batch=2, grad_accum=16)
    found = LARGE_JOB.anchored(step, near)
    assert "not carried: implausible" in next(line for line in found[0].assumptions if line.startswith("tensor"))
    assert found.step_time_s == pytest.approx(found.modelled.step_time_s)


def test_kinds_that_do_not_compare_are_corrected_together():
    """Every kernel called gemm: the rest would have taken no time at all."""
    step = LARGE_JOB.step_on(machine(gemm=1.2))
    assert step.breakdown is not None
    named = (KindTime(kind="gemm", time_s=step.breakdown.compute_s),)
    anchor = LARGE_JOB.anchor(
        step.model_copy(update={"breakdown": step.breakdown.model_copy(update={"by_kind": named})})
    )
    assert anchor.parts is not None
    assert [one.part for one in anchor.parts.compute] == ["compute"]
    assert "compute is corrected as a whole" in anchor.told[0]


def test_communication_of_no_axis_is_shared_out_aloud():
    step = LARGE_JOB.step_on(machine(link=0.6))
    assert step.breakdown is not None
    parts = step.breakdown.model_copy(update={"by_axis": ()})
    step = step.model_copy(update={"breakdown": parts})
    assert any("does not say which axis" in line for line in LARGE_JOB.anchor(step).told)
    assert float(LARGE_JOB.anchored(step, DENSE).terms.breakdown.total_s[0]) == pytest.approx(step.total_s)


def test_of_a_step_whose_parts_are_unknown_less_is_carried():
    now_s = float(LARGE_JOB.on(catalog.chip(CHIP), DENSE).step_time_s[0])
    step = MeasuredStep(total_s=1.2 * now_s)
    same, near, tensor, dtype = (
        DENSE, plan(micro_batch=2, grad_accum=16), plan(tp=4, dp=8, grad_accum=16), plan(compute_dtype="fp8"),
    )  # fmt: skip
    found = LARGE_JOB.anchored(step, same, near, tensor, dtype)
    longer = found.step_time_s / found.modelled.step_time_s
    assert longer[0] == pytest.approx(1.2)
    assert longer[1] == pytest.approx(1.2 ** (0.7 * np.exp(-0.35)))
    assert 1.0 < longer[2] < longer[1]
    assert longer[3] == 1.0
    assert found[0].breakdown.total_s == pytest.approx(step.total_s)


def test_rates_follow_the_corrected_step():
    step = LARGE_JOB.step_on(machine(gemm=1.2))
    found = LARGE_JOB.anchored(step, DENSE, plan(micro_batch=2, grad_accum=16))
    tokens = LARGE_JOB.workload.seq_len * LARGE_JOB.workload.global_batch / LARGE_JOB.chips
    assert found.objective("tokens_per_s_per_chip") == pytest.approx(tokens / found.step_time_s)
    assert found.objective("memory_per_chip_gb") == pytest.approx(found.modelled.objective("memory_per_chip_gb"))
    assert isinstance(found, AnchoredBatch)
    assert np.all(found.fits == found.modelled.fits)


def test_a_stage_that_waits_in_a_receive_shows_the_bubble():
    """GPU profiles have the bubble inside receive kernels: communication to the eye, waiting in truth."""
    step = LARGE_JOB.step_on(catalog.chip(CHIP))
    parts = step.breakdown
    assert parts is not None
    assert parts.bubble_s
    waiting = parts.bubble_s
    axes = tuple(
        AxisTime(axis="pp", total_s=one.total_s + waiting, exposed_s=one.exposed_s + waiting)
        if one.axis == "pp"
        else one
        for one in parts.by_axis
    )
    seen = parts.model_copy(
        update={
            "by_axis": axes,
            "exposed_communication_s": parts.exposed_communication_s + waiting,
            "idle_s": parts.idle_s - waiting,
            "bubble_s": None,
        }
    )
    step = step.model_copy(update={"breakdown": seen})
    assert any("it counts as bubble" in line for line in LARGE_JOB.anchor(step).told)
    found = LARGE_JOB.anchored(step)
    assert found.step_time_s == pytest.approx(found.modelled.step_time_s, rel=1e-6)
    # the current plan is told in the same terms as its neighbours
    current = LARGE_JOB.anchored(step, DENSE)[0].breakdown
    assert_same_parts(current, parts)


def test_another_means_of_travel_keeps_no_ratio():
    step = LARGE_JOB.step_on(machine(link=0.6))
    found = LARGE_JOB.anchored(step, plan(sp=False))
    assert float(found.transport.flow("tp")[0]) == 0.0
    assert "tensor-parallel communication: measured 1.65 x modelled, not carried (ev-anchor-tp)" in found[0].assumptions
