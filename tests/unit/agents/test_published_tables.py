"""The published figures of PROMPTS' cases as its appendix has them: a headline and five operators."""

import json
from pathlib import Path
from typing import Any

import pytest
from planning_examples import summary_of

from agents.findings import Diagnosis
from agents.planning.analyzer import diagnose
from traces.xplane.op_table import Kpis, OpRow

FACTS = Path(__file__).parents[2] / "data" / "prompts_cases.json"
COLLECTIVES = ("all-reduce", "all-gather", "all-reduce-scatter", "collective-permute", "async collective")


def published(case: str) -> dict[str, Any]:
    return next(one for one in json.loads(FACTS.read_text())["cases"] if one["id"] == case)


def row(op: dict[str, Any], step_ps: int, unit: float) -> OpRow:
    """A published operator; unit: what its percentages are fractions of."""
    share = op["time_pct"] * unit
    talks = any(word in op["name"] or word in op["category"] for word in COLLECTIVES)
    efficiency = op["roofline_pct"] * unit
    return OpRow(
        name=op["name"],
        category=op["category"],
        event_class="communication" if talks and "matmul" not in op["name"] else "compute",
        total_ps=round(share * step_ps),
        count=op.get("count", 1),
        average_ps=share * step_ps,
        share_of_step_frac=share,
        bound=op["bound"],
        roofline_efficiency_frac=efficiency if op["bound"] != "unknown" else None,
        hbm_utilisation_frac=efficiency if op["bound"] == "hbm" else None,
        attributed=True,
    )


def diagnosed(case: str) -> Diagnosis:
    facts = published(case)
    kpis, unit = facts["kpis"], 1.0 if case == "C3" else 0.01
    step_ms = kpis["step_time_ms"]
    duty = kpis["duty_cycle_pct"] / 100
    talking = kpis.get("comm_pct", kpis.get("all_reduce_only_comm_pct")) / 100
    rows = tuple(row(op, round(step_ms * 1e9), unit) for op in facts["top_ops"])
    reducing = sum(one.share_of_step_frac for one in rows if one.category == "all-reduce")
    listed = sum(one.share_of_step_frac for one in rows if one.event_class == "communication")
    headline = Kpis(
        devices=1,
        steps=1,
        step_time_s=step_ms / 1000,
        window_s=step_ms / 1000,
        busy_s=duty * step_ms / 1000,
        duty_cycle_frac=duty,
        communication_s=talking * step_ms / 1000,
        communication_frac=talking,
        all_reduce_s=talking * step_ms / 1000,
        all_reduce_only_frac=talking if "all_reduce_only_comm_pct" in kpis else reducing,
        all_reduce_only_incomplete=listed > reducing,
        unattributed_frac=0.0,
        costed_frac=1.0,
        basis="published",
    )
    summary = summary_of(
        window_ms=10_000, compute_ms=round(10_000 * (duty - talking)), exposed_ms=round(10_000 * talking)
    )
    return diagnose(summary.model_copy(update={"op_table": rows, "kpis": headline}))


@pytest.mark.parametrize("case", ["C1", "C2", "C3", "C4"])
def test_five_operators_and_a_headline_give_the_published_class(case):
    diagnosis, facts = diagnosed(case), published(case)
    assert diagnosis.bottleneck == facts["expected_class"]
    assert diagnosis.overturned == (case in ("C2", "C3"))
    assert diagnosis.ambiguous


@pytest.mark.parametrize(("case", "covered"), [("C1", 0.0547), ("C2", 0.1151), ("C3", 0.0775)])
def test_how_little_five_operators_cover_is_said(case, covered):
    """Rows, idle time, and all-reduce that only the headline counts: 2.63 + 0.27 + 2.57; 11.32 + 0.05 + 0.15 (others
    than plain all-reduce); 4.80 + 0.00 + (5.35 - 2.40).
    """
    diagnosis = diagnosed(case)
    assert diagnosis.categories_cover_frac == pytest.approx(covered, abs=0.001)
    assert any("could overturn the verdict" in limit for limit in diagnosis.limits)


def test_what_overturns_the_headline_is_said():
    assert "HBM limits take 9.0 % of the step, the costliest 'all-reduce'" in diagnosed("C2").overturned_by
    assert diagnosed("C3").overturned_by.startswith("Of what is identified, collectives that wait for links or peers")
    assert "the headline alone says that the device computes" in diagnosed("C3").hypothesis_basis


def test_a_headline_of_plain_all_reduce_is_called_incomplete():
    for case in ("C3", "C4"):
        assert "incomplete" in diagnosed(case).hypothesis_basis


def test_c4_waits_and_says_so_first():
    diagnosis = diagnosed("C4")
    assert diagnosis.abstained
    assert diagnosis.summary.startswith("The device waits for 85.6 %")
    assert any("class memory is a convention" in limit for limit in diagnosis.limits)
