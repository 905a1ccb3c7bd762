"""Optimizers and host memory: bytes a parameter, traffic of an update, Muon's products, copies over the host link."""

import pytest
from projector_examples import cluster, dense_model, ideal, switched_chip, training

from projector.breakdown import MemoryBreakdown, Projection
from projector.errors import InvalidDescription
from projector.legality import check
from projector.project import project, project_many
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch

S = 2048
HOST = switched_chip(host=10e9)


def projected(plan: ParallelismPlan, chip: HardwareProfile = HOST) -> Projection:
    batch = training(plan.dp * plan.micro_batch * plan.grad_accum, S)
    return project(plan, batch, dense_model(), cluster(chip, plan.devices), chip)


def memory(found: Projection) -> MemoryBreakdown:
    assert found.memory is not None
    return found.memory


def update_s(found: Projection) -> float:
    return next(one.time_s for one in found.breakdown.by_kind if one.kind == "optimizer")


@pytest.mark.parametrize(
    ("optimizer", "state", "moved"),
    [("adam", 12, 30), ("adam_bf16", 8, 22), ("adam_8bit", 6.03125, 18.0625), ("adafactor", 4, 18), ("sgd", 8, 22)],
)
def test_bytes_a_parameter_are_kept_and_moved(optimizer: str, state: float, moved: float) -> None:
    found = projected(ParallelismPlan(optimizer=optimizer))
    parameters = dense_model().parameters
    assert memory(found).optimizer_bytes == pytest.approx(state * parameters)
    assert update_s(found) == pytest.approx(moved * parameters / 1e12)


def test_a_sharded_weight_is_its_own_master() -> None:
    plan = ParallelismPlan(dp=4, fsdp=4, zero_stage=3, optimizer="adam_bf16")
    assert memory(projected(plan)).optimizer_bytes == pytest.approx(4 * dense_model().parameters / 4)


def test_muon_keeps_one_moment_of_matrices_and_two_of_all_else() -> None:
    model = dense_model()
    matrices = model.layers * (model.attention_parameters + model.dense_mlp_parameters)
    found = memory(projected(ParallelismPlan(optimizer="muon"))).optimizer_bytes
    assert found == pytest.approx(8 * matrices + 12 * (model.parameters - matrices))


def test_muon_orthogonalises_every_matrix() -> None:
    chip = switched_chip(hbm_bytes_per_s=1e30)
    h, q, f = 1024, 1024 + 2 * 256, 2 * 4096
    shapes = ((h, q), (h, h), (h, f), (h, 4096))
    flop = sum(5 * (4 * m**2 * n + 2 * m**3) for m, n in shapes)
    assert update_s(projected(ParallelismPlan(optimizer="muon"), chip)) == pytest.approx(8 * flop / 100e12)
    shared = ParallelismPlan(dp=4, zero_stage=1, optimizer="muon")
    assert update_s(projected(shared, chip)) == pytest.approx(8 * flop / 100e12 / 4)


def test_muon_on_shards_trades_pieces_of_matrices() -> None:
    sharded = {"dp": 4, "fsdp": 4, "zero_stage": 3}
    adam, muon = (projected(ParallelismPlan(optimizer=name, **sharded)) for name in ("adam", "muon"))
    traffic = [next(one.exposed_s for one in found.breakdown.by_axis if one.axis == "fsdp") for found in (adam, muon)]
    assert traffic[1] > traffic[0]


@pytest.mark.parametrize("optimizer", ["adam", "adam_bf16", "adafactor", "sgd"])
def test_muon_beside_it_changes_no_other_plan(optimizer: str) -> None:
    """Products have a ramp, other updates have none: one that a product's ramp outlasts tells."""
    chip = switched_chip(hbm_bytes_per_s=1e18, calibration=ideal(gemm_half_size_flop=1e12))
    plans = [ParallelismPlan(optimizer=optimizer), ParallelismPlan(optimizer="muon")]
    together = project_many(PlanBatch.from_plans(plans), training(1, S), dense_model(), cluster(chip, 1), chip)
    assert together[0] == projected(plans[0], chip)
    assert together[1] == projected(plans[1], chip)


def test_both_stages_of_a_two_way_device_cross_the_host_link() -> None:
    chip = switched_chip(host=1e8)
    one, both = (
        projected(ParallelismPlan(dp=1, pp=2, grad_accum=4, schedule=schedule, offload_optimizer=True), chip)
        for schedule in ("1f1b", "dualpipe")
    )
    assert both.breakdown.exposed_copy_s > 1.9 * one.breakdown.exposed_copy_s


def test_offloaded_state_leaves_the_device_and_crosses_the_host_link() -> None:
    near, far = (projected(ParallelismPlan(offload_optimizer=on)) for on in (False, True))
    assert memory(far).optimizer_bytes == pytest.approx(memory(near).optimizer_bytes * 2 / 8)  # two of eight layers
    crossing_s = 12 * dense_model().parameters / 10e9
    assert far.breakdown.exposed_copy_s == pytest.approx(crossing_s - update_s(far))
    assert far.step_time_s - near.step_time_s == pytest.approx(far.breakdown.exposed_copy_s)
    assert any("host memory has room" in text for text in far.assumptions)


def test_offloaded_masters_of_sharded_weights_leave_a_16_bit_shard() -> None:
    plan = ParallelismPlan(dp=4, fsdp=4, zero_stage=3, offload_optimizer=True)
    assert memory(projected(plan)).weights_bytes == pytest.approx(2 * dense_model().parameters / 4)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_offloaded_activations_stay_for_two_layers(recompute: str) -> None:
    chip = switched_chip(host=1e8)
    near, far = (
        projected(ParallelismPlan(recompute=recompute, micro_batch=4, offload_activations=on), chip)
        for on in (False, True)
    )
    assert memory(far).activations_bytes < memory(near).activations_bytes
    assert far.breakdown.exposed_copy_s > 0
    assert far.step_time_s > near.step_time_s


def test_offloading_over_an_unknown_link_is_refused_with_the_reason() -> None:
    plan, chip = ParallelismPlan(offload_optimizer=True), switched_chip()
    assert [one.rule for one in check(plan, training(1, S), dense_model(), cluster(chip, 1), chip)] == ["host_link"]
    with pytest.raises(InvalidDescription, match="host link"):
        projected(plan, chip)


def test_offloading_and_layers_kept_apart_are_refused_together() -> None:
    plan = ParallelismPlan(recompute="full", recompute_layers=2, offload_activations=True)
    broken = check(plan, training(1, S), dense_model(), cluster(HOST, 1), HOST)
    assert [one.rule for one in broken] == ["offload_counts_no_layers"]


def test_what_another_plan_of_a_batch_does_moves_no_plan() -> None:
    alone = projected(ParallelismPlan())
    plans = [ParallelismPlan(), ParallelismPlan(optimizer="muon"), ParallelismPlan(offload_optimizer=True)]
    beside = project_many(PlanBatch.from_plans(plans), training(1, S), dense_model(), cluster(HOST, 1), HOST)
    assert beside[0] == alone
    assert beside[1] == projected(plans[1])
    assert beside[2] == projected(plans[2])
