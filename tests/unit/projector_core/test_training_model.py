"""Training steps small enough to work out on paper."""

import pytest
from pipeline_simulator import simulated_s
from projector_examples import cluster, dense_model, gpt, ideal, latent_model, moe_model, switched_chip, training

from projector.breakdown import Projection, TimeBreakdown
from projector.catalog import architecture, chip
from projector.graph.optimizer import MOMENT_BYTES, UPDATE_BYTES
from projector.legality import check
from projector.model_flop import model_flop_per_token
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.software import CURRENT, Software

# Memory so fast that only arithmetic takes time, and that at its peak: a kind whose steps sustain their calibration.
ARITHMETIC_ONLY = switched_chip(hbm_bytes_per_s=1e30, kind="tpu")


def projected(
    plan: ParallelismPlan,
    *,
    model: ModelArchitecture | None = None,
    hardware: HardwareProfile = ARITHMETIC_ONLY,
    seq_len: int = 2048,
) -> Projection:
    batch = plan.dp * plan.micro_batch * plan.grad_accum
    return project(plan, training(batch, seq_len), model or dense_model(), cluster(hardware, plan.devices), hardware)


def axis_s(projection: Projection, axis: str) -> float:
    return sum(found.total_s for found in projection.breakdown.by_axis if found.axis == axis)


def test_one_device_takes_flop_over_peak() -> None:
    model, tokens = dense_model(), 2048
    weights = model.parameters - model.embedding_parameters - model.norm_parameters
    pairs = 2048 * 2049 / 2
    # forward 2 N T + 4 pairs q; backward 2 products a weight and, with fused attention, 5 instead of 2 products a score
    flop = 6 * weights * tokens + 3.5 * 4 * pairs * model.layers * 1024
    assert projected(ParallelismPlan()).step_time_s == pytest.approx(flop / 100e12)


def test_gpu_sustains_a_part_of_what_its_kernels_reach_alone() -> None:
    sustained = switched_chip(hbm_bytes_per_s=1e30, calibration=ideal(sustained_frac=0.8))
    alone_s, whole_s = (
        projected(ParallelismPlan(), hardware=chip).step_time_s for chip in (ARITHMETIC_ONLY, sustained)
    )
    assert whole_s == pytest.approx(alone_s / 0.8)


def test_latent_attention_multiplies_wide_scores_and_narrow_values() -> None:
    model = latent_model()
    weights = model.parameters - model.embedding_parameters - model.norm_parameters
    pairs = 2048 * 2049 / 2
    flop = 6 * weights * 2048 + 3.5 * 2 * pairs * model.layers * 16 * (48 + 32)
    assert projected(ParallelismPlan(), model=model).step_time_s == pytest.approx(flop / 100e12)


def test_parallel_block_reduces_once_a_layer() -> None:
    plain, parallel = (
        axis_s(projected(ParallelismPlan(tp=4), model=dense_model(parallel_block=on)), "tp") for on in (False, True)
    )
    payload_s = 2 * (2048 * 1024 * 2 * 3 / 4 / 100e9 + 2e-6)
    # one all-reduce less, forward and backward, in each of 8 layers
    assert plain - parallel == pytest.approx(2 * 8 * payload_s)


def test_full_recompute_adds_a_forward_pass_of_the_layers() -> None:
    model = dense_model()
    layer_weights = model.attention_parameters + model.dense_mlp_parameters
    flop = model.layers * (2 * layer_weights * 2048 + 4 * 2048 * 2049 / 2 * 1024)
    reentrant = switched_chip(hbm_bytes_per_s=1e30)
    extra = [
        projected(ParallelismPlan(recompute="full"), hardware=chip).step_time_s
        - projected(ParallelismPlan(), hardware=chip).step_time_s
        for chip in (reentrant, ARITHMETIC_ONLY)
    ]
    # a compiler leaves out what only the next layer reads: the last product of the MLP
    last = model.layers * 2 * 2048 * model.intermediate_size * model.hidden_size
    assert extra == pytest.approx([flop / 100e12, (flop - last) / 100e12])


