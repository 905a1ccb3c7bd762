"""Sequences found in the sample traces, each looked at by hand, and no others; two sentences of why for each file.

Relayouts: cuDNN's NCHW/NHWC kernels (A100 DDP), MIOpen's batched transposes around convolutions (MI210, MI300 ResNet),
copies of `contiguous` whose strides differ before and behind (Qwen), XLA's transpose fusions (JAX), FP8 transposes
around products (DeepSeek). Tiny kernels: eager PyTorch with 20 to 250 us a launch.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.planning.analyzer import diagnose
from projector.errors import TraceError
from tests.validation.why import why
from traces.summary import read_summary
from traces.summary_types import TraceSummary

SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared"))
pytestmark = [pytest.mark.shared, pytest.mark.skipif(not SHARED.is_dir(), reason=f"no samples at {SHARED}")]

FOUND = {
    "deepseek/train.json": {"relayout_copies": 0.005},
    "hta/nccl_parser_config/nccl_data.json.gz": {"tiny_kernels": 0.084, "relayout_copies": 0.021},
    "hta/trace_diff/control/control.json.gz": {"tiny_kernels": 0.013, "relayout_copies": 0.012},
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": {"relayout_copies": 0.056, "tiny_kernels": 0.014},
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz": {"tiny_kernels": 0.838},
    "tracelens/mi210/gpu_only_trace/gpu_only_trace.json.gz": {"relayout_copies": 0.137},
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": {"relayout_copies": 0.031},
    "tracelens/mi300/jax_conv_minimal_08/tw003.xplane.pb": {"relayout_copies": 0.018},
    "tracelens/mi300/jax_conv_minimal_legacy/chi-mi300x-013.ord.vultr.cpe.ice.amd.com.xplane.pb": {
        "relayout_copies": 0.047
    },
    "tracelens/mi300/resnet_act_checkpoint.json.gz": {"relayout_copies": 0.062},
}


def samples() -> Iterator[tuple[str, TraceSummary]]:
    """Every sample that can be read, alone."""
    root = SHARED / "traces"
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".md"):
        try:
            yield str(path.relative_to(root)), read_summary([path], workers=1)
        except TraceError:
            continue


def test_patterns_of_the_samples() -> None:
    found = {}
    numbers = 0
    for name, summary in samples():
        if summary.patterns:
            found[name] = {one.kind: round(one.exposed_frac, 3) for one in summary.patterns}
        sentences = why(diagnose(summary))
        assert all(re.search(r"\d", sentence) and sentence.endswith(".") for sentence in sentences), name
        numbers += 1
    assert found == FOUND
    assert numbers == 51
