"""project() and project_many(): what they refuse, assume and report."""

import pytest
from projector_examples import cluster, dense_model, figure, moe_model, serving, switched_chip, torus_chip, training

from projector.errors import InvalidDescription, UnknownName
from projector.project import project, project_many
from projector.specs.objective import OBJECTIVES, Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

CHIP = switched_chip()
PLAN = ParallelismPlan(dp=8)
ENGINE = ParallelismPlan(phase="serving", tp=8)


def test_missing_sizes_are_named() -> None:
    with pytest.raises(InvalidDescription, match="lacks seq_len, global_batch"):
        project(PLAN, WorkloadSpec(), dense_model(), cluster(CHIP, 8), CHIP)
    with pytest.raises(InvalidDescription, match="lacks concurrency, output_len"):
        project(ENGINE, WorkloadSpec(phase="serving", input_len=10), dense_model(), cluster(CHIP, 8), CHIP)


def test_plan_must_occupy_the_cluster() -> None:
    with pytest.raises(
        InvalidDescription, match=r"plan 0 \(dp 8, .*\) does not occupy the 16 devices of 16 x switched"
    ):
        project(PLAN, training(8), dense_model(), cluster(CHIP, 16), CHIP)


def test_plan_must_consume_the_global_batch() -> None:
    with pytest.raises(InvalidDescription, match="does not consume the global batch of 12 sequences"):
        project(PLAN, training(12), dense_model(), cluster(CHIP, 8), CHIP)


def test_first_wrong_plan_of_a_batch_is_named_and_the_others_counted() -> None:
    batch = PlanBatch.from_plans([PLAN, ParallelismPlan(dp=4), ParallelismPlan(dp=2)])
    with pytest.raises(InvalidDescription, match=r"plan 1 .* \(and 1 more of 3\)"):
        project_many(batch, training(8), dense_model(), cluster(CHIP, 8), CHIP)


def test_cluster_must_be_of_the_chip() -> None:
    with pytest.raises(InvalidDescription, match="made of 'torus', the hardware profile is 'switched'"):
        project(PLAN, training(8), dense_model(), cluster(torus_chip(), 8), CHIP)


def test_alias_of_the_chip_will_do() -> None:
    machine = cluster(CHIP, 8, chip="switched_100")
    assert project(PLAN, training(8), dense_model(), machine, CHIP).chip == "switched"


def test_phases_must_agree() -> None:
    with pytest.raises(InvalidDescription, match="is not a training plan"):
        project(ENGINE, training(8), dense_model(), cluster(CHIP, 8), CHIP)


def test_empty_batch_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="empty batch"):
        project_many(PlanBatch.from_columns(0), training(8), dense_model(), cluster(CHIP, 8), CHIP)


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (ParallelismPlan(phase="serving", dp=4, cp=2), "context parallelism is not modelled in serving"),
        (ParallelismPlan(phase="serving", dp=8, fsdp=8), "engines hold their weights whole"),
        (ParallelismPlan(phase="serving", dp=8, ep=8), "spreads experts past one engine"),
    ],
)
def test_serving_refuses_what_it_does_not_model(plan: ParallelismPlan, reason: str) -> None:
    with pytest.raises(InvalidDescription, match=reason):
        project(plan, serving(8), moe_model(), cluster(CHIP, 8), CHIP)


def test_zero_3_needs_a_sharding_group() -> None:
    with pytest.raises(InvalidDescription, match="sharded and whole at once"):
        project(ParallelismPlan(dp=8, zero_stage=3), training(8), dense_model(), cluster(CHIP, 8), CHIP)


def test_dtype_the_chip_lacks_is_widened_aloud() -> None:
    batch = PlanBatch.from_plans([PLAN, PLAN.model_copy(update={"compute_dtype": "fp8"})])
    wide, narrow = project_many(batch, training(8), dense_model(), cluster(CHIP, 8), CHIP)
    assert narrow.assumptions[0] == "switched has no fp8 units: GEMMs are projected in bf16"
    assert narrow.step_time_s == wide.step_time_s
    assert not any("fp8" in sentence for sentence in wide.assumptions)


def test_dtype_without_a_wider_one_is_refused() -> None:
    tpu = torus_chip()
    with pytest.raises(InvalidDescription, match="torus does not offer fp32") as refusal:
        project(ParallelismPlan(compute_dtype="fp32"), training(1), dense_model(), cluster(tpu, 1), tpu)
    assert refusal.value.hint == "offered: bf16"


def test_assumed_slices_are_reported() -> None:
    tpu = torus_chip()
    found = project(ParallelismPlan(dp=512), training(512), dense_model(), cluster(tpu, 512), tpu)
    assert "a slice of torus has the most even shape, 16x16" in found.assumptions
    assert "512 chips pass the largest slice of 256: 2 slices over DCN" in found.assumptions


def test_router_is_assumed_balanced_only_where_there_is_one() -> None:
    dense, moe = (
        project(PLAN, training(8), model, cluster(CHIP, 8), CHIP).assumptions for model in (dense_model(), moe_model())
    )
    assert any("router" in sentence for sentence in moe)
    assert not any("router" in sentence for sentence in dense)


