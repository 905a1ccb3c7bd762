"""Token budget and prefix cache: how much of a prompt shares a step with decoding tokens."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, latent_model, serving, switched_chip

from projector.breakdown import Projection
from projector.cost.token_budget import Prompts, most_decoding
from projector.graph.serving_graph import StepWork, serving_graph
from projector.project import project
from projector.specs.architecture import ModelArchitecture
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.workload import WorkloadSpec


def engine(**changes: object) -> ParallelismPlan:
    return ParallelismPlan.model_validate({"phase": "serving"} | changes)


def projected(plan: ParallelismPlan, load: WorkloadSpec, model: ModelArchitecture | None = None) -> Projection:
    hardware = switched_chip()
    return project(plan, load, model or dense_model(), cluster(hardware, plan.devices), hardware)


def with_prefix(share: float, concurrency: int = 16, input_len: int = 4096) -> WorkloadSpec:
    return serving(concurrency, input_len).model_copy(update={"prefix_hit_frac": share})


def chunk_of(decoding: float, **plan: object) -> float:
    batch = PlanBatch.from_plans([engine(**plan)])
    return float(Prompts.of(batch, 4096, 0.0, np.array([decoding])).budget[0])


def test_decoding_tokens_are_taken_off_the_budget_first() -> None:
    assert chunk_of(100, chunked_prefill_tokens=2048, max_batched_tokens=2048) == 1948
    assert chunk_of(100, chunked_prefill_tokens=1024, max_batched_tokens=2048) == 1024
    assert chunk_of(100, chunked_prefill_tokens=0, max_batched_tokens=2048) == 1948
    assert chunk_of(100, chunked_prefill_tokens=0) == 4096
    drafted = {"speculation": "ngram", "speculative_tokens": 3}
    assert chunk_of(100, chunked_prefill_tokens=2048, max_batched_tokens=2048, **drafted) == 2048 - 400


def test_chunk_never_falls_below_one_token() -> None:
    batch = PlanBatch.from_plans([engine(max_batched_tokens=cap) for cap in (0, 1, 64)])
    assert most_decoding(batch).tolist() == [np.inf, 1, 63]
    left = Prompts.of(batch, 4096, 0.0, np.minimum(most_decoding(batch), 500.0) - 1)
    assert (left.budget >= 1).all()
    found = projected(engine(max_batched_tokens=64), serving(500))
    assert found.memory is not None
    assert found.memory.concurrency_limit == "max_batched_tokens"


def test_smaller_cap_costs_time_to_first_token_and_spares_decoding() -> None:
    wide, narrow = (
        projected(engine(chunked_prefill_tokens=0, max_batched_tokens=cap), serving(32, 8192)) for cap in (8192, 512)
    )
    assert wide.ttft_s is not None
    assert narrow.ttft_s is not None
    assert narrow.ttft_s > wide.ttft_s


def test_cap_that_is_never_reached_changes_nothing() -> None:
    found = [projected(engine(max_batched_tokens=cap), serving(16)) for cap in (0, 100_000)]
    assert found[0].breakdown == found[1].breakdown
    assert found[0].ttft_s == found[1].ttft_s


def test_cached_prompt_costs_less_prefill_and_the_same_decode_context() -> None:
    none, half, most = (projected(engine(), with_prefix(share)) for share in (0.0, 0.5, 0.9))
    for less, more in ((half, none), (most, half)):
        assert less.ttft_s is not None
        assert more.ttft_s is not None
        assert less.ttft_s < more.ttft_s
        assert less.decode_tokens_per_s_per_chip is not None
        assert more.decode_tokens_per_s_per_chip is not None
        assert less.decode_tokens_per_s_per_chip > more.decode_tokens_per_s_per_chip
    # a lone request decodes as if there were no cache
    lone = [projected(engine(), with_prefix(share, concurrency=1)).tpot_s for share in (0.0, 0.9)]
    assert lone[0] == lone[1]


def test_no_prefix_is_no_cache() -> None:
    unsaid, none = projected(engine(), serving(16, 4096)), projected(engine(), with_prefix(0.0))
    assert unsaid == none
    assert none.memory is not None
    assert none.memory.prefix_cache_bytes == 0


def test_shared_prefix_stands_in_the_pool_once() -> None:
    one = {
        share: projected(engine(kv_block_tokens=1), with_prefix(share, concurrency=1)).memory for share in (0.0, 0.75)
    }
    eight = projected(engine(kv_block_tokens=1), with_prefix(0.75, concurrency=8)).memory
    assert one[0.0] is not None
    assert one[0.75] is not None
    assert eight is not None
    # a lone request holds what it would hold anyway
    assert one[0.75].prefix_cache_bytes + one[0.75].kv_cache_bytes == pytest.approx(one[0.0].kv_cache_bytes)
    assert eight.prefix_cache_bytes == one[0.75].prefix_cache_bytes
    assert eight.kv_cache_bytes == pytest.approx(8 * one[0.75].kv_cache_bytes)


@pytest.mark.parametrize("model", [dense_model(), latent_model(), dense_model(sliding_window=512, sliding_layers=4)])
def test_attention_reads_what_is_cached_and_computes_what_is_not(model: ModelArchitecture) -> None:
    # 1,024 of 4,096 tokens are computed in one chunk: they see all before them, and each other
    batch, one = PlanBatch.from_plans([engine()]), np.ones(1)
    dtype = batch.compute_dtype

    def attention_flop(cached: float) -> float:
        work = StepWork(0 * one, 4096 * one, one, (4096 - cached) * one, 4096 * one, one, cached=cached)
        operators = serving_graph(batch, model, dtype, work)
        return sum(float((one.count * one.flop)[0]) for one in operators if one.kind == "attention" and one.flop[0] > 0)

    whole, of_prefix = attention_flop(0.0), 0.0
    work = StepWork(0 * one, 3072 * one, one, 3072 * one, 3072 * one, one)
    for operator in serving_graph(batch, model, dtype, work):
        if operator.kind == "attention":
            of_prefix += float((operator.count * operator.flop)[0])
    assert attention_flop(3072.0) == pytest.approx(whole - of_prefix)
