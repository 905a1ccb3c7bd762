"""Two pools of engines: one case by hand, and what each of their fields may and may not change."""

from dataclasses import replace

import numpy as np
import pytest
from projector_examples import cluster, dense_model, latent_model, moe_model, serving, switched_chip

from projector.batch_merge import interleaved
from projector.breakdown import Projection
from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.legality import check
from projector.project import project, project_many
from projector.specs.architecture import ModelArchitecture
from projector.specs.hardware import HardwareProfile
from projector.specs.plan import ParallelismPlan
from projector.specs.plan_batch import PlanBatch
from projector.specs.serving_stack import ANY_ENGINE
from projector.specs.workload import WorkloadSpec

# what the stack adds to a request, in the tests as everywhere
REQUEST_S = ANY_ENGINE.request_s + ANY_ENGINE.handoff_s


def pools(**changes: object) -> ParallelismPlan:
    return ParallelismPlan.model_validate({"phase": "serving", "prefill_replicas": 1} | changes)


def projected(
    plan: ParallelismPlan,
    load: WorkloadSpec,
    *,
    model: ModelArchitecture | None = None,
    hardware: HardwareProfile | None = None,
) -> Projection:
    hardware = hardware or switched_chip()
    stack = ANY_ENGINE.model_copy(update={"step_s": 0.0, "admission_steps": 0.0})
    return project(plan, load, model or dense_model(), cluster(hardware, plan.devices), hardware, stack=stack)


def ttft_s(found: Projection) -> float:
    assert found.ttft_s is not None
    return found.ttft_s


def tpot_s(found: Projection) -> float:
    assert found.tpot_s is not None
    return found.tpot_s


def throughput(found: Projection) -> float:
    """Output tokens a second of the whole cluster."""
    assert found.decode_tokens_per_s_per_chip is not None
    return found.decode_tokens_per_s_per_chip * found.chips


def test_lone_request_takes_its_prefill_its_transfer_and_a_decode_step() -> None:
    # 4 KV heads of 64 in 16 bit over 8 layers keep 8 kB a token; 71 % of 100 GB/s, 0.8 ms ahead, 1 us for the message
    wire_s = 1000 * 2 * 4 * 64 * 2 * 8 / (0.71 * 100e9) + 1e-6
    found = projected(pools(chunked_prefill_tokens=0), serving(1, input_len=1000, output_len=100))
    model = dense_model()
    products = 2 * (model.parameters - model.embedding_parameters - model.norm_parameters - 32000 * 1024) * 1000
    prefill_s = products / 100e12
    expected_s = REQUEST_S + prefill_s + 0.8e-3 + wire_s + tpot_s(found)
    assert ttft_s(found) == pytest.approx(expected_s, rel=0.02)
    # a decode step reads the weights and 1,050 tokens of cache, and nothing prefills beside it
    weights = model.parameters - model.embedding_parameters - model.norm_parameters
    assert tpot_s(found) == pytest.approx((2 * weights + 1050 * 2 * 4 * 64 * 2 * 8) / 1e12, rel=0.1)
    assert throughput(found) == pytest.approx(100 / (ttft_s(found) + 99 * tpot_s(found)))


def test_decode_steps_carry_no_prefill() -> None:
    load = serving(64, input_len=4096, output_len=64)
    apart = projected(pools(prefill_replicas=2), load)
    together = projected(ParallelismPlan(phase="serving", dp=3), load)
    assert tpot_s(apart) < tpot_s(together)


def test_requests_of_a_loop_add_up() -> None:
    # N = x (TTFT + (output - 1) TPOT), by Little's law
    for concurrency in (1, 8, 64, 512):
        found = projected(pools(max_num_seqs=64), serving(concurrency, input_len=2000, output_len=200))
        assert throughput(found) / 200 * (ttft_s(found) + 199 * tpot_s(found)) == pytest.approx(concurrency)


