"""TraceLens' single-operator traces on an MI300X: what physics says of each, worked out by hand, and that we agree.

Their names plant a condition; many of their times were written by hand. Chip: 1300 TFLOP/s bf16 and fp16, 163.4 TFLOP/s
fp32, 5.3 TB/s; large kernels reach 0.52 of the arithmetic (attention 0.35) and 0.75 of the bandwidth, so the ridge
between the two roofs is at 170 FLOP/byte (bf16), 114 (attention), 21.4 (fp32).

file     operator                                     us      GFLOP     MB       FLOP/B  of peak: flop, bytes  verdict
conv_01  1x3x2048^2, 64 of 7x7, stride 2, pad 3      4500     19.73    318.8       61.9      2.7 %   1.3 %   compute
conv_02  4x2048x4^2, 2048 of 3x3, pad 1              1200      4.832   152.0       31.8      2.5 %   2.4 %   compute
conv_04  8x1024x32^2, depthwise 3x3                   350      0.151    67.1        2.2      0.3 %   3.6 %   memory
conv_05  16x1024x14^2, 2048 of 1x1                    600     13.15     46.9      280       13.4 %   1.5 %   compute
conv_07  4x512x8^2, transposed 256 of 4x4, stride 2   900      1.074     9.96     108        0.7 %   0.2 %   compute
elem_01  add, 8192^2 fp32, ten times                  421      0.067   805.3        0.083            36 %   memory
gemm_01  256x131072 by 131072x512 bf16, ten times    1089     34.36    201.6      170.4      2.4 %   3.5 %   compute
gemm_03  4097^3 bf16, ten times                       367    137.5     100.7     1366       28.8 %   5.2 %   compute
gemm_04  131072x32 by 32x32 fp16, ten times            13.5    0.268    16.8       16        1.5 %  23.5 %   memory
moe_01   16 tokens, 2 of 64 experts, 4096x11008       280      8.658  7034          1.2      2.4 %   474 %   implausible
moe_03   512 tokens, 1 of 16 experts, 7168x14336      950    315.7    9880         32       25.6 %   196 %   implausible
moe_04   512 tokens, 2 of 16 experts                 1800    631.4    9880         63.9     27.0 %   103.6 %   memory
sdpa_01  1x32x32768x128 bf16, ten times             65846  17592      1074     16384       20.6 %   0.3 %   compute
sdpa_03  16x32x128x128 bf16, ten times                108      4.295    67.1       64        3.1 %  11.7 %   memory

Where physics and name differ, physics stands:
  conv_02, gemm_01  stand almost on the ridge (gemm_01 0.2 % above it): both roofs are as far away
  moe_01            an even router reads 26 experts, 7 GB: 25 TB/s. Only if all 16 tokens agreed on 5 experts or fewer
                    would the time be possible
  moe_03            an even router reads all 16 experts: 10.4 TB/s. The time asks that 512 tokens never meet 8 of them
  moe_04            within the 5 % that clocks and a rounded time allow, so limited by memory, and at its roof
  sdpa_03           of its 108 us the bytes need 17 us at the bandwidth large kernels reach: not too short for the
                    roof, and far below it
The elementwise kernels that conv_07 and moe_04 carry besides (3 MB, 30 us) are too short for any roof: latency.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from projector import catalog
from traces.measure_types import ClassWork
from traces.read import read_traces
from traces.summary import summarise
from traces.work.placed import place_work

BUNDLED = Path(__file__).parents[1] / "data" / "traces" / "micro"
SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[3] / "shared")) / "traces" / "tracelens_micro"


@dataclass(frozen=True)
class Case:
    """One file: the kind of its kernels, calls, time, FLOP and bytes of one call, and what limits them."""

    kind: str
    calls: int
    total_ns: int
    flop: int
    moved_bytes: int
    bound: str
    implausible: bool = False


EXPERT_01 = 22016 * 4096 + 4096 * 11008
EXPERT_03 = 28672 * 7168 + 7168 * 14336
CASES = {
    "conv_01_large_spatial_small_ch": Case(
        "other", 1, 4_500_000, 2 * 64 * 1024**2 * 3 * 49, 4 * (3 * 2048**2 + 64 * 1024**2 + 64 * 3 * 49), "compute"
    ),
    "conv_02_small_spatial_many_ch": Case(
        "other", 1, 1_200_000, 2 * 4 * 2048 * 16 * 2048 * 9, 4 * (2 * 4 * 2048 * 16 + 2048 * 2048 * 9), "compute"
    ),
    "conv_04_depthwise": Case(
        "other", 1, 350_000, 2 * 8 * 1024 * 1024 * 9, 4 * (2 * 8 * 1024 * 1024 + 1024 * 9), "memory"
    ),
    "conv_05_pointwise_1x1": Case(
        "other", 1, 600_000, 2 * 16 * 196 * 2048 * 1024, 4 * (16 * 196 * (1024 + 2048) + 2048 * 1024), "compute"
    ),
    "conv_07_transposed": Case(
        "other", 1, 900_000, 2 * 4 * 64 * 512 * 256 * 16, 4 * (4 * 512 * 64 + 512 * 256 * 16 + 4 * 256 * 256), "compute"
    ),
    "elem_01_add_poor_bw": Case("elementwise", 10, 4_210_194, 8192**2, 3 * 4 * 8192**2, "memory"),
    "gemm_01_compute_few_tiles": Case(
        "gemm", 10, 10_890_000, 2 * 256 * 512 * 131072, 2 * (256 * 131072 + 131072 * 512 + 256 * 512), "compute"
    ),
    "gemm_03_compute_misaligned": Case("gemm", 10, 3_672_000, 2 * 4097**3, 2 * 3 * 4097**2, "compute"),
    "gemm_04_memory_tall_skinny": Case(
        "gemm", 10, 135_000, 2 * 131072 * 32 * 32, 2 * (2 * 131072 * 32 + 32 * 32), "memory"
    ),
    "moe_01_many_experts_few_tokens": Case(
        "moe", 1, 280_000, 2 * 16 * 2 * EXPERT_01, 2 * (2 * 16 * 4096 + 26 * EXPERT_01), "unknown", implausible=True
    ),
    "moe_03_top1_sparse": Case(
        "moe", 1, 950_000, 2 * 512 * EXPERT_03, 2 * (2 * 512 * 7168 + 16 * EXPERT_03), "unknown", implausible=True
    ),
    "moe_04_top2_dense": Case(
        "moe", 1, 1_800_000, 2 * 512 * 2 * EXPERT_03, 2 * (2 * 512 * 7168 + 16 * EXPERT_03), "memory"
    ),
    "sdpa_01_long_seq_low_eff": Case(
        "attention", 10, 658_460_038, 4 * 32 * 32768**2 * 128, 4 * 2 * 32 * 32768 * 128, "compute"
    ),
    "sdpa_03_short_seq_overhead": Case(
        "attention", 10, 1_080_470, 4 * 16 * 32 * 128**2 * 128, 4 * 2 * 16 * 32 * 128 * 128, "memory"
    ),
}


def costliest(folder: Path, name: str) -> ClassWork:
    """The kind of kernel that takes most of the time, beside an MI300X."""
    summary = summarise(read_traces([folder / f"{name}.json"]))
    return place_work(summary, catalog.chip("mi300x")).work[0]


def check(folder: Path, name: str) -> None:
    case, found = CASES[name], costliest(folder, name)
    assert (found.kind, found.total_ns, found.known_ns) == (case.kind, case.total_ns, case.total_ns)
    (operator,) = found.operators
    assert (operator.calls, operator.flop, operator.moved_bytes) == (case.calls, case.flop, case.moved_bytes)
    assert found.bound == case.bound
    assert bool(found.implausible) == case.implausible


@pytest.mark.parametrize("name", sorted(path.stem for path in BUNDLED.glob("*.json")))
def test_a_bundled_micro_trace_is_what_physics_says(name: str):
    check(BUNDLED, name)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no samples at {SHARED}; set SHARDWISE_SHARED")
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_micro_trace_is_what_physics_says(name: str):
    check(SHARED, name)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no samples at {SHARED}; set SHARDWISE_SHARED")
def test_every_micro_trace_is_in_the_table():
    assert sorted(path.stem for path in SHARED.glob("*.json")) == sorted(CASES)


@pytest.mark.parametrize(
    ("name", "share"),
    [("moe_01_many_experts_few_tokens", "4.74"), ("moe_03_top1_sparse", "1.96")],
)
def test_an_impossible_time_says_by_how_much_and_what_was_assumed(name: str, share: str):
    told = costliest(BUNDLED, name).implausible
    assert f"{share} times the memory bandwidth of mi300x" in told
    assert "rows spread evenly over the experts" in told


@pytest.mark.parametrize("name", ["conv_07_transposed", "moe_04_top2_dense"])
def test_small_kernels_beside_them_are_bound_by_latency(name: str):
    summary = summarise(read_traces([BUNDLED / f"{name}.json"]))
    (small,) = (one for one in place_work(summary, catalog.chip("mi300x")).work if one.kind == "elementwise")
    assert (small.count, small.bound) == (3, "latency")
