"""Layouts that are illegal or run out of memory, planted and published: every one is refused, with the rule named."""

import json
from pathlib import Path

import pytest

from projector import catalog
from projector.legality import check, memory_rejection
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

FILE = Path(__file__).parents[2] / "data" / "refused_layouts.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_it_is_refused_by_the_rule_it_breaks(case):
    hardware, model = catalog.chip(case["chip"]), catalog.architecture(case["model"])
    plan, cluster = ParallelismPlan(**case["plan"]), ClusterSpec(chip=hardware.id, chips=case["chips"])
    workload = WorkloadSpec(
        model=model.name,
        seq_len=case["seq_len"],
        global_batch=case["global_batch"],
        precision=case.get("precision", "bf16"),
    )
    broken = check(plan, workload, model, cluster, hardware)
    rejections = broken or (memory_rejection(project(plan, workload, model, cluster, hardware)),)
    assert any(one is not None and case["refused_by"] in one.text for one in rejections), rejections


def test_both_kinds_and_both_origins_are_among_them():
    assert {case["origin"] for case in CASES} == {"planted", "published"}
    by_memory = [case for case in CASES if case["refused_by"] == "peak memory a chip"]
    assert len(by_memory) >= 5
    assert len(CASES) - len(by_memory) >= 10