def test_small_gemms_reach_half_their_efficiency_at_the_half_size() -> None:
    # one GEMM of the half size: twice the time
    hardware = switched_chip(
        kind="tpu", hbm_bytes_per_s=1e30, calibration=ideal(gemm_half_size_flop=2 * 2048 * 1024 * 1536)
    )
    model = dense_model()
    slow, fast = (projected(ParallelismPlan(), hardware=chip, model=model) for chip in (hardware, ARITHMETIC_ONLY))
    gemms = {found.kind: found.time_s for found in slow.breakdown.by_kind}["gemm"]
    ideal_gemms = {found.kind: found.time_s for found in fast.breakdown.by_kind}["gemm"]
    # 4 GEMMs a layer and the head, each 3 times (forward, two backward), and each pays the half size once
    executions = 3 * (4 * model.layers + 1)
    assert gemms - ideal_gemms == pytest.approx(executions * 2 * 2048 * 1024 * 1536 / 100e12)


def test_1f1b_bubble_is_p_minus_1_over_m() -> None:
    found = projected(
        ParallelismPlan(pp=4, grad_accum=8), model=dense_model(vocab_size=1), hardware=ARITHMETIC_ONLY
    ).breakdown
    busy_s = found.total_s - found.bubble_s
    assert found.bubble_s == pytest.approx(3 / 8 * busy_s, rel=1e-3)


def test_interleaving_halves_the_bubble() -> None:
    plain, interleaved = (
        projected(ParallelismPlan(pp=4, grad_accum=8, vp=vp, schedule=schedule)).breakdown.bubble_s
        for vp, schedule in ((1, "1f1b"), (2, "interleaved"))
    )
    # the interleaved schedule hides its sends, save those while it fills and drains, hence not exactly
    assert interleaved == pytest.approx(plain / 2, rel=0.1)


def test_chunks_that_differ_are_timed_by_the_events_of_the_schedule() -> None:
    model, grad_accum = dense_model(layers=7, vocab_size=1), 24
    whole = projected(ParallelismPlan(grad_accum=grad_accum), model=model, hardware=ARITHMETIC_ONLY).breakdown
    # of products a third is forward, of attention 2 of 7
    layer_s = whole.compute_s / grad_accum / model.layers
    products_s = next(one.time_s for one in whole.by_kind if one.kind == "gemm") / grad_accum / model.layers
    ahead_s = products_s / 3 + (layer_s - products_s) * 2 / 7
    plan = ParallelismPlan(pp=2, vp=2, schedule="interleaved", grad_accum=grad_accum)
    found = projected(plan, model=model, hardware=ARITHMETIC_ONLY).breakdown
    chunks = [[2, 2], [2, 1]]
    ahead, back = ([[layers * one for layers in row] for row in chunks] for one in (ahead_s, layer_s - ahead_s))
    assert found.total_s == pytest.approx(simulated_s(ahead, back, grad_accum), rel=0.01)


def test_zero_bubble_fills_the_bubble_with_weight_gradients() -> None:
    plain, split = (
        projected(
            ParallelismPlan(pp=4, grad_accum=8, schedule=schedule),
            model=dense_model(vocab_size=1),
            hardware=ARITHMETIC_ONLY,
        ).breakdown
        for schedule in ("1f1b", "zero_bubble")
    )
    assert split.compute_s == pytest.approx(plain.compute_s)
    # (F + B - W) of (F + B + W) is left, and W is a third of all products
    products_s = next(one.time_s for one in plain.by_kind if one.kind == "gemm")
    left_frac = 1 - 2 * products_s / 3 / plain.compute_s
    assert split.bubble_s == pytest.approx(left_frac * plain.bubble_s, rel=0.05)


