"""Hit rates of the projector alone: strict, lenient, tolerant; baselines; what the planner is told."""

import pytest
from evaluation_examples import MIXTRAL, read, row, row_values, workload

from agents.evaluation import topk as module
from agents.evaluation.baselines import Published, baselines
from agents.evaluation.hits import hits
from agents.evaluation.ranking import RankedLayout, Ranking, rank_layouts
from agents.evaluation.rates import rate
from agents.evaluation.topk import problem_of, topk
from agents.frameworks import framework_of, frameworks_of
from projector.specs.plan import ParallelismPlan

ROWS = {"row-1": row()}


def ranking_of(*layouts, values=None, too_large=()):
    """Layouts in this order, each 10 % behind the one before unless told otherwise."""
    given = values or [1.0 / 1.1**place for place in range(len(layouts))]
    ranked = [
        RankedLayout(layout, ParallelismPlan(tp=layout[0], pp=layout[1], cp=layout[2]), 1 / value, value)
        for layout, value in zip(layouts, given, strict=True)
    ]
    return Ranking(tuple(ranked), frozenset(too_large), plans=len(layouts))


def expert(**adopted):
    rows = {"row-1": row(adopted=adopted)}
    return workload(), rows


def test_a_layout_hits_where_its_four_degrees_agree():
    one, rows = expert(tp=2, pp=1)
    found = hits(one, rows, ranking_of((1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1)))
    assert (found.top1, found.top3, found.rank) == (False, True, 2)
    assert hits(one, rows, ranking_of((2, 1, 1, 1), (1, 1, 1, 1))).top1


def test_a_strict_hit_agrees_on_sharding_where_the_row_prints_it():
    one, rows = expert(tp=1, fsdp=8, zero_stage=3)
    found = hits(one, rows, ranking_of((1, 1, 1, 1)))
    assert (found.top1, found.top1_strict) == (True, False)
    one, rows = expert(tp=1, fsdp=0)
    assert hits(one, rows, ranking_of((1, 1, 1, 1))).top1_strict


@pytest.mark.parametrize(
    ("behind", "tolerant", "within_2"), [(1.01, True, True), (1.04, True, False), (1.1, False, False)]
)
def test_tolerance_is_by_projection_where_nothing_was_measured(behind, tolerant, within_2):
    one, rows = expert(tp=8)
    values = [1.0, 1.0, 1.0, 1 / behind]
    found = hits(one, rows, ranking_of((1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1), (8, 1, 1, 1), values=values))
    assert (found.top3, found.tolerant, found.tolerant_2) == (False, tolerant, within_2)


@pytest.mark.parametrize(("rate_measured", "tolerant"), [(39_000, True), (30_000, False)])
def test_tolerance_is_by_measurement_where_a_proposal_was_measured(rate_measured, tolerant):
    rows = {
        "row-1": row(adopted={"tp": 8}),
        "row-2": row("row-2", adopted={"tp": 2}, measured={"tokens_per_s_per_chip": rate_measured}),
    }
    one = workload(row_ids=["row-1", "row-2"])
    found = hits(
        one, rows, ranking_of((2, 1, 1, 1), (8, 2, 1, 1), (4, 1, 1, 1), (8, 1, 1, 1), values=[1, 0.9, 0.9, 0.8])
    )
    assert (found.top3, found.tolerant) == (False, tolerant)


def test_an_adopted_layout_that_is_absent_says_why():
    one, rows = expert(tp=8)
    assert hits(one, rows, ranking_of((1, 1, 1, 1))).absent == "not in the search space"
    assert hits(one, rows, ranking_of((1, 1, 1, 1), too_large=[(8, 1, 1, 1)])).absent == "projected not to fit"


def test_flatness_counts_layouts_within_five_per_cent_of_the_best():
    assert ranking_of((1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1), values=[1.0, 0.96, 0.9]).within(0.05) == 2


def test_wilson_intervals():
    five_of_ten = rate([1.0] * 5 + [0.0] * 5)
    assert (five_of_ten.rate, five_of_ten.n) == (0.5, 10)
    assert (five_of_ten.low, five_of_ten.high) == (pytest.approx(0.2366, abs=1e-4), pytest.approx(0.7634, abs=1e-4))
    none = rate([0.0] * 10)
    assert (none.low, none.high) == (0.0, pytest.approx(0.2775, abs=1e-4))
    assert rate([]).rate is None


def published(name, chip, layouts, family="small"):
    return Published(workload(name, chip=chip, family=family), frozenset(layouts))


