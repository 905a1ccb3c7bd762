"""`eval anchor`: what one run of a sweep is worth for the others, by hand on two and three rows."""

import math

import pytest
from evaluation_examples import read, row_values

from agents.evaluation.anchoring import anchor_report
from agents.evaluation.cases import case_of
from agents.evaluation.rows import MeasuredRow
from agents.evaluation.scored import Scored, score

HELD = 0.7 * math.exp(-0.35)


def scored(values):
    row = next(iter(read(values)))
    assert isinstance(row, MeasuredRow)
    found = score(case_of(row, "modern"))
    assert isinstance(found, Scored)
    return found


def slower(name, factor, **changes):
    """A row that measured `factor` times what is projected for it."""
    plain = scored(row_values(name, **changes))
    tokens = 4096 * 64 / plain.projected_s / 8
    return row_values(name, **(changes | {"measured": {"tokens_per_s_per_chip": tokens / factor}}))


def test_a_ratio_that_all_runs_share_is_carried_in_part():
    """Both 1.2 times slower than projected, one doubling of the micro-batch apart: half of the ratio is carried."""
    report = anchor_report(read(slower("row-1", 1.2), slower("row-2", 1.2, micro_batch=2)), {})
    every = report.by_distance[0]
    assert (report.n_pairs, every.value, every.held) == (2, "all", pytest.approx(HELD))
    assert every.modelled_mape == pytest.approx(1 - 1 / 1.2)
    assert every.anchored_mape == pytest.approx(1 - 1.2 ** (HELD - 1))
    assert every.carried_whole_mape == pytest.approx(0.0, abs=1e-9)
    assert [one.value for one in report.by_distance[1:]] == ["same degrees"]


def test_intervals_are_narrower_and_around_the_corrected_step():
    report = anchor_report(read(slower("row-1", 1.3), slower("row-2", 1.3, micro_batch=2)), {})
    every = report.by_distance[0]
    assert (every.modelled_coverage_80, every.anchored_coverage_80) == (0.0, 1.0)
    # it reaches to the step with the whole ratio in full, and not past what there was to correct
    assert every.anchored_width_80 < 1.3 - 1.0


def test_the_others_are_ranked_without_the_anchor():
    rows = read(
        slower("row-1", 1.0), slower("row-2", 1.0, micro_batch=2), slower("row-3", 1.0, adopted={"tp": 8, "dp": 1})
    )
    modelled, anchored = anchor_report(rows, {}).ranking
    assert (modelled.value, modelled.sweeps, modelled.order_accuracy, modelled.top1_regret) == ("modelled", 1, 1.0, 0.0)
    assert anchored.top1_regret == 0.0


def test_rows_that_are_the_same_plan_are_no_pair():
    rows = read(row_values("row-1"), row_values("row-2", adopted={"extra": {"notes": "another dispatcher"}}))
    report = anchor_report(rows, {})
    assert (report.n_sweeps, report.n_pairs, report.anchored_mape) == (1, 0, None)


def test_an_anchor_that_measured_something_else_is_refused_by_id():
    report = anchor_report(read(slower("row-1", 5.0), slower("row-2", 1.0, micro_batch=2)), {})
    assert report.n_pairs == 1
    assert report.refused_anchors[0].ids == ("row-1",)
    assert "5 times the projected one" in report.refused_anchors[0].reason


def test_a_step_of_reinforcement_learning_is_no_anchor():
    algorithm = {"algorithm": "GRPO", "policy": "On policy", "gen_tp": 2, "gen_pp": 1, "gen_gbs": 256}
    step = {
        "phase": "rl",
        "seq_len": 2048,
        "measured": {"step_time_s": 60.0},
        "adopted": {"dp": None, "recompute": None, "extra": algorithm | {"gen_avg_seq": 1024}},
    }
    report = anchor_report(read(row_values("row-1", **step), row_values("row-2", **step)), {})
    assert (report.n_sweeps, report.n_pairs) == (0, 0)
    assert report.refused_anchors[0].ids == ("row-1", "row-2")
