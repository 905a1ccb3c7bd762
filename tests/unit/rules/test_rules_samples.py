"""Names and sizes of the sample traces, where the truth is known. Run with `make check-samples`."""

import os
from pathlib import Path

import pytest

from projector.errors import ShardwiseError
from traces.kernel_table import unpacked
from traces.rank import RankParts, rank_parts
from traces.read import read_trace

pytestmark = pytest.mark.shared

SAMPLES = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[4] / "shared")) / "traces"

# Kernels of these are named for nothing: torch.compile numbered them, or a user wrote them.
UNNAMED_AT_MOST = {
    "hta/negative_queue_length_values_check/rank0.json.gz": 0.016,
    "nsys/nsight-2025.5.2.sqlite": 0.9,
}
QWEN_05B = {
    "hidden_size": 1024,
    "layers": 24,
    "vocab_shard": 151_936,
    "heads_per_rank": 16,
    "kv_heads_per_rank": 16,
    "head_dim": 64,
    "intermediate_shard": 2816,
    "sequence_length": 559,
    "micro_batch": 16,
}
SMALL = {
    "hidden_size": 128,
    "layers": 2,
    "vocab_shard": 512,
    "heads_per_rank": 4,
    "head_dim": 32,
    "intermediate_shard": 512,
    "sequence_length": 64,
    "micro_batch": 4,
}
TRUTH = {
    "tracelens/b200/eager_trace.json.gz": (
        {"world_size": 8, "tp": 8, "dp": 1, "pp": 1, "phase": "serving", "framework": "vllm", "weight_dtype": "fp4"},
        {
            "hidden_size": 2880,
            "layers": 36,
            "vocab_shard": 25_136,
            "heads_per_rank": 8,
            "kv_heads_per_rank": 1,
            "head_dim": 64,
            "experts": 128,
        },
    ),
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": ({"dtype": "bf16"}, QWEN_05B),
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": ({"dtype": "bf16"}, QWEN_05B),
    "tracelens/inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz": (
        {"world_size": 1, "phase": "serving", "framework": "sglang", "dtype": "bf16"},
        {
            "hidden_size": 4096,
            "layers": 36,
            "vocab_shard": 151_936,
            "heads_per_rank": 32,
            "kv_heads_per_rank": 8,
            "head_dim": 128,
            "intermediate_shard": 12_288,
        },
    ),
    "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz": ({"framework": "sglang"}, {"layers": 36}),
    "tracelens/inference/vllm_prefilldecode_piecewise/graph_execution.json.gz": (
        {"framework": "vllm", "phase": "serving"},
        {"hidden_size": 2880, "layers": 24, "vocab_shard": 201_088, "heads_per_rank": 64, "kv_heads_per_rank": 8},
    ),
    "deepseek/train.json": ({"world_size": 64, "ep": 64, "tp": 1, "phase": "training", "dtype": "fp8"}, {}),
    "generated/ddp_rank0.pt.trace.json.gz": ({"world_size": 2, "dp": 2, "fsdp": 1, "tp": 1}, SMALL),
    "generated/fsdp2_rank0.pt.trace.json.gz": ({"world_size": 2, "dp": 2, "fsdp": 2, "tp": 1}, SMALL),
    "generated/tp_rank0.pt.trace.json.gz": (
        {"world_size": 2, "tp": 2, "dp": 1},
        SMALL | {"heads_per_rank": 2, "intermediate_shard": 256},
    ),
    "hta/nccl_parser_config/nccl_data.json.gz": ({"world_size": 2, "dp": 2, "is_transformer_lm": False}, {}),
    "tracelens/mi300/resnet_act_checkpoint.json.gz": ({"world_size": 8, "dp": 8, "is_transformer_lm": False}, {}),
}


def ranks_of(name: str) -> list[RankParts]:
    if not SAMPLES.is_dir():
        pytest.skip(f"no sample folder {SAMPLES}")
    return [rank_parts(trace) for trace in read_trace(SAMPLES / name)]


@pytest.mark.parametrize("name", TRUTH)
def test_what_is_implied_is_true(name: str) -> None:
    values, sizes = TRUTH[name]
    implied = ranks_of(name)[0].implied
    assert {field: getattr(implied, field).value for field in values} == values
    assert {field: getattr(implied.shapes, field) for field in sizes} == sizes


@pytest.mark.parametrize("name", ["tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz"])
def test_a_replayed_graph_shows_no_shapes(name: str) -> None:
    shapes = ranks_of(name)[0].implied.shapes
    assert (shapes.hidden_size, shapes.heads_per_rank, shapes.tokens) == (None, None, None)


def test_nearly_every_kernel_of_the_samples_has_a_name() -> None:
    if not SAMPLES.is_dir():
        pytest.skip(f"no sample folder {SAMPLES}")
    unnamed: dict[str, float] = {}
    for path in sorted(path for path in SAMPLES.rglob("*") if path.is_file() and path.suffix != ".md"):
        name = path.relative_to(SAMPLES).as_posix()
        try:
            ranks = [rank for rank in ranks_of(name) if rank.summary.window.device]
        except ShardwiseError:
            continue
        lines = [line for rank in ranks for line in unpacked(rank.table).classification()]
        total = sum(line.total_ns for line in lines)
        share = sum(line.total_ns for line in lines if line.by == "unclassified") / max(total, 1)
        if share > UNNAMED_AT_MOST.get(name, 0.0):
            unnamed[name] = share
    assert unnamed == {}
