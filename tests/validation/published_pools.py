"""A published run of a prefill and a decode engine beside its projection: `python -m tests.validation.published_pools`.

DeepSeek-R1 in 8 bit on two engines of 8 MI355X each, 1,024 tokens in and out, all of that length, ten requests for each
in flight (github:AMD-AGI/Infera, bench/pd_mori_1p1d). Nothing was fitted on it. Launch flags explain a part of its time
to first token (docs/serving.md).
"""

from dataclasses import dataclass

from projector.breakdown import Projection
from projector.catalog import architecture, chip
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

CHIPS = 16
PLAN = ParallelismPlan(
    phase="serving", tp=8, etp=8, prefill_replicas=1, prefill_tp=8, prefill_etp=8, kv_transfer="mori",
    weight_dtype="fp8", kv_cache_dtype="fp8", max_num_seqs=512, chunked_prefill_tokens=131072,
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """Means of one run: requests in flight, ms a token, output tokens a second, ms to the first token."""

    concurrency: int
    tpot_ms: float
    tokens_per_s: float
    ttft_ms: float


@dataclass(frozen=True)
class Errors:
    """Projected over measured, less one."""

    tpot_frac: float
    rate_frac: float
    ttft_frac: float


POINTS = (
    Point(16, 11.91, 1098.9, 2101),
    Point(64, 18.15, 2946.9, 2953),
    Point(128, 22.47, 4949.2, 2576),
    Point(256, 28.51, 7837.5, 3520),
)


def projected(point: Point) -> Projection:
    """The run as the projector has it."""
    hardware, model = chip("mi355x"), architecture("deepseek-v3")
    load = WorkloadSpec(
        phase="serving", input_len=1024, output_len=1024, concurrency=point.concurrency, requests_per_slot=10,
        length_spread_frac=0.0,
    )  # fmt: skip
    return project(PLAN, load, model, ClusterSpec(chip=hardware.id, chips=CHIPS), hardware)


def errors(point: Point) -> Errors:
    """How far off the projection is."""
    found = projected(point)
    assert found.tpot_s is not None
    assert found.ttft_s is not None
    assert found.decode_tokens_per_s_per_chip is not None
    return Errors(
        tpot_frac=1e3 * found.tpot_s / point.tpot_ms - 1,
        rate_frac=CHIPS * found.decode_tokens_per_s_per_chip / point.tokens_per_s - 1,
        ttft_frac=1e3 * found.ttft_s / point.ttft_ms - 1,
    )


if __name__ == "__main__":
    print(f"{'in flight':>9}{'TPOT':>9}{'tokens/s':>10}{'TTFT':>9}   projected / measured - 1")
    for one in POINTS:
        off = errors(one)
        print(f"{one.concurrency:>9}{off.tpot_frac:>+9.1%}{off.rate_frac:>+10.1%}{off.ttft_frac:>+9.1%}")
