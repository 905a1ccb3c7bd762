"""What each lever of a step does: which way it moves it, and nothing where its mechanism is absent."""

from collections.abc import Mapping

import pytest

from projector.breakdown import Projection
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

DENSE, SMALL = architecture("llama-3.1-70b"), architecture("llama-3.1-8b")
EXPERTS = architecture("deepseek-v3")
LATENCY = WorkloadSpec(phase="serving", input_len=1024, output_len=512, concurrency=4)
BUSY = WorkloadSpec(phase="serving", input_len=1024, output_len=512, concurrency=256)
PROMPTS = WorkloadSpec(phase="serving", input_len=8192, output_len=1, concurrency=4)
# experts over both attention ranks: rows travel
SPREAD: Mapping[str, object] = {"dp": 8, "attention_dp": 8, "ep": 8, "weight_dtype": "fp8", "max_num_seqs": 256}


def served(
    model: ModelArchitecture = DENSE, load: WorkloadSpec = LATENCY, on: str = "h200", **plan: object
) -> Projection:
    made = ParallelismPlan.model_validate({"phase": "serving", "chunked_prefill_tokens": 8192} | plan)
    return project(made, load, model, ClusterSpec(chip=on, chips=made.devices), chip(on))


def step_s(model: ModelArchitecture = DENSE, load: WorkloadSpec = LATENCY, on: str = "h200", **plan: object) -> float:
    return served(model, load, on, **plan).step_time_s


def ttft_s(model: ModelArchitecture = DENSE, load: WorkloadSpec = PROMPTS, on: str = "h200", **plan: object) -> float:
    found = served(model, load, on, **plan).ttft_s
    assert found is not None
    return found


def weights_gb(model: ModelArchitecture, **plan: object) -> float:
    memory = served(model, **plan).memory
    assert memory is not None
    return memory.weights_bytes / 1e9


# --- graphs


def test_replayed_steps_beat_pieces_and_pieces_beat_launches() -> None:
    full, pieces, launched = (
        step_s(SMALL, tp=8, **graphs)
        for graphs in ({}, {"cuda_graph_mode": "piecewise"}, {"cuda_graphs": False})  # type: ignore[arg-type]
    )
    assert full < pieces < launched


def test_pieces_win_where_the_host_holds_up_mixed_steps() -> None:
    # whole steps are recorded for decoding alone; a mixed step of few tokens waits for its launches
    short = {"chunked_prefill_tokens": 64, "tp": 8}
    assert ttft_s(SMALL, cuda_graph_mode="piecewise", **short) < ttft_s(SMALL, **short)


def test_graphs_do_nothing_where_a_compiler_launches() -> None:
    on = {"on": "tpu-v6e", "tp": 8}
    assert (
        step_s(SMALL, **on)
        == step_s(SMALL, cuda_graph_mode="piecewise", **on)
        == step_s(SMALL, cuda_graphs=False, **on)
    )


# --- kernels


def test_kernels_of_their_own_cost_floors_and_passes() -> None:
    assert 1.03 < step_s(fused_kernels=False, tp=4) / step_s(tp=4) < 1.6
    assert ttft_s(fused_kernels=False, tp=4) > ttft_s(tp=4)
    on = {"on": "tpu-v6e", "tp": 8}
    assert step_s(SMALL, fused_kernels=False, **on) == step_s(SMALL, **on)


def test_portable_attention_kernels_are_slower_where_attention_counts() -> None:
    long = WorkloadSpec(phase="serving", input_len=16384, output_len=512, concurrency=32)
    for model, on in ((DENSE, "h200"), (DENSE, "mi325x")):
        best, triton = (step_s(model, long, on, tp=8, attention_backend=name) for name in ("auto", "triton"))
        assert best < triton < 1.5 * best
    assert step_s(DENSE, long, "mi325x", tp=8, attention_backend="aiter") == step_s(DENSE, long, "mi325x", tp=8)


def test_kernels_of_another_vendor_are_refused() -> None:
    with pytest.raises(InvalidDescription, match="attention kernels that do not exist for h200"):
        step_s(attention_backend="aiter", tp=8)
    with pytest.raises(InvalidDescription, match="quick_reduce"):
        step_s(quick_reduce=True, tp=8)


