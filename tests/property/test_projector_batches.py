"""Laws of the projector over random plans: one and many agree, parts sum, more hardware never hurts, bounds hold."""

from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projector.batch_projection import ProjectionBatch
from projector.catalog import architecture, architectures, chip
from projector.catalog import chips as catalog_chips
from projector.project import project, project_many
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.hardware import Figure, HardwareProfile
from projector.specs.plan import AllReduce, AllToAll, ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

# every chip whose links are all stated, every model of the catalogue
CHIPS = tuple(
    found.id
    for found in catalog_chips()
    if found.intra.bytes_per_s_one_way and (found.inter.bytes_per_s_one_way or found.intra.kind == "torus")
)
MODELS = tuple(model.name for model in architectures())
DEVICES, BATCH = 64, 128
TRAINING = WorkloadSpec(seq_len=2048, global_batch=BATCH)
SERVING = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=48)

degree = st.sampled_from((1, 2, 4, 8))


@st.composite
def training_plans(draw: st.DrawFn) -> ParallelismPlan:
    tp, pp = draw(degree), draw(st.sampled_from((1, 2, 4)))
    cp = draw(st.sampled_from((1, 2)))
    dp = DEVICES // (tp * pp * cp)
    micro = draw(st.sampled_from([size for size in (1, 2, 4) if dp * size <= BATCH]))
    fsdp = draw(st.sampled_from([size for size in (1, 2, dp) if dp % size == 0]))
    ep, etp = draw(st.sampled_from((1, 2, 8))), draw(st.sampled_from((1, 2)))
    return ParallelismPlan(
        dp=dp,
        fsdp=fsdp,
        zero_stage=3 if fsdp > 1 else draw(st.sampled_from((0, 1, 2))),
        tp=tp,
        sp=draw(st.booleans()),
        pp=pp,
        vp=draw(st.sampled_from((1, 2))),
        schedule=draw(st.sampled_from(("1f1b", "interleaved", "zero_bubble", "dualpipe"))),
        first_stage_layers=draw(st.sampled_from((0, 0, 2))),
        last_stage_layers=draw(st.sampled_from((0, 0, 4))),
        cp=cp,
        ep=ep,
        etp=etp,
        micro_batch=micro,
        grad_accum=BATCH // (dp * micro),
        recompute=draw(st.sampled_from(("none", "selective", "full"))),
        compute_dtype=draw(st.sampled_from(("bf16", "fp8"))),
        overlap_grad_reduce=draw(st.booleans()),
        overlap_param_gather=draw(st.booleans()),
        overlap_tp=draw(st.booleans()),
    )


@st.composite
def serving_plans(draw: st.DrawFn) -> ParallelismPlan:
    tp, pp = draw(degree), draw(st.sampled_from((1, 2)))
    dp = DEVICES // (tp * pp)
    attention_dp = draw(st.sampled_from([size for size in (1, 2, 8) if dp % size == 0]))
    ep = draw(st.sampled_from([size for size in (1, 2, 8) if (attention_dp * tp) % size == 0]))
    return ParallelismPlan(
        phase="serving",
        dp=dp,
        attention_dp=attention_dp,
        tp=tp,
        pp=pp,
        ep=ep,
        etp=attention_dp * tp // ep if draw(st.booleans()) else 1,
        weight_dtype=draw(st.sampled_from(("bf16", "fp8", "fp4"))),
        kv_cache_dtype=draw(st.sampled_from(("bf16", "fp8"))),
        max_num_seqs=draw(st.sampled_from((1, 16, 256))),
        chunked_prefill_tokens=draw(st.sampled_from((0, 512, 8192))),
        cuda_graphs=draw(st.booleans()),
        cuda_graph_mode=draw(st.sampled_from(("full", "piecewise"))),
        expert_dtype=draw(st.sampled_from(("same", "bf16", "fp8", "fp4"))),
        fused_kernels=draw(st.booleans()),
        tp_all_reduce=draw(st.sampled_from(get_args(AllReduce))),
        fuse_all_reduce_norm=draw(st.booleans()),
        expert_dispatch=draw(st.sampled_from(("auto", "all_to_all", "all_gather"))),
        expert_all_to_all=draw(st.sampled_from(get_args(AllToAll))),
        overlap_ep=draw(st.booleans()),
        redundant_experts=draw(st.sampled_from((0, 8))) if ep > 1 else 0,
    )


plans_of_a_phase = st.one_of(
    st.lists(training_plans(), min_size=1, max_size=6), st.lists(serving_plans(), min_size=1, max_size=6)
)
models = st.sampled_from(MODELS).map(architecture)
chips = st.sampled_from(CHIPS).map(chip)