@pytest.mark.parametrize("concurrency", [1, 16, 64, 256])
def test_another_prefill_engine_never_lengthens_the_wait_for_the_first_token(concurrency: int) -> None:
    load = serving(concurrency, input_len=8192, output_len=128)
    hardware = switched_chip(domain_chips=16)
    waits = [ttft_s(projected(pools(prefill_replicas=count), load, hardware=hardware)) for count in (1, 2, 4, 8)]
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] < waits[0] or concurrency == 1


def test_throughput_is_that_of_the_slower_pool() -> None:
    load = serving(512, input_len=8192, output_len=16)
    one, two = (projected(pools(prefill_replicas=count, dp=4), load) for count in (1, 2))
    assert any("the prefill pool holds the throughput down" in said for said in one.assumptions)
    assert throughput(two) == pytest.approx(2 * throughput(one), rel=0.1)
    # and where decoding is slow, prefill engines add nothing
    load = serving(512, input_len=64, output_len=2048)
    one, two = (projected(pools(prefill_replicas=count, max_num_seqs=32), load) for count in (1, 2))
    assert any("the decode pool has no seats" in said for said in one.assumptions)
    assert throughput(two) == pytest.approx(throughput(one), rel=0.01)


def test_faster_prefill_engines_shorten_the_first_token_alone() -> None:
    load = serving(1, input_len=8192, output_len=64)
    one, four = (projected(pools(prefill_tp=tp), load) for tp in (1, 4))
    assert ttft_s(four) < ttft_s(one)
    assert tpot_s(four) == tpot_s(one)


def test_stages_of_a_prefill_pool_share_its_weights_and_delay_the_first_token() -> None:
    model, hardware, load = architecture("llama-3.1-70b"), chip("h100"), serving(8, input_len=512)
    whole, staged = (
        projected(pools(tp=8, prefill_tp=2, prefill_pp=stages), load, model=model, hardware=hardware)
        for stages in (2, 4)
    )
    # 140 GB over four devices, and over eight
    assert whole.memory is not None
    assert staged.memory is not None
    assert whole.memory.weights_bytes == pytest.approx(2 * staged.memory.weights_bytes, rel=0.1)
    assert tpot_s(whole) == pytest.approx(tpot_s(staged), rel=1e-3)


def test_ranks_of_attention_data_parallelism_prefill_side_by_side() -> None:
    load = serving(512, input_len=8192, output_len=16)
    one, four = (projected(pools(prefill_attention_dp=ranks, dp=4), load) for ranks in (1, 4))
    assert throughput(four) > 3 * throughput(one)


def test_experts_of_a_prefill_pool_are_shared_out_whole_or_in_slices() -> None:
    load = serving(8, input_len=4096)
    by = {
        layout: projected(
            pools(prefill_tp=4, **dict(zip(("prefill_ep", "prefill_etp"), layout, strict=True))), load,
            model=moe_model(), hardware=switched_chip(),
        )
        for layout in ((1, 4), (4, 1), (1, 1))
    }  # fmt: skip
    assert [tpot_s(found) for found in by.values()] == pytest.approx([tpot_s(by[1, 1])] * 3, rel=1e-2)
    assert len({ttft_s(found) for found in by.values()}) == 3


@pytest.mark.parametrize("library", ["nixl", "mooncake", "mori"])
def test_slower_link_delays_the_first_token_and_no_other(library: str) -> None:
    # 16 chips of domains of 8: the pools are joined by the network
    plan, load = pools(tp=8, prefill_tp=8, kv_transfer=library), serving(1, input_len=8192, output_len=64)
    model = dense_model(kv_heads=8)
    fast, slow = (projected(plan, load, model=model, hardware=switched_chip(network=rate)) for rate in (25e9, 2.5e9))
    assert ttft_s(slow) > ttft_s(fast)
    assert tpot_s(slow) == tpot_s(fast)