def test_baselines_leave_the_own_group_out_or_copy_other_chips():
    own, wide, deep = (1, 1, 1, 1), (8, 1, 1, 1), (1, 8, 1, 1)
    known = [
        published("asked", "h100", [own]),
        published("same group", "H100", [own]),
        published("same model", "b200", [wide]),
        published("other model", "h100", [deep], family="large"),
        published("other model again", "b200", [deep], family="large"),
    ]
    found = baselines(known[0].workload, known)
    assert found.common == (deep, wide)
    assert set(found.common_in_sample) == {own, deep, wide}
    assert found.same_model == (wide,)


def test_the_planner_ranks_layouts_that_fit_by_projected_throughput():
    ranking = rank_layouts(problem_of(workload(), ROWS), ())
    values = [one.value for one in ranking.layouts]
    assert values == sorted(values, reverse=True)
    assert len({one.layout for one in ranking.layouts}) == len(ranking.layouts)
    for one in ranking.layouts:
        assert one.layout == (one.plan.tp, one.plan.pp, one.plan.cp, one.plan.ep)


def test_a_named_framework_leaves_out_what_it_does_not_offer():
    problem = problem_of(workload(), ROWS)
    alone = rank_layouts(problem, frameworks_of(["llm-foundry/Composer FSDP"]))
    assert [one.layout for one in alone.layouts] == [(1, 1, 1, 1)]
    megatron = rank_layouts(problem, frameworks_of(["Megatron-LM"]))
    assert {one.plan.fsdp for one in megatron.layouts} == {1}
    old = rank_layouts(problem, frameworks_of(["Megatron-LM PTD-P"]))
    assert not any(one.plan.sp or one.plan.overlap_grad_reduce for one in old.layouts)
    either = rank_layouts(problem, frameworks_of(["Megatron-LM PTD-P", "llm-foundry/Composer FSDP"]))
    assert {one.plan.fsdp for one in either.layouts} == {1, 8}


def test_a_framework_nobody_knows_excludes_nothing():
    assert frameworks_of(["Megatron-LM", "abacus"]) == ()
    assert framework_of("Primus/Megatron or torchtitan").name == "unknown"
    assert framework_of("NeMo (MLPerf Training v5.0)").sharding == "optimizer"


def report(workloads, rows, **options):
    return topk(workloads, read(*rows), **options)


def test_the_report_counts_every_eligible_workload_of_the_phase():
    best = rank_layouts(problem_of(workload(), ROWS), ()).layouts[0].layout
    adopted = dict(zip(("tp", "pp", "cp", "ep"), best, strict=True))
    rows = [row_values(adopted=adopted), row_values("row-2", adopted={"tp": 8}, arch=MIXTRAL, seq_len=None)]
    cases = [
        workload(),
        workload("no-length", expert_row_ids=["row-2"], row_ids=["row-2"], seq_len=None),
        workload("not-eligible", topk_eligible=False),
        workload("other-phase", phase="sft"),
        workload("flat", nontrivial_parallelism=False, stratum="trivial"),
    ]
    found = report(cases, rows, with_ids=True, with_workloads=True)
    assert (found.n, found.nontrivial_n) == (3, 2)
    assert (found.nontrivial_top1, found.nontrivial_top3, found.trivial_top1) == (0.5, 0.5, 1.0)
    assert found.legal_share == 1.0
    assert [one.ids for one in found.refusals] == [("no-length",)]
    assert [one.rank for one in found.workloads] == [1, None, 1]


def test_a_layout_key_counts_once_however_many_workloads_share_it():
    rows = [row_values(adopted={"tp": 8, "pp": 1})]
    shared = [workload(f"shared-{place}", layout_key="one") for place in range(3)]
    found = report([*shared, workload("alone", layout_key="two")], rows)
    by_key = next(one for one in found.strata if one.weighted_by == "layout key")
    assert by_key.n == by_key.top1.n == 2


def test_rows_that_are_not_at_hand_make_a_missed_workload():
    found = report([workload(expert_row_ids=["lost"], row_ids=["lost"])], [])
    assert (found.n, found.nontrivial_top3) == (1, 0.0)
    assert found.refusals[0].reason == "no row says which layout was adopted"


def test_what_nobody_foresaw_is_a_missed_workload(monkeypatch):
    def fails(*_):
        raise KeyError("surprise")

    monkeypatch.setattr(module, "rank_layouts", fails)
    found = report([workload()], [row_values()])
    assert found.refusals[0].reason == "not foreseen, KeyError: 'surprise'"


def test_the_planner_is_told_no_layout():
    """The problem does not change with what was adopted or measured."""
    other = {
        "row-1": row(adopted={"tp": 8, "pp": 1, "recompute": "full"}, measured={"step_time_s": 1.0}, micro_batch=8)
    }
    assert problem_of(workload(), ROWS) == problem_of(workload(), other)


def test_nothing_eligible_gives_no_rates():
    found = report([], [])
    assert (found.n, found.nontrivial_top3, found.trivial_top1, found.legal_share) == (0, None, None, None)
