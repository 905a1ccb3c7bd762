"""The measures of the traces that come with the project, and of the sample folder beside it."""

import os
from pathlib import Path

import pytest

from traces.measure_types import CopyTime, IdleSplit
from traces.summary import read_summary

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "traces"
SHARED = Path(os.environ.get("SHARDWISE_SHARED", ROOT.parent / "shared")) / "traces"


def test_a_vllm_step_that_launches_kernel_by_kernel() -> None:
    summary = read_summary([DATA / "b200_vllm_eager.json.gz"])
    assert summary.idle == IdleSplit(
        host_bound_ns=70_521_712,
        launch_gap_ns=2_368_984,
        dependency_ns=0,
        unknown_ns=0,
        input_ns=0,
        pause_ns=9_072_505,
    )
    assert summary.copies == (
        CopyTime(
            direction="device_to_device", count=146, total_ns=781_500, exposed_ns=781_500, copied_bytes=771_323_904
        ),
        CopyTime(direction="host_to_device", count=15, total_ns=21_344, exposed_ns=21_344, copied_bytes=33_109),
    )
    (phase,) = summary.serving_phases
    assert (phase.phase, phase.steps, phase.prompts, phase.prefill_tokens) == ("prefill", 1, 1, 888)
    statistics = summary.ranks[0].step_statistics
    assert statistics is not None
    assert (statistics.marks, statistics.measured, statistics.conclusive) == ("serving iterations", 1, False)


def test_three_even_steps_of_data_parallel_training() -> None:
    summary = read_summary([DATA / "a100_ddp_resnet.json.gz"])
    idle = summary.idle
    assert idle is not None
    assert idle.host_bound_ns / summary.idle_ns == pytest.approx(0.988, abs=1e-3)
    assert (idle.dependency_ns, idle.unknown_ns) == (0, 0)
    statistics = summary.ranks[0].step_statistics
    assert statistics is not None
    assert statistics.conclusive
    assert statistics.window == "ProfilerStep#4 to #6 (3 steps)"
    assert statistics.mean_ns == pytest.approx(220_184_000, rel=1e-5)
    assert summary.ranks[0].bubble is None
    assert summary.serving_phases == ()


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no sample folder beside the project")
@pytest.mark.parametrize(
    ("file", "host", "launch", "dependency", "unknown"),
    [
        ("kineto/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz", 0.958, 0.042, 0, 0),
        ("hta/nccl_parser_config/nccl_data.json.gz", 0.988, 0.012, 0, 0),
        ("hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 0.165, 0.835, 0, 0),
        ("hta/negative_queue_length_values_check/rank0.json.gz", 0.014, 0.027, 0.843, 0.116),
        ("hta/trace_filter/sampled_rank-0.json.gz", 0, 0, 0, 1),
        ("tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz", 0.001, 0, 0.999, 0),
        ("tracelens/inference/vllm_prefilldecode_piecewise/graph_execution.json.gz", 0, 1, 0, 0),
        ("tracelens/mi300/resnet_act_checkpoint.json.gz", 0, 0.111, 0, 0.889),
        ("tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 0.699, 0.278, 0.021, 0.003),
    ],
)
def test_causes_of_idle_time_of_real_traces(
    file: str, host: float, launch: float, dependency: float, unknown: float
) -> None:
    summary = read_summary([SHARED / file])
    split = summary.idle
    assert split is not None
    parts = (split.host_bound_ns, split.launch_gap_ns, split.dependency_ns, split.unknown_ns)
    assert sum(parts) == summary.idle_ns
    shares = [part / summary.idle_ns for part in parts]
    assert shares == pytest.approx([host, launch, dependency, unknown], abs=1e-3)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no sample folder beside the project")
def test_input_that_nobody_loads_ahead_is_what_the_device_waits_for() -> None:
    """The data loader of this run has no worker: six batches are read while the device idles."""
    summary = read_summary([SHARED / "kineto/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz"])
    assert summary.idle is not None
    assert summary.idle.input_ns / summary.idle_ns == pytest.approx(0.598, abs=1e-3)
    assert any("copies of pageable host memory" in told for told in summary.warnings)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no sample folder beside the project")
def test_steps_and_phases_of_real_traces() -> None:
    optimizer = read_summary([SHARED / "param/resnet_kineto.json.gz"]).ranks[0].step_statistics
    assert optimizer is not None
    assert (optimizer.marks, optimizer.measured, optimizer.conclusive) == ("optimizer steps", 29, False)
    mixed = read_summary([SHARED / "tracelens/inference/vllm_prefilldecode_piecewise/graph_execution.json.gz"])
    (phase,) = mixed.serving_phases
    assert (phase.phase, phase.requests_max, phase.prompts, phase.prefill_tokens) == ("mixed", 46, 9, 8155)
    assert (phase.reached_tokens, phase.decoding_max, phase.decode_tokens) == (8430, 37, 37)