def test_inside_one_domain_the_network_does_not_matter() -> None:
    load = serving(1, input_len=8192)
    fast, slow = (projected(pools(), load, hardware=switched_chip(network=rate)) for rate in (25e9, 2.5e9))
    assert ttft_s(slow) == ttft_s(fast)


def test_cache_of_half_the_bytes_halves_the_transfer() -> None:
    slow = switched_chip(network=1e8)
    load = serving(1, input_len=8192, output_len=64)
    wide, narrow = (
        projected(pools(tp=8, prefill_tp=8, kv_cache_dtype=dtype), load, model=dense_model(kv_heads=8), hardware=slow)
        for dtype in ("bf16", "fp8")
    )
    # 8192 tokens of one head of 128 numbers in 8 layers, on a rank
    saved_s = 8192 * 128 * 8 / (0.71 * 1e8)
    assert ttft_s(wide) - ttft_s(narrow) == pytest.approx(saved_s, rel=0.01)


def test_latents_cross_once_whatever_the_tensor_parallelism() -> None:
    slow, load = switched_chip(network=1e7), serving(1, input_len=8192, output_len=64)
    two, eight = (projected(pools(tp=tp, prefill_tp=8), load, model=latent_model(), hardware=slow) for tp in (2, 8))
    # 8192 tokens of 256 + 16 numbers in 8 layers, in 16 bit
    wire_s = 8192 * 272 * 2 * 8 / (0.71 * 1e7)
    assert ttft_s(two) - ttft_s(eight) == pytest.approx(0, abs=0.01 * wire_s)
    assert ttft_s(eight) == pytest.approx(wire_s, rel=0.05)


def test_sending_while_prefilling_hides_all_but_the_last_part() -> None:
    load = serving(1, input_len=8192, output_len=64)
    shown = {
        library: ttft_s(
            projected(pools(tp=8, prefill_tp=8, kv_transfer=library, chunked_prefill_tokens=1024), load,
                      model=dense_model(kv_heads=8), hardware=switched_chip(network=1e9))
        )
        for library in ("nixl", "mooncake", "mori")
    }  # fmt: skip
    assert shown["mori"] < shown["mooncake"] < shown["nixl"]


def test_requests_of_one_length_come_back_together_and_wait_for_each_other() -> None:
    # eight prompts that share a step leave it, decode in step and return at once; lengths that differ part them
    load = serving(8, input_len=1000, output_len=2000).model_copy(update={"requests_per_slot": 100})
    plan = pools(chunked_prefill_tokens=8192)
    alike, apart = (
        ttft_s(projected(plan, load.model_copy(update={"length_spread_frac": frac}))) for frac in (0.0, 0.5)
    )
    prefill_s = 2 * 1000 * (dense_model().parameters - 2 * 32000 * 1024) / 100e12
    assert alike - apart > 5 * prefill_s


def test_start_of_a_run_is_one_of_its_rounds() -> None:
    load = serving(64, input_len=4096, output_len=1000).model_copy(update={"length_spread_frac": 0.3})
    steady, ten, two = (
        ttft_s(projected(pools(), load.model_copy(update={"requests_per_slot": rounds}))) for rounds in (None, 10, 2)
    )
    assert steady < ten < two


def test_admission_is_waited_for_by_the_busy_engine_alone() -> None:
    hardware = switched_chip()

    def found(concurrency: int, steps: float) -> Projection:
        stack = ANY_ENGINE.model_copy(update={"admission_steps": steps})
        load = serving(concurrency, input_len=100, output_len=200)
        return project(pools(), load, dense_model(), cluster(hardware, 2), hardware, stack=stack)

    assert ttft_s(found(1, 40.0)) == pytest.approx(ttft_s(found(1, 0.0)))
    waited_s = ttft_s(found(32, 40.0)) - ttft_s(found(32, 0.0))
    assert waited_s == pytest.approx(40 * tpot_s(found(32, 40.0)), rel=0.1)


