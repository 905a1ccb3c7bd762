"""A ranked space beside one that is held whole and looked at plan by plan."""

import numpy as np
import pytest

from projector.catalog import architecture, chip
from projector.errors import InvalidDescription, UnknownName
from projector.project import project_many
from projector.ranking.pareto import pareto_rows
from projector.ranking.pool import Pool, layout_numbers
from projector.ranking.rank import rank_space
from projector.ranking.relief import CAUSE_TERM, MODELLED, Relief, blamed_s
from projector.ranking.task import Task, good
from projector.ranking.ties import TIE_FRAC
from projector.search.blocks import even_blocks
from projector.search_space import explore, explore_in_blocks
from projector.specs.cluster import ClusterSpec
from projector.specs.constraints import Bounds, Constraints
from projector.specs.objective import OBJECTIVES, Slo, find_objective
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import FIELDS, PlanBatch
from projector.specs.workload import WorkloadSpec

TRAINING = WorkloadSpec(model="llama-3.1-70b", seq_len=4096, global_batch=256)
SERVING = WorkloadSpec(phase="serving", input_len=1024, output_len=256, concurrency=64)
CURRENT = ParallelismPlan(dp=8, tp=8, pp=1, sp=True, micro_batch=1, grad_accum=32, zero_stage=1, recompute="full")


def task(chip_name: str = "h100-sxm", chips: int = 64, workload: WorkloadSpec = TRAINING, **given: object) -> Task:
    hardware = chip(chip_name)
    cluster = ClusterSpec(chip=hardware.id, chips=chips)
    return Task(workload, architecture("llama-3.1-70b"), cluster, hardware, **given)  # type: ignore[arg-type]


def whole(one: Task):
    space = explore(one.workload, one.architecture, one.cluster, one.hardware, one.constraints, one.current)
    projected = project_many(space.plans, one.workload, one.architecture, one.cluster, one.hardware)
    return space.plans, projected


@pytest.mark.parametrize("size", [1, 7, 500, 10**6])
def test_blocks_hold_the_plans_of_the_whole_space_in_its_order(size) -> None:
    one = task(chips=8, constraints=Constraints(fixed={"pp": 1, "recompute": "none"}))
    given = (one.workload, one.architecture, one.cluster, one.hardware, one.constraints, None)
    blocks = list(explore_in_blocks(*given, plans_at_once=size).blocks)
    assert [len(block) for block in blocks[:-1]] == [size] * (len(blocks) - 1)
    assert 0 < len(blocks[-1]) <= 1.5 * size
    joined, together = PlanBatch.concat(blocks), explore(*given).plans
    assert all((joined.columns[field] == together.columns[field]).all() for field in FIELDS)


def test_blocks_without_plans_are_none() -> None:
    empty = PlanBatch.from_columns(0)
    assert list(even_blocks([empty, empty], 8)) == []


@pytest.mark.parametrize("size", [64, 4096])
@pytest.mark.parametrize("objective", ["tokens_per_s_per_chip", "memory_per_chip_gb", "energy_per_token_j"])
def test_layouts_are_ranked_by_their_best_plan_that_fits(objective, size, monkeypatch) -> None:
    one = task()
    given = (one.workload, one.architecture, one.cluster, one.hardware, one.constraints, None)
    monkeypatch.setattr(Task, "space", lambda self, most: explore_in_blocks(*given, plans_at_once=size))
    found = rank_space(one, objective=objective, top=200)
    plans, projected = whole(one)
    worth = np.where(projected.fits, good(find_objective(objective, "training"), projected), 0.0)
    best: dict[tuple[int, ...], float] = {}
    for row in np.flatnonzero(worth):
        layout = plans[int(row)].layout
        best[layout] = max(best.get(layout, 0.0), worth[row])
    expected = sorted(best.values(), reverse=True)
    assert (found.candidates_considered, found.candidates_feasible) == (len(plans), int(projected.fits.sum()))
    assert found.layouts_count == len(best)
    figures = [next(f.value for f in entry.figures if f.objective == objective) for entry in found.ranked]
    assert [1 / f if objective != "tokens_per_s_per_chip" else f for f in figures] == pytest.approx(expected)
    assert found.leading_count == sum(value * (1 + TIE_FRAC) >= expected[0] for value in expected)
    assert [entry.rank for entry in found.ranked][: found.leading_count] == [1] * found.leading_count
    assert found.ranked[0].behind_frac == 0


