"""Work of real traces: per-call FLOP and rates as another tool derives them from the same shapes, and nothing too fast.

Reference: TraceLens at 171dd74721ca, the CSV files beside its traces (GFLOPS_first, TB/s_mean of GEMM, SDPA_fwd,
BinaryElementwise, RMSNorm_fwd, UnaryElementwise). Its rates are means over calls and ours total work over total time,
so the two differ a little where calls do. It lists an operator and the operator inside it both, we count the inner one;
it counts the addition of a bias, we do not; it halves causal attention, we count the diagonal, 1 / 559 more.
"""

import os
from pathlib import Path

import pytest

from projector import catalog
from traces.read import read_traces
from traces.summary import summarise
from traces.summary_types import TraceSummary
from traces.work.placed import place_work
from traces.work_types import OperatorWork

TRACES = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared")) / "traces"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not TRACES.is_dir(), reason=f"no samples at {TRACES}; set SHARDWISE_SHARED"),
]

QWEN = "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
PREFILL = "tracelens/inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz"
CHIPS = {
    f"tracelens/h100/{QWEN}": "h100-sxm",
    f"tracelens/mi300/{QWEN}": "mi300x",
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz": "h100-sxm",
    "tracelens/mi300/resnet_act_checkpoint.json.gz": "mi300x",
    "tracelens/torch_compile_triton/trace.json.gz": "mi300x",
    "tracelens/b200/eager_trace.json.gz": "b200",
    PREFILL: "mi300x",
    "hta/trace_diff/control/control.json.gz": "a100-80-sxm",
    "hta/negative_queue_length_values_check/rank0.json.gz": "a100-80-sxm",
}


def placed(name: str) -> TraceSummary:
    return place_work(summarise(read_traces([TRACES / name])), catalog.chip(CHIPS[name]))


@pytest.mark.parametrize("name", sorted(CHIPS))
def test_nothing_is_faster_than_its_chip(name: str):
    summary = placed(name)
    assert sum(one.total_ns for one in summary.work) == sum(one.total_ns for one in summary.kernel_classes)
    for one in summary.work:
        assert one.implausible == ""
        assert (one.peak_flop_frac or 0.0) <= 1
        assert (one.peak_bytes_frac or 0.0) <= 1


def operator(summary: TraceSummary, name: str, shapes: str) -> OperatorWork:
    (found,) = (one for work in summary.work for one in work.operators if one.operator == name and one.shapes == shapes)
    return found


@pytest.mark.parametrize(
    ("trace", "name", "shapes", "gflop", "terabytes_per_s"),
    [
        (PREFILL, "aten::mm", "[15360, 4096] [4096, 24576]", 3092.37645312, 0.159899),
        (PREFILL, "aten::mm", "[15360, 12288] [12288, 4096]", 1546.18822656, 0.227844),
        (PREFILL, "aiter::add_rmsnorm", " ".join(["[15360, 4096]"] * 4 + ["[4096]"]), None, 4.16821),
        (PREFILL, "sgl_kernel::silu_and_mul", "[15360, 12288] [15360, 24576]", None, 2.47006),
        (f"tracelens/h100/{QWEN}", "aten::mm", "[8944, 1024] [1024, 2816]", 51.581550592, 0.881486),
        (f"tracelens/h100/{QWEN}", "aten::addmm", "[1024] [8944, 1024] [1024, 1024]", 18.756927488, 1.197520),
        (f"tracelens/h100/{QWEN}", "aten::add", "[16, 16, 559, 64] [16, 16, 559, 64]", 0.009158656, 1.578555),
        (f"tracelens/h100/{QWEN}", "aten::mul", "[16, 559, 1024] [16, 559, 1]", 0.009158656, 2.232890),
        (
            f"tracelens/h100/{QWEN}",
            "aten::_flash_attention_forward",
            " ".join(["[16, 559, 16, 64]"] * 3),
            10.239377408 * 560 / 559,
            0.646077,
        ),
    ],
)
def test_work_is_what_another_tool_derives(
    trace: str, name: str, shapes: str, gflop: float | None, terabytes_per_s: float
):
    found = operator(placed(trace), name, shapes)
    if gflop is not None:
        assert found.flop == pytest.approx(gflop * 1e9, rel=1e-9)
    assert found.moved_bytes * found.calls / found.total_ns / 1000 == pytest.approx(terabytes_per_s, rel=0.03)