def projected(plans: list[ParallelismPlan], model: ModelArchitecture, hardware: HardwareProfile) -> ProjectionBatch:
    workload = TRAINING if plans[0].phase == "training" else SERVING
    machine = ClusterSpec(chip=hardware.id, chips=plans[0].devices // hardware.devices_per_chip)
    return project_many(PlanBatch.from_plans(plans), workload, model, machine, hardware)


@given(plans_of_a_phase, models, chips)
@settings(max_examples=60, deadline=None)
def test_a_plan_projects_alike_alone_and_in_a_batch(
    plans: list[ParallelismPlan], model: ModelArchitecture, hardware: HardwareProfile
) -> None:
    together = projected(plans, model, hardware)
    for index, plan in enumerate(plans):
        assert together[index] == projected([plan], model, hardware)[0]


@given(plans_of_a_phase, models, chips)
@settings(max_examples=60, deadline=None)
def test_breakdown_sums_to_the_step(
    plans: list[ParallelismPlan], model: ModelArchitecture, hardware: HardwareProfile
) -> None:
    for found in projected(plans, model, hardware):
        b = found.breakdown
        assert b.compute_s + b.exposed_communication_s + b.exposed_copy_s + b.idle_s == pytest.approx(b.total_s)
        assert b.total_s == pytest.approx(found.step_time_s)
        assert b.bubble_s is not None
        assert b.bubble_s <= b.idle_s * (1 + 1e-9)
        assert sum(kind.time_s for kind in b.by_kind) == pytest.approx(b.compute_s)
        assert sum(axis.exposed_s for axis in b.by_axis) == pytest.approx(b.exposed_communication_s)
        assert all(axis.exposed_s <= axis.total_s * (1 + 1e-9) for axis in b.by_axis)


def faster(hardware: HardwareProfile, what: str, factor: float) -> HardwareProfile:
    """The chip with one sort of datasheet figure multiplied."""

    def times(figure: Figure) -> Figure:
        return figure.model_copy(update={"value": figure.value * factor})

    if what == "peak":
        peaks = {dtype: times(figure) for dtype, figure in hardware.peak_flop_per_s.items()}
        return hardware.model_copy(update={"peak_flop_per_s": peaks})
    if what in ("hbm_bytes", "hbm_bytes_per_s"):
        return hardware.model_copy(update={what: times(getattr(hardware, what))})
    side = getattr(hardware, what)
    rate = side.bytes_per_s_one_way
    if rate is None:  # a torus whose network between slices nobody states: nothing to make faster
        return hardware
    return hardware.model_copy(update={what: side.model_copy(update={"bytes_per_s_one_way": times(rate)})})


@given(
    plans_of_a_phase,
    models,
    chips,
    st.sampled_from(("peak", "hbm_bytes", "hbm_bytes_per_s", "intra", "inter")),
    st.floats(1.0, 8.0),
)
@settings(max_examples=60, deadline=None)
def test_better_hardware_never_slows_a_plan(
    plans: list[ParallelismPlan], model: ModelArchitecture, hardware: HardwareProfile, what: str, factor: float
) -> None:
    before, after = projected(plans, model, hardware), projected(plans, model, faster(hardware, what, factor))
    if plans[0].phase == "training":
        # a fixed order of unequal chunks knows anomalies (Graham 1969): a shorter send may end a step later by a little
        room = np.where(before.batch.vp > 1, 0.01, 1e-9)
        slower = after.step_time_s > before.step_time_s * (1 + room)
    else:
        # more memory lets more requests run at once: each may get slower, but not the fleet
        rate = "total_throughput_tps_per_gpu"
        slower = after.objective(rate) < before.objective(rate) * (1 - 1e-9)
    assert not slower.any()


@pytest.mark.parametrize("chip_id", ["h100-sxm", "tpu-v5e"])
def test_plan_of_one_device_has_no_communication_and_no_bubble(chip_id: str) -> None:
    hardware = chip(chip_id)
    machine = ClusterSpec(chip=hardware.id, chips=1)
    for plan, workload in (
        (ParallelismPlan(grad_accum=4), WorkloadSpec(seq_len=2048, global_batch=4)),
        (ParallelismPlan(phase="serving"), WorkloadSpec(phase="serving", input_len=64, output_len=64, concurrency=4)),
    ):
        for model in architectures():
            found = project(plan, workload, model, machine, hardware).breakdown
            assert found.communication_s == 0, model.name
            assert found.bubble_s == 0, model.name
            assert found.by_axis == (), model.name


@given(st.lists(training_plans(), min_size=1, max_size=6), models, chips)
@settings(max_examples=60, deadline=None)
def test_no_training_step_beats_the_flop_bound(
    plans: list[ParallelismPlan], model: ModelArchitecture, hardware: HardwareProfile
) -> None:
    found = projected(plans, model, hardware)
    tables = model.position_parameters + (0 if model.tied_embeddings else model.embedding_parameters)
    flop = 6 * (model.active_parameters - model.norm_parameters - tables) * BATCH * 2048
    fastest = max(figure.value for figure in hardware.peak_flop_per_s.values())
    assert (found.step_time_s > flop / (fastest / hardware.devices_per_chip * DEVICES)).all()


@given(st.lists(serving_plans(), min_size=1, max_size=6), st.sampled_from(("llama-3.1-8b", "gpt3-175b")), chips)
@settings(max_examples=60, deadline=None)
def test_no_token_beats_reading_the_weights_of_every_stage(
    plans: list[ParallelismPlan], model_name: str, hardware: HardwareProfile
) -> None:
    model = architecture(model_name)
    found = projected(plans, model, hardware)
    table = model.embedding_parameters * (1 if model.tied_embeddings else 2)
    width = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5625}
    for projection in found:
        plan = projection.plan
        gemm_bytes = (model.parameters - table) * width[plan.weight_dtype] / plan.tp
        # of a plan that does not fit only the step is a number
        assert projection.step_time_s > 0.999 * gemm_bytes / (
            hardware.hbm_bytes_per_s.value / hardware.devices_per_chip
        )


