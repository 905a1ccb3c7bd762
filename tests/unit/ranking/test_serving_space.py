"""The space of serving plans, and its ranking with and without a stated load."""

import numpy as np
import pytest

from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.project import project_many
from projector.ranking.pool import layout_numbers
from projector.ranking.rank import rank_space
from projector.ranking.task import Task
from projector.search_space import explore
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Constraints
from projector.specs.objective import Slo
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import FIELDS, PlanBatch, is_one_value
from projector.specs.workload import WorkloadSpec

CHAT = WorkloadSpec(phase="serving", input_len=4096, output_len=256, precision="fp8")


def task(model: str = "deepseek-r1", chips: int = 8, workload: WorkloadSpec = CHAT, **given: object) -> Task:
    hardware = chip("mi355x")
    return Task(workload, architecture(model), ClusterSpec(chip=hardware.id, chips=chips), hardware, **given)  # type: ignore[arg-type]


def plans_of(one: Task, current: ParallelismPlan | None = None) -> PlanBatch:
    return explore(one.workload, one.architecture, one.cluster, one.hardware, one.constraints, current).plans


def test_experts_lie_over_all_ranks_of_an_engine() -> None:
    plans = plans_of(task())
    ranks = plans.attention_dp * plans.tp
    assert (plans.ep * plans.etp == ranks).all()
    eight = ranks == 8
    assert set(plans.ep[eight].tolist()) == {1, 2, 4, 8}


def test_a_current_plan_keeps_the_experts_it_has() -> None:
    current = ParallelismPlan(
        phase="serving", dp=4, attention_dp=4, tp=2, ep=4, weight_dtype="fp8", compute_dtype="fp8"
    )
    plans = plans_of(task(), current)
    assert ((plans.ep == 4) & (plans.etp == 1) & (plans.tp == 2) & (plans.attention_dp == 4)).any()


def test_a_dense_model_has_neither_experts_nor_attention_ranks_to_spread() -> None:
    plans = plans_of(task("llama-3.1-70b"))
    assert set(plans.ep.tolist()) == set(plans.etp.tolist()) == set(plans.attention_dp.tolist()) == {1}


def test_seats_are_counted_by_attention_rank() -> None:
    plans = plans_of(task())
    spread = plans.attention_dp == 8
    assert plans.max_num_seqs[spread].max() == 8 * plans.max_num_seqs[plans.attention_dp == 1].max()


def test_levers_no_search_varies_are_as_the_current_plan_has_them() -> None:
    current = ParallelismPlan(
        phase="serving", dp=1, tp=8, etp=8, weight_dtype="fp8", compute_dtype="fp8", hbm_frac=0.85, tp_all_reduce="ring"
    )
    plans = plans_of(task(), current)
    assert set(plans.hbm_frac.tolist()) == {0.85}
    # no all-reduce, no algorithm for it
    assert set(plans.tp_all_reduce[plans.tp == 1].tolist()) == {"auto"}
    assert set(plans.tp_all_reduce[plans.tp > 1].tolist()) == {"ring"}


def test_a_fixed_lever_is_kept_though_no_search_varies_it() -> None:
    plans = plans_of(task(constraints=Constraints(fixed={"kv_block_tokens": 64})))
    assert set(plans.kv_block_tokens.tolist()) == {64}


def test_layouts_differ_by_attention_ranks_and_prefill_pool() -> None:
    degrees = [
        {"dp": 8, "attention_dp": 1},
        {"dp": 8, "attention_dp": 8},
        {"dp": 8, "attention_dp": 8, "max_num_seqs": 8},
        {"dp": 4, "attention_dp": 4, "prefill_replicas": 1, "prefill_tp": 4},
        {"dp": 4, "attention_dp": 4, "prefill_replicas": 4, "prefill_tp": 1},
        # so large that the digits of a number do not hold it
        {"dp": 2**19, "tp": 2**15, "pp": 2**14, "ep": 2**12, "prefill_replicas": 2**15},
    ]
    plans = [ParallelismPlan(phase="serving", **one) for one in degrees]
    numbers = layout_numbers(PlanBatch.from_plans(plans)).tolist()
    assert len(set(numbers)) == len({plan.layout for plan in plans}) == len(plans) - 1
    assert numbers[1] == numbers[2]


def test_a_field_that_no_plan_varies_stays_one_value() -> None:
    plans = plans_of(task())
    assert is_one_value(plans.hbm_frac)
    taken = PlanBatch.concat([plans.take(plans.tp == 8), plans.take(np.arange(3))])
    assert is_one_value(taken.hbm_frac)
    assert len(taken.hbm_frac) == len(taken) == int((plans.tp == 8).sum()) + 3
    assert [taken.columns[field].dtype.kind for field in FIELDS] == [
        plans.columns[field].dtype.kind for field in FIELDS
    ]
    two = PlanBatch.concat([taken, PlanBatch.from_columns(1, phase="serving", hbm_frac=0.5)])
    assert set(two.hbm_frac.tolist()) == {0.9, 0.5}


def test_without_a_load_every_seat_is_taken() -> None:
    """The load is then one of the plan's choices: more seats, more tokens a second, later ones."""
    one = task("llama-3.1-8b", chips=1, constraints=Constraints(fixed={"chunked_prefill_tokens": 2048}))
    best, strict = rank_space(one), rank_space(Task(**{**vars(one), "slo": Slo(tpot_ms=12)}))
    fastest, bounded = best.ranked[0].projection, strict.ranked[0].projection
    assert fastest.plan.max_num_seqs > bounded.plan.max_num_seqs
    assert bounded.tpot_s is not None
    assert bounded.tpot_s <= 12e-3
    assert any("every seat" in text for text in fastest.assumptions)


def test_a_projection_alone_needs_a_load() -> None:
    one = task(chips=1, model="llama-3.1-8b")
    with pytest.raises(InvalidDescription, match="lacks concurrency"):
        project_many(plans_of(one), one.workload, one.architecture, one.cluster, one.hardware)


def test_where_nothing_keeps_the_budgets_every_missed_one_is_named() -> None:
    found = rank_space(task(slo=Slo(ttft_ms=1, tpot_ms=1, request_latency_ms=1)))
    assert found.nearest_miss is not None
    missed = [one.rule for one in found.nearest_miss.rejections]
    assert missed == ["ttft_ms", "tpot_ms", "request_latency_ms"]
    assert "keeps the latency budgets" in found.why_none