def test_how_a_space_is_cut_into_blocks_changes_nothing(monkeypatch) -> None:
    one = task(current=CURRENT)
    wanted = {"pareto": ("step_time_s", "memory_per_chip_gb"), "relieve": "exposed_tp", "top": 200}
    whole_blocks = rank_space(one, **wanted)
    given = (one.workload, one.architecture, one.cluster, one.hardware, one.constraints, one.current)
    monkeypatch.setattr(Task, "space", lambda self, most: explore_in_blocks(*given, plans_at_once=97))
    assert rank_space(one, **wanted) == whole_blocks


def test_what_is_held_grows_with_layouts_and_not_with_plans() -> None:
    one = task()
    plans, projected = whole(one)
    names = ("step_time_s", "memory_per_chip_gb")
    pool = Pool(
        plans=plans,
        layout=layout_numbers(plans),
        good=good(find_objective("mfu", "training"), projected),
        saved=np.zeros(len(plans)),
        losses=np.stack([projected.objective(name) for name in names], axis=1),
    )
    layouts, members = len(np.unique(pool.layout)), len(pareto_rows(pool.losses))
    assert layouts == len({plan.layout for plan in plans})
    assert len(pool.reduced()) <= layouts + members < len(plans) / 10
    assert len(pool.with_more(pool)) == len(pool.reduced())


def test_the_pareto_set_is_that_of_all_plans_that_fit() -> None:
    one = task()
    names = ("step_time_s", "memory_per_chip_gb", "energy_per_token_j")
    found = rank_space(one, pareto=names).pareto
    _, projected = whole(one)
    losses = np.stack([projected.objective(name)[projected.fits] for name in names], axis=1)
    assert found is not None
    assert found.members_count == len(pareto_rows(losses))
    assert len(found.plans) <= found.members_count
    assert [figure.objective for figure in found.plans[0].figures] == list(names)
    times = [figure.value for entry in found.plans for figure in entry.figures if figure.objective == "step_time_s"]
    assert times == sorted(times)
    assert times[0] == pytest.approx(losses[:, 0].min())


def test_gains_are_told_against_the_current_plan() -> None:
    found = rank_space(task(current=CURRENT))
    assert found.current is not None
    best = found.ranked[0]
    assert best.gain_frac == pytest.approx(found.current.step_time_s / best.projection.step_time_s - 1)
    assert rank_space(task()).ranked[0].gain_frac is None


@pytest.mark.parametrize("cause", ["compute_throughput", "exposed_tp", "exposed_communication", "hbm_capacity"])
def test_relief_is_what_is_saved_of_the_blamed_term_without_making_the_step_longer(cause) -> None:
    found = rank_space(task(current=CURRENT), relieve=cause)
    assert found.current is not None
    assert found.relief is not None
    assert found.relief.plans
    now = found.current
    for entry in found.relief.plans:
        after = entry.projection
        if cause == "hbm_capacity":
            assert now.memory is not None
            assert after.memory is not None
            saved = 1 - after.memory.total_bytes / now.memory.total_bytes
        else:
            old, new = blamed_s(now.breakdown, cause), blamed_s(after.breakdown, cause)
            assert old is not None
            assert new is not None
            saved = (old - new) / now.step_time_s
            assert after.step_time_s <= now.step_time_s * (1 + TIE_FRAC)
        assert entry.saved_frac == pytest.approx(saved)
        assert entry.saved_frac > 0
    assert len({entry.projection.plan.layout for entry in found.relief.plans}) == len(found.relief.plans)
    ranks = [entry.rank for entry in found.relief.plans]
    assert ranks == sorted(ranks)


def test_every_cause_has_a_term_or_is_refused() -> None:
    current = task().project(PlanBatch.from_plans([CURRENT]), task().cluster)
    with pytest.raises(InvalidDescription, match="unknown is no term"):
        Relief.of("unknown", current)
    with pytest.raises(InvalidDescription, match="spend nothing on copies"):
        Relief.of("copies", current)
    with pytest.raises(InvalidDescription, match="spend nothing on exposed_ep"):
        Relief.of("exposed_ep", current)
    assert set(CAUSE_TERM) <= MODELLED


def test_copies_of_a_plan_that_offloads_are_relieved() -> None:
    one = task(chips=64)
    offloads = CURRENT.model_copy(update={"offload_optimizer": True})
    current = one.project(PlanBatch.from_plans([offloads, CURRENT]), one.cluster)
    alone = one.project(PlanBatch.from_plans([offloads]), one.cluster)
    relief = Relief.of("copies", alone)
    assert relief.saved_frac(current) == pytest.approx([0.0, relief.share])


