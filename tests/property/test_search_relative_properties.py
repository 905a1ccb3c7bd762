"""Properties of relative projection: the measured plan is itself, ranges hold, parts sum, company does not matter."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from projector.breakdown import AxisTime, TimeBreakdown
from projector.catalog import chip
from projector.relative import project_relative_many
from projector.search_space import candidates
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

CLUSTER = ClusterSpec(chip="h100-sxm", chips=16)
H100 = chip("h100-sxm")
SECONDS = st.one_of(st.just(0.0), st.floats(1e-6, 10))
CURRENTS = st.sampled_from(
    [
        ParallelismPlan(dp=16, grad_accum=2),
        ParallelismPlan(dp=16, fsdp=16, zero_stage=3, micro_batch=2),
        ParallelismPlan(dp=2, tp=8, sp=True, grad_accum=16),
        ParallelismPlan(dp=2, tp=4, sp=True, pp=2, grad_accum=16),
        ParallelismPlan(dp=4, cp=2, tp=2, sp=True, grad_accum=8),
        ParallelismPlan(dp=16, ep=8, grad_accum=2),
        ParallelismPlan(phase="serving", tp=8, dp=2),
        ParallelismPlan(phase="serving", tp=16, cuda_graphs=False),
    ]
)


@st.composite
def breakdowns(draw):
    compute, exposed, hidden, copies, idle = (draw(SECONDS) for _ in range(5))
    axes = draw(st.lists(st.sampled_from(["tp", "dp", "fsdp", "pp", "cp", "ep", "unknown"]), unique=True, max_size=3))
    return TimeBreakdown(
        source="measured",
        total_s=compute + exposed + copies + idle,
        compute_s=compute,
        exposed_communication_s=exposed,
        overlapped_communication_s=hidden,
        exposed_copy_s=copies,
        idle_s=idle,
        bubble_s=draw(st.one_of(st.none(), st.just(idle / 2))),
        by_axis=tuple(
            AxisTime(axis=axis, total_s=(exposed + hidden) / len(axes), exposed_s=exposed / len(axes)) for axis in axes
        ),
    )


def neighbours(current):
    return candidates(WorkloadSpec(phase=current.phase), None, CLUSTER, H100, Constraints(), current)


@given(CURRENTS, breakdowns())
@settings(max_examples=60, deadline=None)
def test_the_current_plan_is_its_measurement_exactly(current, measured):
    projection = project_relative_many(PlanBatch.from_plans([current]), current, measured, CLUSTER, H100)[0]
    assert projection.step_time_s == measured.total_s
    assert projection.breakdown == measured.model_copy(update={"source": "relative"})
    assert projection.memory_direction == "same"


@given(CURRENTS, breakdowns())
@settings(max_examples=60, deadline=None)
def test_ranges_hold_the_estimate_and_parts_sum_to_it(current, measured):
    plans = neighbours(current)
    scaled = project_relative_many(plans, current, measured, CLUSTER, H100)
    step = scaled.step
    slack = 1e-12 * (1 + step.estimate)
    assert np.isfinite(step.high).all()
    assert (step.low <= step.estimate + slack).all()
    assert (step.estimate <= step.high + slack).all()
    for index in range(0, len(plans), max(1, len(plans) // 7)):
        projection = scaled[index]  # the record itself checks that its parts sum to the total
        assert projection.breakdown.total_s == np.float64(step.estimate[index]) or np.isclose(
            projection.breakdown.total_s, step.estimate[index]
        )
        assert projection.memory is None


@given(CURRENTS, breakdowns())
@settings(max_examples=30, deadline=None)
def test_company_does_not_change_a_figure(current, measured):
    plans = neighbours(current)
    few = plans.take(np.arange(0, len(plans), 5))
    alone = project_relative_many(few, current, measured, CLUSTER, H100).step_time_s
    among = project_relative_many(PlanBatch.concat([plans, few]), current, measured, CLUSTER, H100).step_time_s
    np.testing.assert_array_equal(alone, among[len(plans) :])


@given(CURRENTS, breakdowns(), st.sampled_from([0.5, 2.0, 4.0]))
@settings(max_examples=30, deadline=None)
def test_a_slower_measurement_scales_everything(current, measured, factor):
    """All measured times multiplied by one factor: every projection is, so the order stays."""
    times = {name: value * factor for name, value in measured.model_dump(exclude={"by_axis", "by_kind"}).items()
             if isinstance(value, float)}  # fmt: skip
    axes = tuple(
        AxisTime(axis=one.axis, total_s=one.total_s * factor, exposed_s=one.exposed_s * factor)
        for one in measured.by_axis
    )
    slower = measured.model_copy(update={**times, "by_axis": axes})
    plans = neighbours(current)
    before = project_relative_many(plans, current, measured, CLUSTER, H100).step_time_s
    after = project_relative_many(plans, current, slower, CLUSTER, H100).step_time_s
    np.testing.assert_allclose(after, before * factor, rtol=1e-9, atol=1e-15)
