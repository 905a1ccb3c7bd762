"""The cases of PROMPTS as XLA profiles (synthetic, from the published figures) through the reader and the analyzer.

The rules know no case. What they give where the published answer rests on more than a profile shows is stated here too.
"""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "xplane"))

from published_cases import profile, published

from agents.advisors.rules import RulesAdvisor
from agents.findings import Diagnosis
from agents.planning.analyzer import diagnose
from agents.planning.graph import run_plan
from agents.planning.state import NoKnowledge
from agents.request import PlanRequest
from traces.summary import read_summary


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory) -> dict[str, Diagnosis]:
    folder = tmp_path_factory.mktemp("profiles")
    found = {}
    for case in ("C1", "C2", "C3", "C4", "A5"):
        path = folder / f"{case}.xplane.pb"
        path.write_bytes(profile(case))
        found[case] = diagnose(read_summary([path]))
    return found


@pytest.mark.parametrize("case", ["C1", "C2", "C3"])
def test_class_and_hypothesis_are_the_published_ones(diagnosed, case):
    facts, diagnosis = published(case), diagnosed[case]
    assert diagnosis.hypothesis == facts["kpi_hypothesis"]
    assert diagnosis.bottleneck == facts["expected_class"]
    assert diagnosis.overturned == (case != "C1")


@pytest.mark.parametrize("case", ["C1", "C2", "C3", "C4", "A5"])
def test_no_case_is_called_certain(diagnosed, case):
    """The published operators are 1 to 12 % of each step: no profile this thin may give a certain verdict."""
    assert diagnosed[case].ambiguous


@pytest.mark.parametrize("case", ["C1", "C2", "C3"])
def test_the_rest_of_the_step_is_in_no_score(diagnosed, case):
    diagnosis = diagnosed[case]
    assert sum(diagnosis.scores.values()) < 0.12
    assert any("could overturn the verdict" in limit for limit in diagnosis.limits)
    # a table of kinds still lists it, among kernels that nobody could classify
    assert not any("rest of the step" in entry.claim for entry in diagnosis.evidence)


def test_c2_collectives_that_keep_hbm_busy_are_told_from_others(diagnosed):
    evidence = {entry.id: entry.value for entry in diagnosed["C2"].evidence}
    assert evidence["ev-rows-hbm-collectives"] == pytest.approx(0.0737, abs=0.0005)
    assert evidence["ev-rows-communication"] == pytest.approx(0.0015, abs=0.0005)
    assert "ev-rows-hbm-collectives" not in {entry.id for entry in diagnosed["C3"].evidence}


def test_c3_counts_every_collective_and_flags_the_figure_that_does_not(diagnosed):
    evidence = {entry.id: entry for entry in diagnosed["C3"].evidence}
    assert evidence["ev-kpi-all-reduce"].value == pytest.approx(0.0535, abs=0.0001)
    assert evidence["ev-kpi-communication"].value == pytest.approx(0.0796, abs=0.0001)
    assert "incomplete" in evidence["ev-kpi-all-reduce"].claim


def test_c4_an_idle_core_is_not_given_a_class_it_does_not_show(diagnosed):
    """Published: memory, for capacity reasons outside the profile. Idle for 86 % of the step, it shows none."""
    diagnosis = diagnosed["C4"]
    assert diagnosis.cause == "unknown"
    assert "what for cannot be told" in diagnosis.summary
    evidence = {entry.id: entry for entry in diagnosis.evidence}
    assert evidence["ev-kpi-duty-cycle"].value == pytest.approx(0.1442)
    assert "incomplete" in evidence["ev-kpi-all-reduce"].claim


def test_a5_with_two_percent_identified_the_headline_decides(diagnosed):
    """Published: memory, from operators of unknown weight. Here none of them takes a twentieth of the step."""
    assert any("the headline decides" in limit for limit in diagnosed["A5"].limits)


def test_c2_the_layout_that_keeps_weights_whole_is_named(tmp_path):
    """model 1: every chip holds the whole model. Here with a stand-in model, as the paper names none."""
    path = tmp_path / "C2.xplane.pb"
    path.write_bytes(profile("C2"))
    request = PlanRequest.model_validate(
        {
            "workload": {"model": "llama-3.2-1b", "phase": "training", "seq_len": 8192, "global_batch": 64},
            "cluster": {"chip": "tpu-v6e", "chips": 16},
            "current_plan": {"phase": "training", "dp": 4, "cp": 4, "grad_accum": 16},
        }
    )
    result = run_plan(request, read_summary([path]), knowledge=NoKnowledge(), advisor=RulesAdvisor())
    layout = next(entry for entry in result.evidence if entry.id == "ev-layout")
    assert "each of the 16 devices holds, reads and updates the whole model" in layout.claim
    assert len(result.proposals) == 3
