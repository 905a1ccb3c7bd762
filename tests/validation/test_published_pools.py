"""Published points of a prefill and a decode pool, of which nothing was fitted."""

import pytest

from projector.catalog import architecture, chip
from projector.project import project
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.workload import WorkloadSpec

# DeepSeek-R1 in 8 bit on one prefill and one decode engine of 8 MI355X each, 1,024 tokens in and out, all of that
# length, ten requests for each in flight (AMD-AGI's Infera, bench/pd_mori_1p1d): requests in flight, ms a token,
# output tokens/s. Time to first token there is 2.1 to 3.5 s, of which launch flags explain a part (docs/serving.md).
MEASURED = ((16, 11.91, 1098.9), (64, 18.15, 2946.9), (128, 22.47, 4949.2), (256, 28.51, 7837.5))
PLAN = ParallelismPlan(
    phase="serving", tp=8, etp=8, prefill_replicas=1, prefill_tp=8, prefill_etp=8, kv_transfer="mori",
    weight_dtype="fp8", kv_cache_dtype="fp8", max_num_seqs=512, chunked_prefill_tokens=131072,
)  # fmt: skip


def test_one_prefill_and_one_decode_engine_of_mi355x() -> None:
    hardware, model = chip("mi355x"), architecture("deepseek-v3")
    cluster, errors = ClusterSpec(chip=hardware.id, chips=16), []
    for concurrency, tpot_ms, tokens_per_s in MEASURED:
        load = WorkloadSpec(
            phase="serving", input_len=1024, output_len=1024, concurrency=concurrency, requests_per_slot=10,
            length_spread_frac=0.0,
        )  # fmt: skip
        found = project(PLAN, load, model, cluster, hardware)
        assert found.tpot_s is not None
        assert found.decode_tokens_per_s_per_chip is not None
        assert 1e3 * found.tpot_s == pytest.approx(tpot_ms, rel=0.15)
        errors.append(abs(found.decode_tokens_per_s_per_chip * 16 / tokens_per_s - 1))
    assert sum(errors) / len(errors) < 0.12
