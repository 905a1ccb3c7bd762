"""Laws of anchoring over random measurements: the measured plan comes back whole, parts sum, nothing is negative."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projector.anchor.anchor import Anchor
from projector.anchor.anchored_batch import AnchoredBatch
from projector.anchor.measured_step import IdleShares, LinkRatio, MeasuredStep
from projector.anchor.ratios import anchor_of
from projector.breakdown import AxisTime, KindTime, TimeBreakdown
from projector.catalog import architecture, chip
from projector.project import project_many
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

CHIP, MODEL = chip("h100-sxm"), architecture("qwen3-30b-a3b")
CLUSTER, WORKLOAD = ClusterSpec(chip="h100-sxm", chips=32), WorkloadSpec(seq_len=4096, global_batch=128)
PLANS = tuple(
    ParallelismPlan.model_validate({"micro_batch": 1} | values)
    for values in (
        {"dp": 32, "fsdp": 8, "zero_stage": 3, "ep": 8, "grad_accum": 4},
        {"dp": 8, "tp": 4, "sp": True, "ep": 8, "zero_stage": 1, "grad_accum": 16},
        {"dp": 4, "tp": 2, "pp": 4, "etp": 2, "zero_stage": 1, "grad_accum": 32},
        {"dp": 8, "cp": 2, "pp": 2, "ep": 4, "micro_batch": 2, "grad_accum": 8, "recompute": "full"},
        {"dp": 16, "pp": 2, "ep": 8, "zero_stage": 2, "grad_accum": 8, "compute_dtype": "fp8"},
    )
)
BATCH = PlanBatch.from_plans(PLANS)
MODELLED = project_many(BATCH, WORKLOAD, MODEL, CLUSTER, CHIP)
factors = st.floats(0.0, 3.0)


@st.composite
def measurements(draw: st.DrawFn) -> tuple[int, MeasuredStep]:
    """A plan and what was measured of it: the modelled parts, each stretched, some unnamed, copies beside them."""
    index = draw(st.integers(0, len(PLANS) - 1))
    modelled = MODELLED[index].breakdown
    kinds = tuple(KindTime(kind=one.kind, time_s=one.time_s * draw(factors)) for one in modelled.by_kind)
    axes = []
    for one in modelled.by_axis:
        total_s = one.total_s * draw(factors)
        name = draw(st.sampled_from([one.axis, one.axis, "unknown"]))
        axes.append(AxisTime(axis=name, total_s=total_s, exposed_s=total_s * draw(st.floats(0.0, 1.0))))
    compute_s = max(sum(one.time_s for one in kinds), 1e-6)
    exposed_s = sum(one.exposed_s for one in axes) * draw(st.floats(0.5, 1.0))
    hidden_s = sum(one.total_s for one in axes) - exposed_s
    idle_s, copy_s = modelled.idle_s * draw(factors), draw(st.floats(0.0, 0.1))
    parts = TimeBreakdown(
        source="measured",
        total_s=compute_s + exposed_s + idle_s + copy_s,
        compute_s=compute_s,
        exposed_communication_s=exposed_s,
        overlapped_communication_s=max(hidden_s, 0.0),
        exposed_copy_s=copy_s,
        idle_s=idle_s,
        bubble_s=draw(st.none() | st.just(idle_s * draw(st.floats(0.0, 1.0)))),
        by_kind=kinds,
        by_axis=tuple(axes),
    )
    launches = draw(st.floats(0.0, 1.0))
    causes = draw(st.none() | st.just(IdleShares(launches=launches, pauses=0.0, waiting=1 - launches)))
    links = draw(st.sampled_from([(), (LinkRatio(tier="inside", ratio=0.7, collectives=3),)]))
    step = MeasuredStep(total_s=parts.total_s, breakdown=parts, steps=3, deviation_s=0.0, idle=causes, links=links)
    return index, step


@settings(deadline=None, max_examples=150)
@given(measurements())
def test_the_measured_plan_comes_back_whole_and_parts_sum(case: tuple[int, MeasuredStep]) -> None:
    index, step = case
    anchor = anchor_of(project_many(BATCH.take(np.array([index])), WORKLOAD, MODEL, CLUSTER, CHIP), step)
    if isinstance(anchor, str):
        return
    assert isinstance(anchor, Anchor)
    assert Anchor.model_validate_json(anchor.model_dump_json(round_trip=True)) == anchor
    anchored = AnchoredBatch.of(MODELLED, anchor, CLUSTER, CHIP)
    found = anchored.terms.breakdown
    assert found.total_s[index] == pytest.approx(step.total_s, rel=1e-9)
    parts = step.breakdown
    assert parts is not None
    waited_s = found.idle_s[index] - parts.idle_s  # in receives
    assert waited_s >= -1e-9
    assert found.compute_s[index] == pytest.approx(parts.compute_s, rel=1e-9, abs=1e-9)
    assert found.exposed_communication_s[index] == pytest.approx(parts.exposed_communication_s - waited_s, abs=1e-9)
    summed = found.compute_s + found.exposed_communication_s + found.exposed_copy_s + found.idle_s
    assert summed == pytest.approx(found.total_s)
    for column in (*found.by_kind.values(), *(axis.exposed_s for axis in found.by_axis.values()), found.idle_s):
        assert np.all(column >= 0)
        assert np.all(np.isfinite(column))
    low, high = anchored.factors
    assert np.all(low <= 1)
    assert np.all(high >= 1)
    for record in (anchored[place] for place in range(len(PLANS))):
        assert TimeBreakdown.model_validate(record.breakdown.model_dump()) == record.breakdown
