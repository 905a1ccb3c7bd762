"""Every lever group of a serving search is reached where it can matter, and nowhere else."""

import pytest

from projector.catalog import architecture, chip
from projector.search.serving import NARROWINGS
from projector.search_space import explore, explore_in_blocks
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec

LOAD = WorkloadSpec(phase="serving", input_len=2048, output_len=256, concurrency=64, precision="fp8")
FREE = Constraints(allow_numerics_changes=True)


def given(model: str, chip_name: str, constraints: Constraints, chips: int = 8, load: WorkloadSpec = LOAD):
    hardware = chip(chip_name)
    return load, architecture(model), ClusterSpec(chip=hardware.id, chips=chips), hardware, constraints


def plans_of(model: str, chip_name: str, constraints: Constraints = FREE, load: WorkloadSpec = LOAD) -> PlanBatch:
    blocks = explore_in_blocks(*given(model, chip_name, constraints, load=load), None).blocks
    return PlanBatch.concat(list(blocks))


def values(plans: PlanBatch, field: str) -> set[object]:
    return set(plans.columns[field].tolist())


def test_every_group_is_reached_where_it_can_matter() -> None:
    few = Constraints(allow_numerics_changes=True, fixed={"pp": 1, "max_num_seqs": 64})
    plans = plans_of("deepseek-r1", "mi355x", few, LOAD.model_copy(update={"expert_imbalance": 1.5}))
    assert values(plans, "speculation") == {"none", "mtp"}
    assert values(plans, "speculative_tokens") == {0, 1, 2, 3}
    assert values(plans, "expert_dispatch") == {"auto", "deepep"}
    assert values(plans, "expert_dtype") == {"same", "fp4"}
    assert values(plans, "kv_cache_dtype") == {"bf16", "fp8"}
    assert values(plans, "overlap_ep") == values(plans, "quick_reduce") == {False, True}
    assert values(plans, "redundant_experts") == {0, 32}
    assert values(plans, "prefill_replicas") > {0}
    assert len(values(plans, "chunked_prefill_tokens")) == 3


def test_what_cannot_matter_is_not_tried() -> None:
    plans = plans_of("llama-3.1-70b", "h100-sxm")
    for field in ("expert_dispatch", "expert_dtype", "redundant_experts", "overlap_ep", "quick_reduce", "speculation"):
        assert len(values(plans, field)) == 1, field


def test_no_layout_has_levers_it_has_no_use_for() -> None:
    plans = plans_of("deepseek-r1", "mi355x", Constraints(allow_numerics_changes=True, fixed={"max_num_seqs": 64}))
    assert values(plans.take(plans.ep == 1), "expert_dispatch") == {"auto"}
    assert values(plans.take(plans.tp == 1), "quick_reduce") == {False}
    assert values(plans.take((plans.ep == 1) | (plans.attention_dp == 1)), "overlap_ep") == {False}


def test_numerics_stay_unless_they_may_change() -> None:
    plans = plans_of("deepseek-r1", "mi355x", Constraints())
    for field in ("weight_dtype", "expert_dtype", "kv_cache_dtype", "quick_reduce"):
        assert len(values(plans, field)) == 1, field


@pytest.mark.parametrize(
    "fixed",
    [
        {"speculation": "eagle", "speculative_tokens": 4},
        {"speculation": "ngram"},
        {"speculation": "none"},
        {"prefill_replicas": 1, "prefill_tp": 2},
        {"prefill_replicas": 0},
        {"attention_backend": "triton"},
        {"tp_all_reduce": "ring", "tp": 8},
        {"expert_dispatch": "all_gather", "ep": 8},
    ],
)
def test_a_fixed_lever_is_reached_whether_searched_or_not(fixed) -> None:
    plans = plans_of("deepseek-r1", "mi355x", Constraints(fixed=fixed))
    assert len(plans) > 0
    for field, value in fixed.items():
        assert values(plans, field) == {value}, field


def test_the_current_plan_is_among_its_neighbours() -> None:
    current = ParallelismPlan(
        phase="serving", dp=4, attention_dp=4, ep=4, prefill_replicas=2, prefill_tp=2, prefill_etp=2,
        weight_dtype="fp8", compute_dtype="fp8", speculation="ngram", speculative_tokens=5, max_num_seqs=48,
        chunked_prefill_tokens=1024,
    )  # fmt: skip
    blocks = explore_in_blocks(*given("deepseek-r1", "mi355x", Constraints()), current).blocks
    plans = PlanBatch.concat(list(blocks))
    same = plans.max_num_seqs == 48
    for field in (
        "prefill_replicas",
        "prefill_tp",
        "attention_dp",
        "ep",
        "speculative_tokens",
        "chunked_prefill_tokens",
    ):
        same &= plans.columns[field] == getattr(current, field)
    assert any(plan == current for plan in plans.take(same))


def test_prefill_pools_leave_devices_to_decode_on() -> None:
    plans = plans_of("llama-3.1-70b", "h100-sxm")
    split = plans.take(plans.prefill_replicas > 0)
    assert (split.devices == 8).all()
    assert (split.prefill_devices < 8).all()
    assert values(split, "prefill_replicas") >= {1, 2}


def test_groups_are_left_out_in_the_documented_order_until_the_bound_is_kept() -> None:
    asked = given("deepseek-r1", "mi355x", FREE, chips=16)
    found = {}
    for most in (200_000, 20_000, 5_000):
        space = explore_in_blocks(*asked, None, most=most)
        left_out = [note.split(": ", 1)[1] for note in space.notes if note.startswith("more than")]
        assert tuple(left_out) == NARROWINGS[: len(left_out)]
        found[most] = (len(left_out), sum(len(block) for block in space.blocks))
        assert found[most][1] <= most
    assert found[5_000][0] >= found[20_000][0] >= found[200_000][0] > 0


def test_a_space_held_at_once_is_bounded_too() -> None:
    space = explore(*given("deepseek-r1", "mi355x", FREE, chips=16), None)
    assert len(space.plans) <= 60_000
    assert any("left as they are" in note for note in space.notes)