def test_dualpipe_halves_what_is_left_and_holds_weights_twice() -> None:
    plain, two_way = (
        projected(
            ParallelismPlan(pp=4, grad_accum=8, schedule=schedule),
            model=dense_model(vocab_size=1),
            hardware=ARITHMETIC_ONLY,
        )
        for schedule in ("1f1b", "dualpipe")
    )
    # (p / 2 - 1) (F&B + B - 3 W) against (p - 1) (F + B), where F is a third of products and 2 of 7 of attention
    products_s = next(one.time_s for one in plain.breakdown.by_kind if one.kind == "gemm")
    busy_s = plain.breakdown.compute_s
    ahead_s = products_s / 3 + (busy_s - products_s) * 2 / 7
    left_frac = (2 * busy_s - ahead_s - products_s) / (3 * busy_s)
    assert two_way.breakdown.bubble_s == pytest.approx(left_frac * plain.breakdown.bubble_s, rel=0.1)
    assert two_way.memory is not None
    assert plain.memory is not None
    assert two_way.memory.weights_bytes == pytest.approx(2 * plain.memory.weights_bytes, rel=0.01)
    assert two_way.memory.gradients_bytes == pytest.approx(2 * plain.memory.gradients_bytes, rel=0.01)


def test_dualpipe_over_hundreds_of_devices_has_the_bubble_its_authors_state() -> None:
    def per_stage_s(pp: int) -> float:
        plan = ParallelismPlan(pp=pp, grad_accum=4 * pp, schedule="dualpipe")
        model = dense_model(layers=pp, vocab_size=1)
        found = projected(plan, model=model, hardware=ARITHMETIC_ONLY).breakdown.bubble_s
        assert found is not None
        return found / (pp / 2 - 1)

    # 16 devices event by event, 256 by the formula, which counts a hop there and back once a stage
    assert per_stage_s(256) == pytest.approx(per_stage_s(16), rel=0.25)


def test_the_two_copies_of_dualpipe_share_the_optimizer_and_exchange_gradients() -> None:
    plain, two_way = (
        projected(ParallelismPlan(pp=4, grad_accum=8, schedule=schedule, zero_stage=1))
        for schedule in ("1f1b", "dualpipe")
    )
    assert two_way.memory is not None
    assert plain.memory is not None
    assert two_way.memory.optimizer_bytes == pytest.approx(plain.memory.optimizer_bytes, rel=0.1)
    axes = {one.axis: one.total_s for one in two_way.breakdown.by_axis}
    assert axes["dp"] > 0
    assert "dp" not in {one.axis for one in plain.breakdown.by_axis}


def test_dualpipe_hides_the_exchange_with_experts() -> None:
    def exposed_frac(schedule: str) -> float:
        plan = ParallelismPlan(dp=8, pp=4, ep=8, grad_accum=32, schedule=schedule)  # type: ignore[arg-type]
        found = projected(plan, model=moe_model(first_dense_layers=0)).breakdown
        (exchange,) = (one for one in found.by_axis if one.axis == "ep")
        return exchange.exposed_s / exchange.total_s

    assert exposed_frac("1f1b") == pytest.approx(1.0)
    assert exposed_frac("dualpipe") < 0.95


def test_tensor_parallelism_really_divides_the_mlp() -> None:
    whole, split = (projected(ParallelismPlan(tp=tp)).breakdown.compute_s for tp in (1, 4))
    assert split == pytest.approx(whole / 4)


def test_tensor_parallel_layer_costs_two_all_reduces_each_way() -> None:
    model = dense_model()
    found = projected(ParallelismPlan(tp=4), model=model)
    payload = 2048 * 1024 * 2
    one_s = 2 * (payload * 3 / 4 / 100e9 + 2e-6)
    loss_s = min(2 * (2048 * 12 * 3 / 4 / 100e9 + 2e-6), 3 * 2048 * 12 / 100e9 + 1e-6)
    # two blocks a layer and the embedding, forward and backward, and the loss
    assert axis_s(found, "tp") == pytest.approx((4 * model.layers + 2) * one_s + 2 * loss_s)


def test_replicated_gradients_are_reduced_once_a_step_in_fp32() -> None:
    model = dense_model()
    found = projected(ParallelismPlan(dp=8, grad_accum=4), model=model)
    ring_s = 2 * 7 / 8 * 4 * model.parameters / 100e9
    assert axis_s(found, "dp") == pytest.approx(ring_s, rel=0.01)