def test_drafting_yields_more_tokens_a_step_and_no_earlier_first_one() -> None:
    load = serving(1, input_len=1000, output_len=200).model_copy(update={"draft_acceptance_frac": 0.8})
    plain, drafted = (
        projected(pools(**fields), load) for fields in ({}, {"speculation": "eagle", "speculative_tokens": 2})
    )
    assert tpot_s(drafted) < tpot_s(plain)
    assert ttft_s(drafted) >= ttft_s(plain)


def test_without_pools_the_library_is_refused_not_ignored() -> None:
    with pytest.raises(InvalidDescription, match="sets fields of a prefill pool and has none"):
        projected(ParallelismPlan(phase="serving", kv_transfer="nixl"), serving(1))
    with pytest.raises(InvalidDescription, match="sets fields of a prefill pool and has none"):
        projected(ParallelismPlan(phase="serving", prefill_tp=2), serving(1))


def test_each_pool_is_held_against_its_own_memory() -> None:
    # 140 GB of weights: eight decode devices hold them, one prefill device does not
    model, hardware = architecture("llama-3.1-70b"), chip("h100")
    whole = projected(pools(tp=8, prefill_tp=8), serving(8), model=model, hardware=hardware)
    assert whole.fit == "fits"
    assert whole.ttft_s is not None
    short = projected(pools(tp=8, prefill_replicas=8), serving(8), model=model, hardware=hardware)
    assert short.fit == "too_large"
    assert short.ttft_s is None
    assert short.max_concurrency == 0
    assert any("of the prefill pool, the fuller" in said for said in short.assumptions)


def test_one_batch_mixes_both_modes() -> None:
    plans = [
        ParallelismPlan(phase="serving", dp=4),
        pools(prefill_replicas=2, dp=2, kv_transfer="mooncake"),
        ParallelismPlan(phase="serving", tp=4),
        pools(prefill_tp=2, tp=2),
    ]
    hardware, load = switched_chip(), serving(32, input_len=2000)
    many = project_many(PlanBatch.from_plans(plans), load, moe_model(), cluster(hardware, 4), hardware)
    for index, plan in enumerate(plans):
        alone = project(plan, load, moe_model(), cluster(hardware, 4), hardware)
        assert many[index].model_dump() == alone.model_dump()
    assert np.isfinite(many.objective("ttft_ms")).all()


def test_figure_that_one_mode_lacks_is_missing_there_and_not_zero() -> None:
    hardware, load = switched_chip(), serving(8)
    one = project_many(PlanBatch.from_plans([pools()]), load, dense_model(), cluster(hardware, 2), hardware)
    other = replace(one, metrics=replace(one.metrics, tpot_s=None))
    both = interleaved([(np.array([1]), one), (np.array([0]), other)], PlanBatch.concat([one.batch, one.batch]))
    assert both.metrics.tpot_s is not None
    assert np.isnan(both.metrics.tpot_s).tolist() == [True, False]
    assert both[1].model_dump() == one[0].model_dump()


def test_prefill_rank_takes_no_more_prompts_than_it_has_memory_for() -> None:
    # prompts of 65,536 tokens of 32 kB are 2.1 GB each: a step has room for 32 of them, a chip of 100 GB has not
    model, load = dense_model(kv_heads=16), serving(64, input_len=65536, output_len=16)
    found = projected(pools(tp=8, chunked_prefill_tokens=2**21), load, model=model)
    assert found.memory is not None
    assert found.memory.kv_pool_bytes is not None
    assert found.memory.kv_pool_bytes < 32 * 65536 * 32768
    assert found.fit == "fits"


