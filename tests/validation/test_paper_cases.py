"""What has to hold of the showcased cases of PROMPTS: class, gates, the adopted mesh, and that only physics decides."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from projector import catalog
from tests.validation.paper_cases import (
    CASES,
    Outcome,
    answer,
    deciding_term,
    is_mesh,
    published,
    request_of,
    summary_of_case,
    with_all_times,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {case: answer(case) for case in CASES}


def order(outcome: Outcome) -> list[tuple[int, ...]]:
    return [one.plan.layout for one in outcome.result.proposals]


@pytest.mark.parametrize("case", ["C1", "C2", "C3"])
def test_class_as_published_and_the_adopted_mesh_among_the_three(outcomes, case):
    outcome = outcomes[case]
    assert outcome.result.diagnosis.bottleneck == published(case)["expected_class"]
    assert outcome.result.diagnosis.hypothesis == "compute"
    assert outcome.result.diagnosis.overturned == (case != "C1")
    assert outcome.rank in (1, 2, 3)
    assert "of the step" in deciding_term(outcome)


def test_c3_less_traffic_of_the_model_axis_comes_first(outcomes):
    assert outcomes["C3"].rank == 1
    assert deciding_term(outcomes["C3"]).startswith("tp traffic -")


def test_c4_a_core_that_waits_for_unknown_reasons_is_called_memory_by_convention_alone(outcomes):
    diagnosis = outcomes["C4"].result.diagnosis
    assert diagnosis.bottleneck == "memory"
    assert diagnosis.abstained


def test_a5_reading_the_weights_explains_the_step_that_the_operators_leave_open(outcomes):
    diagnosis = outcomes["A5"].result.diagnosis
    assert (diagnosis.bottleneck, diagnosis.cause) == ("memory", "hbm_bandwidth")
    assert "ev-step-floor" in {entry.id for entry in diagnosis.evidence}


def test_c4_the_mesh_that_keeps_its_activations_comes_first_and_the_two_that_double_them_are_refused(outcomes):
    """PROMPTS proposed all three and learned from the compiler that two run out of memory."""
    assert outcomes["C4"].rank == 1
    failing = [
        mesh
        for mesh, what in zip(
            published("C4")["paper_proposals"], published("C4")["paper_proposal_outcome"], strict=True
        )
        if what == "oom_at_compile"
    ]
    assert len(failing) == 2
    for mesh in failing:
        assert not any(is_mesh(one, mesh) for one in outcomes["C4"].result.proposals)
        request = request_of("C4")
        fixed = {"dp": mesh["data"], "cp": mesh["seq"], "tp": mesh["model"], **request["constraints"]["fixed"]}
        alone = answer("C4", {**request, "constraints": {"fixed": fixed}})
        assert alone.result.candidates_feasible == 0 < alone.result.candidates_considered
        refused = [rejection.rule for miss in alone.result.near_misses for rejection in miss.rejections]
        assert set(refused) == {"memory"}


def test_a5_keeps_to_its_two_devices_and_gives_three(outcomes):
    """PROMPTS proposed meshes of four chips for it, and two of them."""
    proposals = outcomes["A5"].result.proposals
    assert len(proposals) == 3
    assert {one.plan.devices for one in proposals} == {2}


@pytest.mark.parametrize("case", ["C1", "C2", "C3"])
def test_a_machine_half_as_fast_gets_the_same_order(outcomes, case):
    slower = answer(case, summary=with_all_times(summary_of_case(case), 2))
    assert order(slower) == order(outcomes[case])
    assert slower.result.diagnosis.bottleneck == outcomes[case].result.diagnosis.bottleneck


@pytest.mark.parametrize("case", ["C1", "C2", "C3"])
def test_other_names_and_another_order_of_axes_give_the_same_order(outcomes, case):
    request = request_of(case)
    names = {"replica": "replicas", "data": "batch", "seq": "sequence", "model": "mdl"}
    renamed = {names[axis]: degree for axis, degree in reversed(request["current_mesh"].items())}
    assert order(answer(case, {**request, "current_mesh": renamed})) == order(outcomes[case])


@pytest.mark.parametrize("case", ["C1", "C2", "C3"])
def test_twice_the_chips_give_three_plans_of_that_machine(case):
    """The mesh grows along data; the answer covers all of the larger machine and moves the same way."""
    request = request_of(case)
    mesh = {**request["current_mesh"], "data": 2 * request["current_mesh"]["data"]}
    chips = 2 * request["cluster"]["chips"]
    workload = {**request["workload"]}
    if "global_batch" in workload:
        workload["global_batch"] *= 2
    larger = {**request, "cluster": {**request["cluster"], "chips": chips}, "current_mesh": mesh, "workload": workload}
    proposals = answer(case, larger).result.proposals
    assert [one.plan.devices for one in proposals] == [chips] * 3


def test_no_case_stands_in_what_we_ship():
    """No note, history row, prompt, calibration or rule outside tests may hold the mesh of a case."""
    found = [
        f"{path.relative_to(ROOT)}: {case}"
        for path in _shipped()
        for case in ("C1", "C2", "C3", "C4")
        if _holds(path, path.read_text(errors="replace"), published(case))
    ]
    assert found == []


def _shipped() -> list[Path]:
    folders = ("agents", "app", "knowledge_base", "projector", "traces", "docs")
    kinds = {".py", ".md", ".json", ".jsonl", ".yaml", ".txt", ".html"}
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]


def _holds(path: Path, text: str, facts: dict[str, Any]) -> bool:
    meshes = [facts["adopted_mesh"], *facts["paper_proposals"], *filter(None, [facts["baseline_mesh"]])]
    if path.suffix == ".jsonl":
        return any(_is_case(json.loads(line), facts, meshes) for line in text.splitlines() if line.strip())
    if path.suffix == ".json":
        return False  # models, chips and accuracy figures: no layouts of runs
    return any(_spelled(mesh, text) for mesh in meshes)


def _is_case(row: dict[str, Any], facts: dict[str, Any], meshes: list[dict[str, int]]) -> bool:
    chip, layout = row.get("chip"), row.get("layout") or {}
    if (chip, row.get("chips")) != (catalog.chip(facts["chip"]).id, facts["chips"]):
        return False
    degrees = tuple(layout.get(axis) or 1 for axis in ("dp", "cp", "tp"))
    asked = [(m.get("replica", 1) * m["data"], m["seq"], m["model"]) for m in meshes]
    return degrees in asked and degrees[1] > 1


def _spelled(mesh: dict[str, int], text: str) -> bool:
    """All degrees of the mesh beside the names of its axes within one line."""
    spelled = [rf"\b(?:{names})\W{{0,4}}{mesh[axis]}\b" for axis, names in SPELLED.items() if mesh[axis] > 1]
    return any(all(re.search(one, line) for one in spelled) for line in text.splitlines()) and len(spelled) > 2


SPELLED = {"data": "data|dp|d", "seq": "seq|cp|s|sequence", "model": "model|mdl|tp|m"}
