"""Own rules go before the built-in ones, and travel with a trace wherever it is classified."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from rule_examples import PATCHWORK, entry, rules_of

from tests.unit.traces.trace_examples import Event, document, external, kernel, launch, memcpy, op, trace_of
from traces.rules import BUILT_IN, KernelRules, rules_with
from traces.summary import read_summary, summarise
from traces.summary_types import TraceSummary


def summary_of(rules: KernelRules, *events: Event) -> TraceSummary:
    return summarise([replace(trace_of(*events), rules=rules)])


def decided(summary: TraceSummary) -> dict[str, tuple[str, str]]:
    return {one.name: (one.kind, one.rule) for one in summary.top_kernels}


def test_without_own_rules_the_built_in_ones_are_in_force() -> None:
    assert rules_with(()) is BUILT_IN
    assert trace_of(kernel("nvjet", 0, 1)).rules is BUILT_IN


def test_an_unknown_kernel_becomes_known(tmp_path: Path) -> None:
    events = [kernel("patchwork_pack_kernel<8>(int)", 0, 5), kernel("nvjet_x", 9, 1)]
    assert decided(summary_of(BUILT_IN, *events)) == {
        "patchwork_pack_kernel<8>(int)": ("other", "unclassified"),
        "nvjet_x": ("gemm", "name rule gemm/vendor"),
    }
    after = summary_of(rules_of(tmp_path, PATCHWORK), *events)
    assert decided(after) == {
        "patchwork_pack_kernel<8>(int)": ("moe", "own rule moe/patchwork"),
        "nvjet_x": ("gemm", "name rule gemm/vendor"),
    }
    assert after.unclassified_ns == 0


def test_an_own_rule_decides_against_every_built_in_table(tmp_path: Path) -> None:
    """Built in, the name is an all-reduce, for communication is asked before computation."""
    name = "fused_gemm_allreduce_free_kernel"
    assert BUILT_IN.communication_of(name) == "all_reduce"
    rules = rules_of(tmp_path, entry(pattern="allreduce_free", examples=[name]))
    assert (rules.communication_of(name), rules.kind_of(name)) == (None, "gemm")
    assert rules.communication_of("ncclDevKernel_AllReduce_Sum_f32") == "all_reduce"


def test_none_closes_one_table_and_leaves_the_others(tmp_path: Path) -> None:
    name = "fused_gemm_allreduce_free_kernel"
    rules = rules_of(
        tmp_path, entry(table="communication", meaning="none", id="free", pattern="allreduce_free", examples=[name])
    )
    assert (rules.communication_of(name), rules.kind_of(name)) == (None, "gemm")


def test_an_own_rule_goes_before_the_operator_around_the_kernel(tmp_path: Path) -> None:
    events = [
        op("vllm::moe_forward", 0, 9, **external(1)),
        launch(1, 1, **external(1)),
        kernel("own_kernel", 5, 1, correlation=1, **external(1)),
    ]
    assert decided(summary_of(BUILT_IN, *events)) == {"own_kernel": ("moe", "enclosing_op vllm::moe_forward")}
    assert decided(summary_of(rules_of(tmp_path, entry()), *events)) == {"own_kernel": ("gemm", "own rule gemm/own")}


def test_what_the_profiler_wrote_beside_a_kernel_goes_before_any_rule(tmp_path: Path) -> None:
    event = kernel("own_kernel", 0, 1, **{"Collective name": "allreduce", "Group size": 8})
    assert decided(summary_of(rules_of(tmp_path, entry()), event)) == {
        "own_kernel": ("communication", "collective_args")
    }


def test_own_rules_of_host_operators(tmp_path: Path) -> None:
    rules = rules_of(
        tmp_path,
        entry(
            table="host_communication", meaning="all_to_all", id="swap", pattern="^ours::swap", examples=["ours::swap"]
        ),
    )
    assert rules.host_communication_of("ours::swap") == "all_to_all"
    inside = [op("ours::swap", 0, 9), launch(1, 1), kernel("mystery", 20, 1, correlation=1)]
    (line,) = summary_of(rules, *inside).collectives
    assert line.collective == "all_to_all"


def test_rules_travel_cheaply_and_stay_one_object(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, PATCHWORK)
    assert rules.kind_of("patchwork_pack_kernel") == "moe"
    travelled = pickle.dumps(rules)
    assert len(travelled) < 1_000
    assert pickle.loads(travelled) is rules  # noqa: S301 - bytes of our own
    assert pickle.loads(pickle.dumps(BUILT_IN)) is BUILT_IN  # noqa: S301 - bytes of our own


def test_names_are_decided_once_and_memory_is_bounded() -> None:
    rules = KernelRules()
    first = rules.of_kernel("nvjet_once")
    assert rules.of_kernel("nvjet_once") is first
    for number in range(40_000):
        rules.of_operator(f"#{number}")
    assert len(rules._operators) <= 32_768


@pytest.mark.parametrize("workers", [1, 2])
def test_files_are_read_with_own_rules(tmp_path: Path, workers: int) -> None:
    import json

    rules = rules_of(tmp_path, PATCHWORK)
    for rank in range(2):
        events = [kernel("patchwork_unpack_kernel", 0, 5), kernel("nvjet", 6, 1, stream=8 + rank)]
        info = {"rank": rank, "world_size": 2}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(document(*events, distributedInfo=info)))
    paths = [tmp_path / f"rank{rank}.json" for rank in range(2)]
    summary = read_summary(paths, rules=rules, workers=workers)
    assert decided(summary)["patchwork_unpack_kernel"] == ("moe", "own rule moe/patchwork")
    assert "own rule" not in str(read_summary(paths, workers=workers))


def test_one_name_decided_in_several_ways_says_how_many() -> None:
    events = [
        op("aten::mm", 0, 9, **external(1)),
        op("aten::bmm", 10, 9, **external(2)),
        kernel("mystery", 30, 5, **external(1)),
        kernel("mystery", 40, 2, **external(2)),
        memcpy(50, 1),
    ]
    assert decided(summary_of(BUILT_IN, *events)) == {
        "mystery": ("gemm", "enclosing_op aten::mm and 1 more"),
        "Memcpy DtoD (Device -> Device)": ("copy", "category"),
    }


def test_a_kind_that_the_operator_refines_says_so() -> None:
    events = [op("vllm::moe_forward", 0, 9, **external(1)), kernel("bmm_MxE4m3", 30, 5, **external(1))]
    assert decided(summary_of(BUILT_IN, *events)) == {
        "bmm_MxE4m3": ("moe", "name rule gemm/gemm, moe by the operator around it")
    }
