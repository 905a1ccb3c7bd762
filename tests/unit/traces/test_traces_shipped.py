"""The traces that come with the project: figures worked out once and checked against an independent calculation.

b200_vllm_eager and a100_ddp_resnet are real (see tests/data/traces/README.md). deepep_overlap was written by hand for
this test: kernels named as DeepEP names them, on a stream of their own, nearly all under compute.
"""

from pathlib import Path

import pytest

from traces.read import read_traces
from traces.summary import measured_breakdown, read_summary, summarise
from traces.summary_types import TraceSummary

DATA = Path(__file__).parents[2] / "data" / "traces"


@pytest.fixture(scope="module")
def b200() -> TraceSummary:
    return read_summary([DATA / "b200_vllm_eager.json.gz"])


@pytest.fixture(scope="module")
def ddp() -> TraceSummary:
    return read_summary([DATA / "a100_ddp_resnet.json.gz"])


def test_shares_of_the_b200_trace(b200: TraceSummary) -> None:
    assert b200.window_ns == 84_487_178
    assert b200.compute_ns == 8_652_137
    assert b200.communication_ns == b200.exposed_communication_ns == 2_141_501
    assert b200.copy_ns == b200.exposed_copy_ns == 802_844
    assert b200.idle_ns == 72_890_696
    assert b200.unclassified_ns == 0
    assert b200.warnings == ()


def test_communication_of_the_b200_trace_is_more_than_its_one_nccl_kernel(b200: TraceSummary) -> None:
    lines = {line.collective: line for line in b200.collectives}
    assert (lines["all_gather"].count, lines["all_gather"].total_ns, lines["all_gather"].group_size) == (1, 21_953, 8)
    assert lines["all_gather"].message_bytes == 201_088 * 2
    assert (lines["all_reduce"].count, lines["all_reduce"].total_ns) == (73, 2_119_548)
    assert lines["all_reduce"].message_bytes is not None
    assert {line.axis for line in b200.collectives} == {"tp"}
    by = {one.by for one in b200.classification if one.event_class == "communication"}
    assert by == {"collective_args", "enclosing_op"}


def test_the_job_behind_the_b200_trace(b200: TraceSummary) -> None:
    implied = b200.implied
    assert implied.chip_name is not None
    assert (implied.chip_name.value, implied.chip_name.confidence) == ("NVIDIA B200", 1.0)
    assert implied.devices_per_host is not None
    assert implied.devices_per_host.value == 8
    assert implied.hbm_bytes is not None
    assert implied.hbm_bytes.value == 191_503_138_816
    assert implied.world_size is not None
    assert implied.world_size.value == 8
    assert implied.tp is not None
    assert implied.tp.value == 8
    assert implied.phase is not None
    assert implied.phase.value == "serving"
    assert implied.is_transformer_lm is not None
    assert implied.is_transformer_lm.value
    assert implied.framework is not None
    assert implied.framework.value == "vllm"
    assert len(implied.groups) == 15
    assert implied.shapes.model_dump(exclude_defaults=True, exclude={"basis", "confidences"}) == {
        "hidden_size": 2880,
        "layers": 36,
        "vocab_shard": 25136,
        "heads_per_rank": 8,
        "kv_heads_per_rank": 1,
        "head_dim": 64,
        "experts": 128,
        "tokens": 888,
    }


def test_the_b200_trace_waits_for_its_host(b200: TraceSummary) -> None:
    assert b200.launch_bound_frac is not None
    assert b200.launch_bound_frac > 0.99
    (step,) = b200.ranks[0].steps
    assert step.name == "execute_context_1(888_788544)_generation_0(0)"
    assert step.window_ns == 84_044_109
    breakdown = measured_breakdown(b200)
    assert breakdown.total_s == pytest.approx(84.044109e-3)
    assert {one.kind for one in breakdown.by_kind} == {"moe", "gemm", "attention", "elementwise", "norm", "quantise"}


def test_shares_of_the_ddp_trace(ddp: TraceSummary) -> None:
    assert ddp.window_ns == 660_551_005
    assert ddp.compute_ns == 115_655_847
    assert (ddp.communication_ns, ddp.exposed_communication_ns) == (46_876_493, 39_559_468)
    assert (ddp.copy_ns, ddp.exposed_copy_ns) == (2_653_498, 2_284_699)
    assert ddp.idle_ns == 503_050_991
    assert [step.name for step in ddp.ranks[0].steps] == ["ProfilerStep#4", "ProfilerStep#5", "ProfilerStep#6"]


def test_the_job_behind_the_ddp_trace(ddp: TraceSummary) -> None:
    implied = ddp.implied
    assert implied.phase is not None
    assert implied.phase.value == "training"
    assert implied.dp is not None
    assert (implied.dp.value, implied.dp.confidence) == (2, 0.9)
    assert implied.is_transformer_lm is not None
    assert not implied.is_transformer_lm.value
    assert implied.framework is not None
    assert implied.framework.value == "pytorch_ddp"
    assert implied.shapes.hidden_size is None
    assert [(line.collective, line.count, line.group_size, line.axis) for line in ddp.collectives] == [
        ("all_reduce", 15, 2, "dp"),
        ("broadcast", 6, 2, "dp"),
    ]


def test_deepep_kernels_are_communication_though_no_name_says_nccl() -> None:
    summary = read_summary([DATA / "small" / "deepep_overlap.json"])
    assert summary.window_ns == 1_050_000
    assert summary.communication_ns == 1_000_000
    assert summary.exposed_communication_ns == 20_000
    assert summary.compute_ns == 1_005_000
    assert (summary.exposed_copy_ns, summary.idle_ns, summary.unclassified_ns) == (5_000, 20_000, 0)
    assert [line.collective for line in summary.collectives] == ["expert_dispatch", "expert_combine", "expert_notify"]
    assert {line.axis for line in summary.collectives} == {"ep"}
    implied = summary.implied
    assert implied.ep is not None
    assert (implied.ep.value, implied.ep.confidence) == (64, 0.5)
    assert implied.tp is not None
    assert implied.tp.value == 1


@pytest.mark.parametrize("name", ["b200_vllm_eager.json.gz", "a100_ddp_resnet.json.gz", "small/deepep_overlap.json"])
def test_evidence_beyond_names_changes_no_figure_of_these(name: str) -> None:
    traces = read_traces([DATA / name])
    by_evidence, by_names = summarise(traces), summarise(traces, evidence="names")
    for figure in ("window_ns", "compute_ns", "communication_ns", "exposed_communication_ns", "copy_ns", "idle_ns"):
        assert getattr(by_evidence, figure) == getattr(by_names, figure)
