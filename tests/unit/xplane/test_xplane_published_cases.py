"""Synthetic profiles that encode cases C1 to C4 and A5 of the PROMPTS paper: what is parsed is what was published.

A published figure is met when it comes out at the digits that were printed. C3's table is in fractions, cut to three
places.
"""

import math
from typing import Any

import pytest
from published_cases import REST, SETUPS, profile, published

from traces.summary import measured_breakdown, read_summary
from traces.summary_types import TraceSummary
from traces.xplane.op_table import Kpis, OpRow

CASES = tuple(SETUPS)


def decimals(figure: float) -> int:
    """Digits after the point of a figure as printed."""
    return len(repr(figure).partition(".")[2])


def printed(value: float | None, figure: float, *, cut: bool = False) -> float:
    """`value` at the digits of `figure`."""
    assert value is not None
    scale = 10 ** decimals(figure)
    return (math.floor(value * scale + 1e-6) if cut else round(value * scale)) / scale


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, TraceSummary]:
    name: str = request.param
    path = tmp_path_factory.mktemp("cases") / f"{name}.xplane.pb"
    path.write_bytes(profile(name))
    return name, read_summary([path])


def kpis_of(summary: TraceSummary) -> Kpis:
    assert summary.kpis is not None
    return summary.kpis


def listed(summary: TraceSummary, facts: dict[str, Any]) -> list[tuple[OpRow, dict[str, Any]]]:
    """The costliest operators of the table beside the published ones."""
    return list(zip(summary.op_table, facts["top_ops"], strict=False))


def test_step_time_and_duty_cycle(case: tuple[str, TraceSummary]) -> None:
    name, summary = case
    facts, kpis = published(name)["kpis"], kpis_of(summary)
    assert printed((kpis.step_time_s or 0) * 1e3, facts["step_time_ms"]) == facts["step_time_ms"]
    assert kpis.steps == SETUPS[name].device_steps
    if "duty_cycle_pct" in facts:
        assert printed(kpis.duty_cycle_frac * 100, facts["duty_cycle_pct"]) == facts["duty_cycle_pct"]
    if "tc_busy_time_ms" in facts:
        assert printed(kpis.busy_s * 1e3, facts["tc_busy_time_ms"]) == facts["tc_busy_time_ms"]


def test_communication_of_all_kinds_beside_that_of_all_reduce_alone(case: tuple[str, TraceSummary]) -> None:
    name, summary = case
    facts, kpis = published(name)["kpis"], kpis_of(summary)
    if "all_reduce_only_comm_pct" in facts:
        published_pct = facts["all_reduce_only_comm_pct"]
        assert printed(kpis.all_reduce_only_frac * 100, published_pct) == published_pct
    if "mean_all_reduce_us" in facts:
        assert printed(kpis.all_reduce_s * 1e6, facts["mean_all_reduce_us"]) == facts["mean_all_reduce_us"]
    if "comm_pct" in facts:
        assert printed(kpis.communication_frac * 100, facts["comm_pct"]) == facts["comm_pct"]
    assert kpis.all_reduce_only_incomplete
    assert kpis.communication_frac > kpis.all_reduce_only_frac


def test_program_goodput_is_derived_only_where_the_work_is_stated(case: tuple[str, TraceSummary]) -> None:
    name, summary = case
    facts, kpis = published(name)["kpis"], kpis_of(summary)
    if "program_goodput_pct" in facts:
        assert (
            printed((kpis.program_goodput_frac or 0) * 100, facts["program_goodput_pct"])
            == facts["program_goodput_pct"]
        )
    else:
        assert kpis.costed_frac < 0.5
        assert kpis.program_goodput_frac is None


def test_the_costliest_operators_are_the_published_ones(case: tuple[str, TraceSummary]) -> None:
    name, summary = case
    facts = published(name)
    assert [(row.name, row.category) for row, _ in listed(summary, facts)] == [
        (op["name"], op["category"]) for op in facts["top_ops"]
    ]
    assert all(row.attributed for row, _ in listed(summary, facts))


def test_time_and_share_of_the_operators(case: tuple[str, TraceSummary]) -> None:
    name, summary = case
    fractions = SETUPS[name].in_fractions
    for row, op in listed(summary, published(name)):
        if "total_ps" in op:
            assert (row.total_ps, row.count) == (op["total_ps"], op["count"])
            assert row.average_ps == op["total_ps"] / op["count"]
        if "time_pct" in op:
            share = row.share_of_step_frac * (1 if fractions else 100)
            assert printed(share, op["time_pct"], cut=fractions) == op["time_pct"]


def test_bound_and_efficiencies_of_the_operators(case: tuple[str, TraceSummary]) -> None:
    name, summary = case
    unit = 1 if SETUPS[name].in_fractions else 100
    for row, op in listed(summary, published(name)):
        assert row.bound == op["bound"]
        if op["bound"] == "unknown":
            assert op["roofline_pct"] == 0.0
            assert row.roofline_efficiency_frac is None
            continue
        assert printed((row.roofline_efficiency_frac or 0) * unit, op["roofline_pct"]) == op["roofline_pct"]
        for value, key in ((row.compute_efficiency_frac, "compute_pct"), (row.hbm_utilisation_frac, "hbm_bw_pct")):
            if key in op:
                assert printed((value or 0) * unit, op[key]) == op[key]


def test_what_only_fills_the_step_is_unattributed_and_decides_nothing(case: tuple[str, TraceSummary]) -> None:
    _, summary = case
    rest = [row for row in summary.op_table if not row.attributed]
    assert [(row.name, row.category, row.bound) for row in rest] == [(REST, "", "unknown")]
    assert rest == [summary.op_table[-1]]
    assert rest[0].roofline_efficiency_frac is rest[0].compute_efficiency_frac is rest[0].hbm_utilisation_frac is None
    assert kpis_of(summary).unattributed_frac == pytest.approx(rest[0].share_of_step_frac, abs=1e-9)
    assert summary.unclassified_ns == pytest.approx(rest[0].total_ps / 1e3, abs=rest[0].count)


def test_the_rows_add_up_to_the_busy_time(case: tuple[str, TraceSummary]) -> None:
    name, summary = case
    kpis = kpis_of(summary)
    waiting = sum(row.total_ps for row in summary.op_table if row.category == "async-done")
    total = sum(row.total_ps for row in summary.op_table) - waiting
    assert total / 1e12 == pytest.approx(kpis.busy_s * SETUPS[name].device_steps, rel=1e-12)


def test_window_identity_and_what_is_implied(case: tuple[str, TraceSummary]) -> None:
    name, summary = case
    parts = summary.compute_ns + summary.exposed_communication_ns + summary.exposed_copy_ns + summary.idle_ns
    assert parts == summary.window_ns
    assert len(summary.ranks) == SETUPS[name].devices
    assert [len(rank.steps) for rank in summary.ranks] == [SETUPS[name].steps] * SETUPS[name].devices
    assert summary.implied.chip_name is not None
    assert summary.implied.chip_name.value == SETUPS[name].chip.device_type
    assert summary.implied.framework is not None
    assert summary.implied.framework.value == "jax"
    step_s = measured_breakdown(summary).total_s
    assert step_s == pytest.approx(kpis_of(summary).step_time_s, rel=1e-6)