def test_fully_sharded_weights_travel_three_times_a_micro_batch() -> None:
    model = dense_model()
    found = projected(ParallelismPlan(dp=8, fsdp=8, zero_stage=3, grad_accum=2), model=model)
    # attention and MLP of 8 layers and the two ends are gathered apart: 18 rings of 7 steps of 1 us
    once_s = 7 / 8 * 2 * model.parameters / 100e9 + 18 * 7e-6
    assert axis_s(found, "fsdp") == pytest.approx(2 * 3 * once_s)


def test_overlap_switches_expose_what_they_no_longer_hide() -> None:
    plan = ParallelismPlan(dp=8, grad_accum=1)
    hidden = projected(plan).breakdown.exposed_communication_s
    shown = projected(plan.model_copy(update={"overlap_grad_reduce": False})).breakdown
    assert hidden < shown.exposed_communication_s == pytest.approx(shown.communication_s)


def test_optimizer_is_bound_by_memory() -> None:
    hardware = switched_chip()
    found = projected(ParallelismPlan(), hardware=hardware)
    time_s = {kind.kind: kind.time_s for kind in found.breakdown.by_kind}["optimizer"]
    a_parameter = UPDATE_BYTES + 2 * MOMENT_BYTES["adam"]
    assert a_parameter == 30
    assert time_s == pytest.approx(a_parameter * dense_model().parameters / 1e12)


def test_host_that_cannot_keep_up_leaves_the_device_idle() -> None:
    hardware = switched_chip(calibration=ideal(kernel_launch_s=1e-3))
    found = projected(ParallelismPlan(), hardware=hardware).breakdown
    assert found.idle_s > 0
    assert found.bubble_s == 0


def test_model_flop_of_gpt3_follow_palm() -> None:
    # 6 N + 12 l h s with N = 12 l h^2 and the tied vocabulary matrix, whose product the head pays
    model = gpt(96, 12288, 96)
    expected = 6 * (12 * 96 * 12288**2 + 51200 * 12288) + 12 * 96 * 12288 * 2048
    assert model_flop_per_token(model, 2048) == pytest.approx(expected)


def test_utilisation_and_rate_follow_from_the_step() -> None:
    found = projected(ParallelismPlan(dp=4, grad_accum=2))
    tokens = 4 * 2 * 2048
    assert found.tokens_per_s_per_chip == pytest.approx(tokens / found.step_time_s / 4)
    flop = tokens * model_flop_per_token(dense_model(), 2048)
    assert found.mfu_frac == pytest.approx(flop / found.step_time_s / (4 * 100e12))


def test_devices_share_a_chip() -> None:
    # two devices a chip: half the rate and half the memory each, tokens/s counted per chip
    whole, halves = switched_chip(kind="tpu"), switched_chip(kind="tpu", devices_per_chip=2)
    one = project(ParallelismPlan(), training(1), dense_model(), cluster(whole, 1), whole)
    two = project(ParallelismPlan(dp=2), training(2), dense_model(), cluster(halves, 1), halves)
    assert two.memory is not None
    assert two.memory.capacity_bytes == 50e9
    assert two.tokens_per_s_per_chip == pytest.approx(one.tokens_per_s_per_chip, rel=0.05)


@pytest.mark.parametrize("contention_frac", [0.0, 0.5])
def test_hidden_communication_slows_the_compute_beside_it(contention_frac: float) -> None:
    # gathers of 8 shards hide whole; the step still pays what they take from the compute beside them
    chip = switched_chip(hbm_bytes_per_s=1e30)
    calibration = chip.calibration.model_copy(update={"contention_frac": contention_frac})
    hardware = chip.model_copy(update={"calibration": calibration})
    found = projected(ParallelismPlan(dp=8, fsdp=8, zero_stage=3, micro_batch=8), hardware=hardware)
    (fsdp,) = (axis for axis in found.breakdown.by_axis if axis.axis == "fsdp")
    assert fsdp.exposed_s == pytest.approx(contention_frac * fsdp.total_s)


