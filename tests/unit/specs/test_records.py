"""Records that hold numbers: identities, limits, derived text."""

import pytest
from pydantic import ValidationError

from projector.breakdown import MemoryBreakdown, TimeBreakdown
from projector.errors import ShardwiseError, UnknownName
from projector.specs.architecture import ModelArchitecture
from projector.specs.bottleneck import BOTTLENECK_OF, BOTTLENECKS, CAUSES
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Bounds, Constraints
from projector.specs.objective import DEFAULT_OBJECTIVE, OBJECTIVES, Rejection
from projector.specs.workload import WorkloadSpec


def test_a_breakdown_that_does_not_sum_is_refused():
    with pytest.raises(ValidationError, match="sum to"):
        TimeBreakdown(
            source="measured",
            total_s=2.0,
            compute_s=1.0,
            exposed_communication_s=0.0,
            overlapped_communication_s=0.0,
            idle_s=0.5,
        )


def test_memory_sums_its_items_and_says_whether_they_fit():
    memory = MemoryBreakdown(weights_bytes=60e9, activations_bytes=15e9, reserve_bytes=6e9, capacity_bytes=80e9)
    assert memory.total_bytes == 81e9
    assert memory.fit == "too_large"


@pytest.mark.parametrize(
    ("rejection", "text"),
    [
        (Rejection(rule="slo", quantity="TTFT", value=812.44, limit=500, unit="ms"), "TTFT 812.4 ms > 500.0 ms"),
        (
            Rejection(rule="heads", quantity="tp", value=6, limit=64, comparison="does not divide"),
            "tp 6 does not divide 64",
        ),
    ],
)
def test_rejection_text_is_derived(rejection, text):
    assert rejection.text == text


def test_unknown_names_come_with_the_nearest():
    error = UnknownName("chip", "h100-sxn", ["h100-sxm", "h200", "tpu-v5p"])
    assert error.nearest[0] == "h100-sxm"
    assert "h100-sxm" in error.hint
    assert isinstance(error, ShardwiseError)
    assert error.http_status == 422


def test_constraints_name_plan_fields_only():
    with pytest.raises(UnknownName) as error:
        Constraints(fixed={"micro_batchs": 2})
    assert error.value.nearest[0] == "micro_batch"
    with pytest.raises(ValidationError, match="low 4 > high 2"):
        Bounds(low=4, high=2)


def test_a_topology_must_multiply_to_the_chips():
    ClusterSpec(chip="tpu-v5e", chips=512, topology=(16, 16), slices=2)
    with pytest.raises(ValidationError, match="is 256 chips, not 128"):
        ClusterSpec(chip="tpu-v5e", chips=128, topology=(16, 16))


def test_a_workload_refuses_the_other_phases_keys():
    with pytest.raises(ValidationError, match="concurrency has no meaning in a training workload"):
        WorkloadSpec(phase="training", concurrency=8)


def test_every_cause_has_a_class_and_every_default_objective_exists():
    assert set(BOTTLENECK_OF) == set(CAUSES)
    assert set(BOTTLENECK_OF.values()) <= set(BOTTLENECKS)
    for phase, name in DEFAULT_OBJECTIVE.items():
        assert any(objective.name == name and phase in objective.phases for objective in OBJECTIVES)


LLAMA_8B = ModelArchitecture(
    name="llama-3.1-8b",
    layers=32,
    hidden_size=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    intermediate_size=14336,
    vocab_size=128256,
    source="test",
)


def test_parameters_of_llama_3_1_8b_are_8_03_billion():
    assert LLAMA_8B.parameters == pytest.approx(8.03e9, rel=1e-3)
    assert LLAMA_8B.active_parameters == LLAMA_8B.parameters


def test_active_parameters_leave_out_the_experts_a_token_skips():
    mixtral = ModelArchitecture(
        name="mixtral-8x7b",
        layers=32,
        hidden_size=4096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        intermediate_size=14336,
        vocab_size=32000,
        experts=8,
        experts_per_token=2,
        moe_intermediate_size=14336,
        source="test",
    )
    assert mixtral.parameters == pytest.approx(46.7e9, rel=2e-3)
    assert mixtral.active_parameters == pytest.approx(12.88e9, rel=2e-3)


@pytest.mark.parametrize(
    "change",
    [
        {"kv_heads": 5},
        {"experts": 8},
        {"sliding_layers": 4},
        {"experts": 2, "experts_per_token": 3, "moe_intermediate_size": 8},
    ],
)
def test_impossible_architectures_are_refused(change):
    with pytest.raises(ValidationError):
        ModelArchitecture.model_validate(LLAMA_8B.model_dump() | change)


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        (ClusterSpec, {"chip": "b200", "chips": 10**20}),
        (ClusterSpec, {"chip": "tpu-v5p", "chips": 8, "topology": (2, 2, 2, 1, 1)}),
        (WorkloadSpec, {"global_batch": 10**23}),
        (WorkloadSpec, {"phase": "serving", "concurrency": 10**20}),
        (Constraints, {"fixed": {"tp": 10**30}}),
        (Constraints, {"max_chips": 10**20}),
    ],
)
def test_sizes_beyond_any_machine_are_refused(record, fields):
    with pytest.raises(ValidationError):
        record(**fields)
