"""The plan's vocabulary: degrees, layouts, mesh form, columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from projector.specs.plan import MeshForm, ParallelismPlan
from projector.specs.plan_batch import FIELDS, PlanBatch


def test_devices_are_dp_cp_tp_pp():
    assert ParallelismPlan(dp=4, cp=2, tp=8, pp=3).devices == 192


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"dp": 6, "fsdp": 4}, "fsdp 4 does not divide dp 6"),
        ({"dp": 2, "tp": 2, "ep": 8}, "ep * etp = 8 does not divide dp * cp * tp = 4"),
        ({"dp": 3, "attention_dp": 2}, "attention_dp 2 does not divide dp 3"),
        ({"tp": 0}, "greater than or equal to 1"),
        ({"tensor_parallel": 2}, "Extra inputs are not permitted"),
    ],
)
def test_contradictions_are_refused_by_name(fields, message):
    with pytest.raises(ValidationError, match=None) as error:
        ParallelismPlan(**fields)
    assert message in str(error.value)


def test_mesh_form_of_a_fully_sharded_plan_has_no_replica_axis():
    assert ParallelismPlan(dp=16, fsdp=16, cp=4, tp=8).mesh() == MeshForm(data=16, seq=4, model=8)


def test_mesh_form_of_hybrid_sharding_splits_dp_into_replica_and_data():
    assert ParallelismPlan(dp=16, fsdp=4, tp=2).mesh() == MeshForm(replica=4, data=4, model=2)


@pytest.mark.parametrize("plan", [ParallelismPlan(pp=2), ParallelismPlan(dp=4, ep=4)])
def test_mesh_form_cannot_say_pipeline_or_expert_parallelism(plan):
    assert plan.mesh() is None


degrees = st.sampled_from([1, 2, 4, 8])
plans = st.builds(
    ParallelismPlan,
    dp=degrees,
    tp=degrees,
    pp=degrees,
    cp=degrees,
    micro_batch=st.integers(1, 9),
    recompute=st.sampled_from(["none", "selective", "full"]),
    sp=st.booleans(),
    kv_cache_dtype=st.sampled_from(["bf16", "fp8"]),
)


@given(st.lists(plans, min_size=1, max_size=5))
def test_columns_and_records_are_the_same_plans(rows):
    batch = PlanBatch.from_plans(rows)
    assert list(batch) == rows
    assert batch.devices.tolist() == [plan.devices for plan in rows]


def test_columns_fill_defaults_and_widen_text_when_joined():
    one = PlanBatch.from_columns(2, tp=np.array([1, 2]), recompute="full")
    other = PlanBatch.from_plans([ParallelismPlan(recompute="selective")])
    joined = PlanBatch.concat([one, other])
    assert [plan.recompute for plan in joined] == ["full", "full", "selective"]
    assert joined.take(joined.tp == 2)[0] == ParallelismPlan(tp=2, recompute="full")
    assert set(joined.columns) == set(FIELDS)