def test_expert_exchange_hides_only_where_the_framework_does_it() -> None:
    calibration = ideal().model_copy(update={"contention_frac": 0.1})
    plan, hardware = ParallelismPlan(dp=8, ep=8), switched_chip(kind="tpu", calibration=calibration)
    model = moe_model(moe_intermediate_size=8192)
    exposed = [
        sum(
            axis.exposed_s
            for axis in project(
                plan, training(8, 2048), model, cluster(hardware, 8), hardware, software=software
            ).breakdown.by_axis
            if axis.axis == "ep"
        )
        for software in (CURRENT, Software(expert_overlap=True))
    ]
    assert exposed[0] > 0
    assert exposed[1] == pytest.approx(0.1 * exposed[0])


def test_ring_attention_runs_a_kernel_a_rank_of_the_ring() -> None:
    # each of 8 x (1 forward, 2 backward) layers' kernels meets the floor cp times
    floor_s = 1e-2
    hardware = switched_chip(calibration=ideal(kernel_floor_s=floor_s), kind="tpu")

    def attention_s(cp: int) -> float:
        kinds = projected(ParallelismPlan(cp=cp), hardware=hardware).breakdown.by_kind
        return sum(found.time_s for found in kinds if found.kind == "attention")

    assert attention_s(1) == pytest.approx(8 * 3 * floor_s)
    assert attention_s(4) == pytest.approx(4 * 8 * 3 * floor_s)


def test_a_ring_computes_and_keeps_what_one_rank_would() -> None:
    one, ring = (projected(ParallelismPlan(cp=cp, dp=1)) for cp in (1, 4))
    attention = [
        sum(found.time_s for found in each.breakdown.by_kind if found.kind == "attention") for each in (one, ring)
    ]
    assert attention[1] == pytest.approx(attention[0] / 4)
    assert one.memory is not None
    assert ring.memory is not None
    assert ring.memory.activations_bytes == pytest.approx(one.memory.activations_bytes / 4)


def test_first_and_last_stage_give_up_a_layer_to_embedding_and_head() -> None:
    # 30 layers and two ends over 4 stages of 2 chunks: 8 a stage in the middle, 7 at the ends
    plan = ParallelismPlan(pp=4, vp=2, schedule="interleaved", grad_accum=8)
    model, hardware = dense_model(layers=30), switched_chip()
    assert check(plan, training(8), model, cluster(hardware, 4), hardware) == ()
    # 29 layers make uneven chunks, 7 too few
    assert check(plan, training(8), dense_model(layers=29), cluster(hardware, 4), hardware) == ()
    short = check(plan, training(8), dense_model(layers=7), cluster(hardware, 4), hardware)
    assert [found.rule for found in short] == ["stages"]
    found = projected(plan, model=model)
    assert found.breakdown.bubble_s is not None
    assert 0 < found.breakdown.bubble_s < found.step_time_s


def test_a_first_stage_that_owns_most_of_the_weights_ends_the_step() -> None:
    # tables of every layer's own embeddings stand on the first stage, while the head makes the last the busiest
    model, hardware = architecture("gemma-4-e2b"), chip("h100-nvl")
    plan = ParallelismPlan(tp=4, sp=True, pp=8, cp=2, grad_accum=8)

    def step(chip_file: HardwareProfile) -> TimeBreakdown:
        return project(plan, training(8, 128), model, cluster(chip_file, 64), chip_file).breakdown

    found, table_bytes = step(hardware), model.layer_embedding_parameters / 4 * UPDATE_BYTES
    update_s = sum(kind.time_s for kind in found.by_kind if kind.kind == "optimizer")
    assert found.compute_s + found.exposed_communication_s + found.idle_s == pytest.approx(found.total_s)
    assert update_s > table_bytes / hardware.hbm_bytes_per_s.value
    # that stage ends the step on a faster chip too
    doubled = hardware.hbm_bytes_per_s.model_copy(update={"value": 2 * hardware.hbm_bytes_per_s.value})
    assert step(hardware.model_copy(update={"hbm_bytes_per_s": doubled})).total_s < found.total_s
