"""Latency budgets: means, percentiles, and what misses them."""

import pytest
from pydantic import ValidationError

from app.validation import InvalidRequest, parse
from projector.errors import InvalidDescription
from projector.specs.slo import Slo, slo_rejections

MEASURED = {
    "ttft_ms": 812.4, "ttft_ms_p50": 700.0, "ttft_ms_p99": 2100.0, "tpot_ms": 24.0, "tpot_ms_p99": 31.0,
    "request_latency_ms": 9000.0,
}  # fmt: skip


def test_a_miss_names_the_limit_and_the_overshoot():
    (found,) = slo_rejections(Slo(ttft_ms=500), MEASURED)
    assert found.text == "TTFT 812.4 ms > 500.0 ms"
    assert found.rule == "ttft_ms"


def test_every_budget_missed_is_named():
    slo = Slo(ttft_ms=500, ttft_ms_p99=2000, tpot_ms=25, itl_ms_p99=30, request_latency_ms=8000)
    assert [one.text for one in slo_rejections(slo, MEASURED)] == [
        "TTFT 812.4 ms > 500.0 ms",
        "request latency 9000.0 ms > 8000.0 ms",
        "TTFT p99 2100.0 ms > 2000.0 ms",
        "TPOT p99 31.0 ms > 30.0 ms",
    ]


def test_a_budget_that_is_just_met_is_met():
    assert slo_rejections(Slo(ttft_ms=812.4), MEASURED) == ()


def test_inter_token_latency_and_time_per_output_token_are_one_figure():
    for slo in (Slo(itl_ms=20), Slo(tpot_ms=20)):
        assert [one.text for one in slo_rejections(slo, {"itl_ms": 24.0})] == ["TPOT 24.0 ms > 20.0 ms"]


def test_a_budget_without_its_statistic_is_neither_met_nor_missed():
    with pytest.raises(InvalidDescription, match="no statistic for the budgets tpot_ms_p90"):
        slo_rejections(Slo(ttft_ms=500, tpot_ms_p90=30), MEASURED)


def test_a_projection_says_which_budgets_it_does_not_answer():
    slo = Slo(ttft_ms=500, ttft_ms_p99=800, request_latency_ms_p50=4000)
    assert slo.unanswered == (
        "TTFT p99 <= 800 ms: not answered by the analytic model; run the simulation",
        "request latency p50 <= 4000 ms: not answered by the analytic model; run the simulation",
    )
    assert [budget.key for budget in slo.means] == ["ttft_ms"]


def test_an_unknown_key_is_refused_with_the_nearest():
    with pytest.raises(InvalidRequest) as error:
        parse(Slo, '{"ttft_p99_ms": 500}')
    assert "ttft_ms_p99" in error.value.nearest
    with pytest.raises(ValidationError):
        Slo(ttft_ms=0)