# --- all-reduces


def test_one_shot_wins_small_messages_and_loses_large_ones() -> None:
    names = ("ring", "one_shot", "two_shot", "auto")
    alone = WorkloadSpec(phase="serving", input_len=16, output_len=512, concurrency=1)
    small = {name: step_s(DENSE, alone, tp=8, tp_all_reduce=name) for name in names}
    assert small["one_shot"] <= small["two_shot"] < small["ring"]
    large = {name: ttft_s(tp=8, tp_all_reduce=name) for name in names}
    assert large["ring"] < large["two_shot"] < large["one_shot"]
    for found in (small, large):
        assert found["auto"] <= min(found.values())


@pytest.mark.parametrize(
    "lever", [{"tp_all_reduce": "one_shot"}, {"tp_all_reduce": "ring"}, {"fuse_all_reduce_norm": True}]
)
def test_all_reduces_do_nothing_on_one_rank(lever: dict[str, object]) -> None:
    assert step_s(SMALL, **lever) == step_s(SMALL)


def test_fused_norm_saves_a_launch_and_a_pass_and_stops_where_its_workspace_ends() -> None:
    assert 0.85 < step_s(tp=8, fuse_all_reduce_norm=True) / step_s(tp=8) < 1
    # 8,192 rows of 16 KiB are beyond it
    assert ttft_s(tp=8, fuse_all_reduce_norm=True) == pytest.approx(ttft_s(tp=8), rel=1e-3)


def test_eight_bit_sums_help_long_prompts_alone_and_only_where_their_kernels_exist() -> None:
    plain, quick = (ttft_s(on="mi325x", tp=8, quick_reduce=on) for on in (False, True))
    assert 0.7 * plain < quick < plain
    assert step_s(on="mi325x", tp=8, quick_reduce=True, load=LATENCY) == pytest.approx(
        step_s(on="mi325x", tp=8), rel=0.02
    )
    assert step_s(SMALL, on="mi325x", quick_reduce=True) == step_s(SMALL, on="mi325x")
    assert step_s(quick_reduce=True, on="h200") == step_s(on="h200")  # nothing is reduced: nothing to refuse


# --- experts


def test_narrow_experts_are_resident_read_and_multiplied_narrow() -> None:
    plan = dict(SPREAD)
    assert weights_gb(EXPERTS, **plan, expert_dtype="fp4") < 0.65 * weights_gb(EXPERTS, **plan)
    assert step_s(EXPERTS, on="b200", expert_dtype="fp4", **plan) < step_s(EXPERTS, on="b200", **plan)
    # no fp4 units here: prompts are multiplied in 16 bit, at half the rate of fp8
    assert ttft_s(EXPERTS, expert_dtype="fp4", **plan) > ttft_s(EXPERTS, **plan)
    assert ttft_s(EXPERTS, on="b200", expert_dtype="fp4", **plan) < ttft_s(EXPERTS, on="b200", **plan)
    assert step_s(DENSE, tp=8, expert_dtype="fp8") == step_s(DENSE, tp=8)


def test_stored_experts_are_the_same_bytes_however_they_are_named() -> None:
    plan = {**SPREAD, "weight_dtype": "fp8"}
    assert step_s(EXPERTS, **plan, expert_dtype="fp8") == step_s(EXPERTS, **plan)


def test_expert_imbalance_costs_and_copies_lower_it_and_take_memory() -> None:
    skewed = BUSY.model_copy(update={"expert_imbalance": 1.5})
    even, uneven, copied = (
        step_s(EXPERTS, load, redundant_experts=copies, **SPREAD)
        for load, copies in ((BUSY, 0), (skewed, 0), (skewed, 8))
    )
    assert even < copied < uneven
    # copies for a router that is balanced are read and held for nothing
    assert step_s(EXPERTS, BUSY, redundant_experts=8, **SPREAD) >= even
    assert weights_gb(EXPERTS, redundant_experts=8, **SPREAD) > weights_gb(EXPERTS, **SPREAD)
    whole: dict[str, object] = {"tp": 8, "etp": 8, "weight_dtype": "fp8"}
    assert step_s(EXPERTS, skewed, **whole) == step_s(EXPERTS, BUSY, **whole)