def test_prefill_pool_keeps_the_rules_of_every_engine() -> None:
    model, hardware, load = moe_model(), switched_chip(), serving(8)

    def broken(plan: ParallelismPlan) -> set[str]:
        return {one.rule for one in check(plan, load, model, cluster(hardware, plan.devices), hardware)}

    assert broken(pools(prefill_tp=2, tp=2)) == set()
    assert "prefill_attention_heads" in broken(pools(prefill_tp=3, tp=2))
    assert "prefill_experts" in broken(pools(prefill_tp=12, prefill_ep=12, tp=2))
    assert "prefill_stages" in broken(pools(prefill_pp=9))
    assert "pool_fields_need_pool" in broken(ParallelismPlan(phase="serving", kv_transfer="nixl"))
    assert "mori_chip" in broken(pools(kv_transfer="mori"))
    assert {one.rule for one in check(pools(prefill_tp=4), load, model, cluster(hardware, 4), hardware)} == {
        "device_count",
        "pools_fit",
    }


def arriving(rate: float, arrivals: str = "poisson") -> WorkloadSpec:
    values = {"input_len": 4096, "output_len": 64, "request_rate_per_s": rate, "arrivals": arrivals}
    return WorkloadSpec.model_validate({"phase": "serving"} | values)


def test_requests_that_arrive_wait_for_prefill_the_longer_the_more_they_are() -> None:
    waits = [ttft_s(projected(pools(), arriving(rate))) for rate in (0.01, 5.0, 8.0)]
    assert waits == sorted(waits)
    alone = ttft_s(projected(pools(), serving(1, input_len=4096, output_len=64)))
    assert waits[0] == pytest.approx(alone, rel=0.01)
    # evenly spaced ones do not meet
    assert ttft_s(projected(pools(), arriving(8.0, "deterministic"))) < waits[2]
    assert throughput(projected(pools(), arriving(5.0))) == pytest.approx(5.0 * 64)


def test_pools_that_do_not_keep_up_with_arrivals_are_refused_with_what_they_can_do() -> None:
    found = projected(pools(), arriving(1000.0))
    assert found.ttft_s is None
    (refusal,) = found.rejections
    assert refusal.rule == "request_rate_per_s"
    two = projected(pools(prefill_replicas=2), arriving(1000.0))
    assert two.rejections[0].limit == pytest.approx(2 * refusal.limit, rel=0.01)


def test_both_modes_answer_a_rate_in_one_batch() -> None:
    hardware = switched_chip()
    plans = [ParallelismPlan(phase="serving", dp=2), pools()]
    many = project_many(PlanBatch.from_plans(plans), arriving(5.0), dense_model(), cluster(hardware, 2), hardware)
    for index, plan in enumerate(plans):
        alone = project(plan, arriving(5.0), dense_model(), cluster(hardware, 2), hardware)
        assert many[index].model_dump() == alone.model_dump()


def test_decode_pool_meets_long_answers_as_often_as_an_engine_of_one_pool() -> None:
    load = serving(64, input_len=64, output_len=8192)
    spread = load.model_copy(update={"length_spread_frac": 0.9})
    alike, varied = (projected(pools(max_num_seqs=64), one) for one in (load, spread))
    assert tpot_s(varied) > 1.02 * tpot_s(alike)


def test_no_request_waits_for_a_seat_where_there_is_one_for_each() -> None:
    load = serving(16, input_len=64, output_len=4096)
    enough, few = (projected(pools(max_num_seqs=seats), load) for seats in (16, 8))
    assert not any("no seats for more" in one for one in enough.assumptions)
    assert any("no seats for more" in one for one in few.assumptions)


def test_decode_engines_without_requests_draw_what_an_idle_chip_draws() -> None:
    idle, busy = (projected(pools(), load, hardware=chip("h200")) for load in (arriving(1e-4), serving(64)))
    assert power_w(idle) == pytest.approx(0.15 * 700, rel=0.01)
    assert power_w(busy) > 2 * power_w(idle)


def power_w(found: Projection) -> float:
    assert found.serving is not None
    assert found.serving.avg_power_w is not None
    return found.serving.avg_power_w