def test_serving_is_ranked_under_its_latency_budgets() -> None:
    free = rank_space(task(chips=8, workload=SERVING))
    bound = rank_space(task(chips=8, workload=SERVING, slo=Slo(tpot_ms=25)))
    assert 0 < bound.candidates_feasible < free.candidates_feasible
    assert all(entry.projection.tpot_s <= 0.025 for entry in bound.ranked)
    none = rank_space(task(chips=8, workload=SERVING, slo=Slo(ttft_ms=0.001)))
    assert none.ranked == ()
    assert none.why_none.endswith("fits the memory and keeps the latency budgets")
    assert none.nearest_miss is not None
    (miss,) = none.nearest_miss.rejections
    every = task(chips=8, workload=SERVING)
    _, projected = whole(every)
    assert miss.rule == "ttft_ms"
    assert miss.value == pytest.approx(1e3 * np.nanmin(projected.metrics.ttft_s[projected.fits]))


def test_where_nothing_fits_the_nearest_miss_says_by_how_much() -> None:
    found = rank_space(task(chips=1, workload=TRAINING), pareto=("step_time_s", "memory_per_chip_gb"))
    assert (found.ranked, found.candidates_feasible) == ((), 0)
    assert found.why_none == f"none of {found.candidates_considered} legal plans fits the memory"
    assert found.nearest_miss is not None
    assert [rejection.rule for rejection in found.nearest_miss.rejections] == ["memory"]
    assert found.pareto is not None
    assert found.pareto.plans == ()


def test_where_nothing_is_legal_it_says_so() -> None:
    found = rank_space(task(chips=8, constraints=Constraints(fixed={"tp": 7})))
    assert found.why_none.startswith(
        "no legal plan for 8 devices keeps the constraints: constraints.fixed asks for tp 7"
    )
    assert "does not divide" in found.why_none
    assert "tp can be 1, 2, 4, 8" in found.why_none
    assert found.nearest_miss is None


def test_what_has_no_figure_is_named_and_refused_where_it_is_asked_for() -> None:
    found = rank_space(task())
    assert [one.objective for one in found.unknown] == ["cost_per_million_tokens"]
    with pytest.raises(InvalidDescription, match="the price of h100-sxm is unknown"):
        rank_space(task(), objective="cost_per_million_tokens")
    priced = rank_space(task("tpu-v5p"), objective="cost_per_million_tokens")
    assert any(text.startswith("an hour of a tpu-v5p costs 4.2 USD, recalled") for text in priced.assumptions)
    with pytest.raises(InvalidDescription, match="the power of tpu-v5p is unknown"):
        rank_space(task("tpu-v5p"), pareto=("step_time_s", "energy_per_token_j"))


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"objective": "ttft_ms"}, UnknownName, "unknown training objective 'ttft_ms'"),
        ({"top": 0}, InvalidDescription, "top 0 lies outside 1 to 200"),
        ({"pareto": ("mfu",)}, InvalidDescription, "a Pareto set over mfu"),
        ({"pareto": ("mfu", "mfu")}, InvalidDescription, "a Pareto set over mfu, mfu"),
        ({"relieve": "exposed_tp"}, InvalidDescription, "none is given"),
    ],
)
def test_what_cannot_be_meant_is_refused(given, error, text) -> None:
    with pytest.raises(error, match=text):
        rank_space(task(), **given)


def test_a_space_past_its_bound_is_narrowed_and_says_so() -> None:
    one = task()
    free, bound = rank_space(one), rank_space(one, most=2000)
    assert bound.candidates_considered < free.candidates_considered
    assert bound.notes[-1].startswith("more than 2000 plans: ")
    with pytest.raises(InvalidDescription, match="more than 10 plans for 64 devices, however much is left out"):
        rank_space(one, most=10)


def test_a_part_of_the_cluster_is_ranked_where_chips_are_capped() -> None:
    found = rank_space(task(constraints=Constraints(max_chips=40, bounds={"tp": Bounds(high=4)})))
    assert {entry.projection.plan.devices for entry in found.ranked} == {40}
    assert {entry.projection.chips for entry in found.ranked} == {40}


def test_every_objective_a_phase_has_can_rank_it() -> None:
    for name in (one.name for one in OBJECTIVES if "serving" in one.phases and "cost" not in one.name):
        found = rank_space(task(chips=8, workload=SERVING), objective=name, top=3)
        assert found.ranked[0].rank == 1


def test_a_current_plan_that_cannot_run_says_why() -> None:
    """Without recompute or sharding 70B parameters do not fit; chunks need a pipeline."""
    current = ParallelismPlan(dp=8, tp=8, sp=True, vp=2, grad_accum=32)
    found = rank_space(task(current=current)).current
    assert found is not None
    assert [one.rule for one in found.rejections] == ["vp_needs_interleaved", "vp_needs_pp", "memory"]
    fine = rank_space(task(current=CURRENT)).current
    assert fine is not None
    assert {one.rule for one in fine.rejections} <= {"memory"}