def weights_bytes(plan: ParallelismPlan, model: ModelArchitecture, batch: int) -> dict[str, float]:
    hardware = chip("h100-sxm")
    machine = ClusterSpec(chip=hardware.id, chips=plan.devices)
    memory = project(plan, WorkloadSpec(seq_len=512, global_batch=batch), model, machine, hardware).memory
    assert memory is not None
    return {item: getattr(memory, f"{item}_bytes") for item in ("weights", "gradients", "optimizer")}


SHARDINGS = [
    (model, tp, fsdp, ep)
    for model, tp, fsdp, ep in product(
        ("llama-3.1-70b", "qwen3-8b", "mixtral-8x7b", "gpt-oss-120b"), (1, 2, 4, 8), (1, 4, 8), (1, 2, 8)
    )
    if ep == 1 or architecture(model).is_moe
]


@pytest.mark.parametrize(("model_name", "tp", "fsdp", "ep"), SHARDINGS)
def test_training_shards_sum_to_the_whole(model_name: str, tp: int, fsdp: int, ep: int) -> None:
    """Without a pipeline every device holds the same share: times the sharding degrees it is the model."""
    model = architecture(model_name)
    # sharded gradients of a single micro-batch would come into being where activations were
    plan = ParallelismPlan(dp=8, fsdp=fsdp, zero_stage=3 if fsdp > 1 else 0, tp=tp, ep=ep, grad_accum=2)
    held = weights_bytes(plan, model, 16)
    experts = model.moe_layers * model.experts * model.expert_parameters
    router_and_norms = model.norm_parameters + model.moe_layers * model.hidden_size * model.experts
    dense = model.parameters - experts - router_and_norms
    shard, expert_shard = fsdp, max(1.0, fsdp * tp / ep) if fsdp > 1 else 1.0
    share = (dense / tp + router_and_norms) / shard + experts / (ep * expert_shard)
    each = (4.0, 4.0, 8.0) if fsdp > 1 else (2.0, 4.0, 12.0)
    for item, width in zip(("weights", "gradients", "optimizer"), each, strict=True):
        assert held[item] == pytest.approx(width * share, rel=0.01)


@pytest.mark.parametrize("pp", [2, 4, 8])
def test_pipeline_stages_sum_to_the_whole(pp: int) -> None:
    """First and last stage hold an equal part of the layers and one vocabulary matrix each."""
    model = architecture("llama-3.1-70b")
    held = weights_bytes(ParallelismPlan(pp=pp, grad_accum=8), model, 8)["weights"]
    blocks = model.parameters - 2 * model.embedding_parameters
    assert held == pytest.approx(2 * (blocks / pp + model.embedding_parameters), rel=0.01)


@pytest.mark.parametrize("model_name", ["llama-3.1-8b", "mixtral-8x7b"])
@pytest.mark.parametrize("plan", [ParallelismPlan(dp=8, grad_accum=2), ParallelismPlan(tp=8, sp=True, grad_accum=16)])
def test_twice_the_layers_take_twice_the_time_and_memory(model_name: str, plan: ParallelismPlan) -> None:
    """What a block adds does not depend on the depth: L to 2 L adds what 0 to L would."""
    hardware = chip("h100-sxm")
    machine = ClusterSpec(chip=hardware.id, chips=8)
    base = architecture(model_name)
    layers = (base.layers, 2 * base.layers, 3 * base.layers)
    found = [
        project(
            plan, WorkloadSpec(seq_len=1024, global_batch=16), base.model_copy(update={"layers": n}), machine, hardware
        )
        for n in layers
    ]
    times = [one.step_time_s for one in found]
    memory = [one.memory.total_bytes for one in found if one.memory is not None]
    for first, second, third in (times, memory):
        assert third - second == pytest.approx(second - first, rel=0.01)
    # blocks dominate: the ends are below a fifth
    assert times[1] == pytest.approx(2 * times[0], rel=0.2)


@given(st.permutations(range(6)), st.lists(training_plans(), min_size=6, max_size=6))
@settings(max_examples=60, deadline=None)
def test_order_of_the_batch_changes_nothing(order: list[int], plans: list[ParallelismPlan]) -> None:
    model, hardware = architecture("llama-3.1-8b"), chip("h100-sxm")
    straight = projected(plans, model, hardware).step_time_s
    shuffled = projected([plans[index] for index in order], model, hardware).step_time_s
    assert np.array_equal(straight[order], shuffled)