def test_overlap_hides_the_exchange_and_reads_weights_twice() -> None:
    # 16 hosts: the exchange crosses the network and is worth hiding behind a long prefill
    wide: dict[str, object] = {"dp": 64, "attention_dp": 64, "ep": 64, "weight_dtype": "fp8", "max_num_seqs": 4096}
    many = WorkloadSpec(phase="serving", input_len=4096, output_len=4, concurrency=512)
    assert ttft_s(EXPERTS, many, overlap_ep=True, **wide) < ttft_s(EXPERTS, many, **wide)
    # a small batch reads its weights twice for nothing
    few = LATENCY.model_copy(update={"concurrency": 64})
    assert step_s(EXPERTS, few, overlap_ep=True, **SPREAD) > step_s(EXPERTS, few, **SPREAD)
    whole: dict[str, object] = {"tp": 8, "etp": 8, "weight_dtype": "fp8"}
    assert step_s(EXPERTS, BUSY, overlap_ep=True, **whole) == step_s(EXPERTS, BUSY, **whole)
    assert step_s(DENSE, BUSY, overlap_ep=True, tp=8) == step_s(DENSE, BUSY, tp=8)


def test_exchanges_differ_by_latency_and_by_bytes() -> None:
    wide: dict[str, object] = {"dp": 32, "attention_dp": 32, "ep": 32, "weight_dtype": "fp8", "max_num_seqs": 4096}
    few = LATENCY.model_copy(update={"concurrency": 32})
    by_name = {
        name: step_s(EXPERTS, few, expert_all_to_all=name, **wide)
        for name in ("direct", "single_shot", "hierarchical", "auto")
    }
    assert by_name["single_shot"] < by_name["hierarchical"] < by_name["direct"]
    assert by_name["auto"] == min(by_name.values())
    inside = {name: ttft_s(EXPERTS, expert_all_to_all=name, **SPREAD) for name in ("direct", "single_shot")}
    assert inside["direct"] < inside["single_shot"]
    whole: dict[str, object] = {"tp": 8, "etp": 8, "weight_dtype": "fp8"}
    assert step_s(EXPERTS, BUSY, expert_all_to_all="direct", **whole) == step_s(EXPERTS, BUSY, **whole)


def test_deepep_sends_narrow_rows_and_tells_before_it_forwards() -> None:
    wide: dict[str, object] = {"dp": 32, "attention_dp": 32, "ep": 32, "weight_dtype": "fp8", "max_num_seqs": 4096}
    assert step_s(EXPERTS, BUSY, expert_dispatch="deepep", **wide) < step_s(EXPERTS, BUSY, **wide)
    assert ttft_s(EXPERTS, expert_dispatch="deepep", **wide) < ttft_s(EXPERTS, **wide)
    # 8 seats a rank, with a place for each at 256 experts
    held, plain = (
        served(EXPERTS, BUSY, expert_dispatch=name, **wide | {"max_num_seqs": 256}).memory
        for name in ("deepep", "auto")
    )
    assert held is not None
    assert plain is not None
    assert held.buffers_bytes - plain.buffers_bytes == 4 * 256 * 8 * 7168 * 2
    # all tokens to all ranks: more bytes than eight copies of each, in a group as wide as this
    widest = wide | {"dp": 256, "attention_dp": 256, "ep": 256}
    assert ttft_s(EXPERTS, expert_dispatch="all_gather", **widest) > ttft_s(EXPERTS, **widest)
    whole: dict[str, object] = {"tp": 8, "etp": 8, "weight_dtype": "fp8"}
    assert step_s(EXPERTS, BUSY, expert_dispatch="deepep", **whole) == step_s(EXPERTS, BUSY, **whole)


def test_fused_norm_has_no_kernel_for_sixteen_ranks() -> None:
    assert step_s(on="gb200", tp=16, fuse_all_reduce_norm=True) == step_s(on="gb200", tp=16)