def test_every_objective_belongs_to_its_phases_only() -> None:
    known = CHIP.model_copy(update={"price_usd_per_chip_hour": figure(3.6), "tdp_w": figure(500.0)})
    batches = {
        "training": project_many(PlanBatch.from_plans([PLAN]), training(8), dense_model(), cluster(known, 8), known),
        "serving": project_many(PlanBatch.from_plans([ENGINE]), serving(8), dense_model(), cluster(known, 8), known),
    }
    for objective in OBJECTIVES:
        for phase, batch in batches.items():
            if phase in objective.phases:
                assert batch.objective(objective.name)[0] >= 0
            else:
                with pytest.raises(UnknownName):
                    batch.objective(objective.name)


def test_a_million_tokens_cost_chip_time_at_its_price() -> None:
    priced = CHIP.model_copy(update={"price_usd_per_chip_hour": figure(3.6)})
    for plan, load in ((PLAN, training(8)), (ENGINE, serving(8))):
        batch = project_many(PlanBatch.from_plans([plan]), load, dense_model(), cluster(priced, 8), priced)
        rate = batch[0].tokens_per_s_per_chip or batch[0].decode_tokens_per_s_per_chip
        assert rate is not None
        assert batch.objective("cost_per_million_tokens")[0] == pytest.approx(1e6 * 0.001 / rate)


def test_without_a_price_there_is_no_cost() -> None:
    batch = project_many(PlanBatch.from_plans([PLAN]), training(8), dense_model(), cluster(CHIP, 8), CHIP)
    with pytest.raises(InvalidDescription, match="the price of switched is unknown"):
        batch.objective("cost_per_million_tokens")


def test_energy_weighs_what_a_step_does() -> None:
    """A chip of 400 W, 15 % of it while it waits, half while it only communicates."""
    powered = CHIP.model_copy(update={"tdp_w": figure(400.0)})
    batch = project_many(PlanBatch.from_plans([PLAN]), training(8), dense_model(), cluster(powered, 8), powered)
    parts = batch[0].breakdown
    energy_j = 400 * (parts.compute_s + 0.5 * parts.exposed_communication_s + 0.15 * parts.idle_s)
    assert batch.objective("energy_per_token_j")[0] == pytest.approx(8 * energy_j / (8 * 2048))


def test_a_chip_that_waits_for_copies_draws_what_an_idle_one_does() -> None:
    powered = switched_chip(host=1e8).model_copy(update={"tdp_w": figure(400.0)})
    plan = PLAN.model_copy(update={"offload_optimizer": True})
    batch = project_many(PlanBatch.from_plans([plan]), training(8), dense_model(), cluster(powered, 8), powered)
    parts = batch[0].breakdown
    assert parts.exposed_copy_s > 0
    idle_s = parts.idle_s + parts.exposed_copy_s
    energy_j = 400 * (parts.compute_s + 0.5 * parts.exposed_communication_s + 0.15 * idle_s)
    assert batch.objective("energy_per_token_j")[0] == pytest.approx(8 * energy_j / (8 * 2048))


def test_without_a_power_there_is_no_energy() -> None:
    batch = project_many(PlanBatch.from_plans([PLAN]), training(8), dense_model(), cluster(CHIP, 8), CHIP)
    with pytest.raises(InvalidDescription, match="the power of switched is unknown"):
        batch.objective("energy_per_token_j")


def test_an_engine_that_serves_nothing_is_the_worst_by_every_objective() -> None:
    small = switched_chip(hbm_bytes=1e8)
    batch = project_many(PlanBatch.from_plans([ENGINE]), serving(8), dense_model(), cluster(small, 8), small)
    assert batch.objective("decode_throughput_tps_per_gpu")[0] == 0
    assert batch.objective("ttft_ms")[0] == float("inf")


def test_sequences_past_the_positions_of_a_model_are_said() -> None:
    model = dense_model(max_positions=1024)
    said = "sequences of 2048 tokens pass the 1024 positions dense was made for"
    assert said in project(PLAN, training(8, 2048), model, cluster(CHIP, 8), CHIP).assumptions
    assert said not in project(PLAN, training(8, 1024), model, cluster(CHIP, 8), CHIP).assumptions


def test_objectives_are_in_their_own_units() -> None:
    batch = project_many(PlanBatch.from_plans([ENGINE]), serving(8), dense_model(), cluster(CHIP, 8), CHIP)
    found = batch[0]
    assert found.ttft_s is not None
    assert batch.objective("ttft_ms")[0] == pytest.approx(1e3 * found.ttft_s)
    assert found.memory is not None
    assert batch.objective("memory_per_chip_gb")[0] == pytest.approx(found.memory.total_bytes / 1e9)


def test_every_budget_missed_is_named() -> None:
    batch = project_many(PlanBatch.from_plans([ENGINE]), serving(8), dense_model(), cluster(CHIP, 8), CHIP)
    (missed,) = batch.slo_misses(Slo(ttft_ms=0.1, tpot_ms=1e6, request_latency_ms=0.1))
    assert [rejection.rule for rejection in missed] == ["ttft_ms", "request_latency_ms"]
    assert missed[0].text.endswith("> 0.1 ms")
    assert batch.slo_misses(Slo()) == [()]


def test_interval_surrounds_the_projection_and_says_what_it_rests_on() -> None:
    found = project(PLAN, training(8), dense_model(), cluster(CHIP, 8), CHIP)
    assert found.step_time_interval_s.low < found.step_time_s < found.step_time_interval_s.high
    assert "measured" in found.step_time_interval_s.basis
