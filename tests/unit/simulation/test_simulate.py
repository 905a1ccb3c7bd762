"""simulate(): the same to the bit, beside the analytic model, saturation, preemption, refusals, goodput."""

import subprocess
import sys

import numpy as np
import pytest
from simulation_examples import steps

from projector.catalog import architecture, chip
from projector.errors import InvalidDescription
from projector.project import project
from projector.simulation.request_log import RequestLog
from projector.simulation.simulate import simulate
from projector.simulation.statistics import SimulationResult, quantiles
from projector.specs.cluster import ClusterSpec
from projector.specs.plan import ParallelismPlan
from projector.specs.serving_stack import ANY_ENGINE, ServingStack
from projector.specs.slo import Slo
from projector.specs.workload import WorkloadSpec

MODEL, CHIP = architecture("llama-3.1-70b"), chip("h200")
CLUSTER = ClusterSpec(chip=CHIP.id, chips=8)
# an engine that looks at a request at once, so that nothing but queues and steps is between arrival and first token
PROMPT_ENGINE = ANY_ENGINE.model_copy(update={"request_s": 0.0, "admission_steps": 0.0})


def serving(**given: object) -> WorkloadSpec:
    sizes = {"phase": "serving", "input_len": 1024, "output_len": 256, "concurrency": 16}
    return WorkloadSpec.model_validate(sizes | given)


def simulated(
    workload: WorkloadSpec, *, stack: ServingStack = ANY_ENGINE, plan: ParallelismPlan | None = None, **given: object
) -> SimulationResult:
    plan = plan or ParallelismPlan(phase="serving", tp=8)
    return simulate(plan, workload, MODEL, CLUSTER, CHIP, stack=stack, **({"requests": 1000} | given))  # type: ignore[arg-type]


SPREAD = serving(length_spread_frac=0.3, arrivals="poisson", request_rate_per_s=5.0)


def test_a_seed_gives_the_same_result_to_the_bit_in_every_process() -> None:
    here = simulated(SPREAD, requests=300, seed=7)
    assert simulated(SPREAD, requests=300, seed=7) == here
    assert simulated(SPREAD, requests=300, seed=8) != here
    script = (
        "import sys; sys.path.insert(0, 'tests/unit/simulation')\n"
        "from test_simulate import SPREAD, simulated\n"
        "print(simulated(SPREAD, requests=300, seed=7).model_dump_json())"
    )
    command = [sys.executable, "-c", script]
    for hash_seed in ("1", "2"):
        environment = {"PYTHONPATH": ".", "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
        there = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        assert SimulationResult.model_validate_json(there) == here


STEADY = [
    pytest.param({}, {"concurrency": 4}, id="4 in flight"),
    pytest.param({}, {"concurrency": 16}, id="16 in flight"),
    pytest.param({"chunked_prefill_tokens": 512}, {"concurrency": 64}, id="64 in flight, small chunks"),
    pytest.param({"chunked_prefill_tokens": 1024}, {"input_len": 4096, "output_len": 512}, id="long prompts"),
    pytest.param(
        {"max_num_seqs": 256, "chunked_prefill_tokens": 8192},
        {"output_len": 1024, "concurrency": 256},
        id="256 in flight",
    ),
    pytest.param({"tp": 4, "dp": 2}, {"concurrency": 64}, id="two engines"),
    pytest.param({"tp": 4, "pp": 2}, {"concurrency": 64}, id="two stages"),
    pytest.param({"max_batched_tokens": 1100}, {"concurrency": 64}, id="token budget"),
    pytest.param({}, {"prefix_hit_frac": 0.5}, id="half cached"),
]


@pytest.mark.parametrize(("fields", "traffic"), STEADY)
def test_means_of_a_steady_closed_loop_are_those_of_the_analytic_model(
    fields: dict[str, object], traffic: dict[str, object]
) -> None:
    plan = ParallelismPlan.model_validate({"phase": "serving", "tp": 8} | fields)
    workload = serving(**traffic)
    analytic = project(plan, workload, MODEL, CLUSTER, CHIP, stack=PROMPT_ENGINE)
    found = simulated(workload, plan=plan, stack=PROMPT_ENGINE)
    assert found.preemptions == 0
    assert found.tpot is not None
    assert found.ttft.mean_s == pytest.approx(analytic.ttft_s, rel=0.05)
    assert found.tpot.mean_s == pytest.approx(analytic.tpot_s, rel=0.05)
    assert found.request_latency.mean_s == pytest.approx(analytic.request_latency_s, rel=0.05)
    assert found.output_tokens_per_s_per_chip == pytest.approx(analytic.decode_tokens_per_s_per_chip, rel=0.05)


@pytest.mark.parametrize("drafter", ["eagle", "ngram"])
def test_accepted_drafts_are_drawn_with_the_mean_of_the_analytic_model(drafter: str) -> None:
    plan = ParallelismPlan.model_validate(
        {"phase": "serving", "tp": 8, "speculation": drafter, "speculative_tokens": 3}
    )
    analytic = project(plan, serving(), MODEL, CLUSTER, CHIP, stack=PROMPT_ENGINE)
    found = simulated(serving(), plan=plan, stack=PROMPT_ENGINE)
    assert found.tpot is not None
    assert found.tpot.mean_s == pytest.approx(analytic.tpot_s, rel=0.05)
    assert found.request_latency.mean_s == pytest.approx(analytic.request_latency_s, rel=0.05)
    # draws spread the returns to the prefill, of which the analytic model does not know
    assert found.ttft.mean_s == pytest.approx(analytic.ttft_s, rel=0.15)
    assert found.tpot.p99_s > 1.05 * found.tpot.p50_s


def test_tokens_of_a_request_sum_up() -> None:
    found = simulated(SPREAD)
    assert found.tpot is not None
    assert found.itl is not None
    # gaps weigh long requests more, requests of one length alike
    assert found.itl.mean_s == pytest.approx(found.tpot.mean_s, rel=0.02)
    assert found.itl.p50_s <= found.itl.p90_s <= found.itl.p99_s
    assert found.ttft.mean_s > found.queue.mean_s + ANY_ENGINE.request_s


def test_an_open_loop_above_what_the_engines_bear_says_so() -> None:
    below, above = (
        simulated(serving(arrivals="poisson", request_rate_per_s=rate), requests=2000) for rate in (5.0, 50.0)
    )
    assert not below.saturated
    assert below.requests_per_s == pytest.approx(5.0, rel=0.05)
    assert above.saturated
    assert above.offered_requests_per_s == 50.0 > 2 * above.requests_per_s
    assert above.queue.p99_s > 10 * below.queue.p99_s


def test_a_full_pool_preempts_where_the_engine_is_greedy_and_never_where_it_keeps_room_for_answers() -> None:
    plan = ParallelismPlan(phase="serving", tp=8, max_num_seqs=1024, hbm_frac=0.3)
    workload = serving(concurrency=600, input_len=512, output_len=2048)
    stacks = {kind: PROMPT_ENGINE.model_copy(update={"admission": kind}) for kind in ("greedy", "mean", "reserve")}
    found = {kind: simulated(workload, plan=plan, requests=500, stack=stack) for kind, stack in stacks.items()}
    # who estimates what is still to come is wrong by the rounding to blocks at most
    assert found["greedy"].preemptions > 100 * found["mean"].preemptions
    assert found["reserve"].preemptions == 0
    assert found["greedy"].batch_size_mean > found["mean"].batch_size_mean > found["reserve"].batch_size_mean
    assert 0.9 < found["greedy"].kv_peak_frac <= 1.0
    analytic = project(plan, workload, MODEL, CLUSTER, CHIP, stack=stacks["reserve"])
    per_chip = found["reserve"].output_tokens_per_s_per_chip
    assert per_chip == pytest.approx(analytic.decode_tokens_per_s_per_chip, rel=0.05)
    # a reserve of the whole answer leaves the pool half empty, preemptions cost more
    assert found["reserve"].output_tokens_per_s > found["greedy"].output_tokens_per_s


def test_goodput_counts_the_requests_that_meet_every_budget() -> None:
    every = simulated(SPREAD, slo=Slo(ttft_ms=1e6, request_latency_ms=1e6))
    none = simulated(SPREAD, slo=Slo(ttft_ms=1e-3))
    some = simulated(SPREAD, slo=Slo(ttft_ms=1e3 * every.ttft.p50_s))
    assert (every.slo_met_frac, none.slo_met_frac) == (1.0, 0.0)
    assert every.goodput_requests_per_s == every.requests_per_s
    assert some.slo_met_frac == pytest.approx(0.5, abs=0.01)
    assert simulated(SPREAD).goodput_requests_per_s is None
    missed = simulated(SPREAD, slo=Slo(ttft_ms_p99=1.0, request_latency_ms_p50=1e6)).slo_misses
    assert [miss.rule for miss in missed] == ["ttft_ms_p99"]


def test_a_benchmark_is_replayed_with_its_start() -> None:
    found = simulated(serving(requests_per_slot=5), requests=None)
    assert (found.requests, found.warmup_requests) == (80, 0)
    with pytest.raises(InvalidDescription, match="requests_per_slot"):
        simulated(serving(requests_per_slot=5), requests=100)


def test_a_recorded_log_sets_times_lengths_and_prefixes() -> None:
    count = 200
    random = np.random.default_rng(0)
    log = RequestLog(
        np.sort(random.uniform(0, 100, count)),
        random.integers(600, 4000, count),
        random.integers(1, 300, count),
        tuple((0, i % 4, 100 + i) for i in range(count)),
        block_tokens=512,
    )
    workload = WorkloadSpec(phase="serving")
    found = simulated(workload, log=log)
    assert (found.requests, found.warmup_requests, found.saturated) == (count, 0, False)
    assert found.prefix_hit_frac > 0.2
    cold = simulated(workload, log=RequestLog(log.arrival_s, log.input_tokens, log.output_tokens))
    assert (cold.prefix_hit_frac, cold.ttft.mean_s > found.ttft.mean_s) == (0.0, True)


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="concurrency"):
        simulated(WorkloadSpec(phase="serving", input_len=10, output_len=10))
    with pytest.raises(InvalidDescription, match="serving plan"):
        simulated(serving(), plan=ParallelismPlan(tp=8))
    with pytest.raises(InvalidDescription, match="no request fits"):
        simulated(serving(input_len=20_000_000), plan=ParallelismPlan(phase="serving", tp=8))
    with pytest.raises(InvalidDescription, match="simulation of 0 requests"):
        simulated(serving(), requests=0)


def test_percentiles_are_values_of_the_sample() -> None:
    found = quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 5.0, 4.0]))
    assert found is not None
    assert (found.mean_s, found.p50_s, found.p90_s, found.p99_s) == (1.6, 1.0, 2.0, 3.0)
    assert quantiles(np.array([])) is None
    assert steps(2.0).decode(3, 50.0) == 2.0


POOLED = [
    pytest.param({"prefill_tp": 4}, {}, id="one engine each"),
    pytest.param({"prefill_tp": 4}, {"concurrency": 64}, id="prompts queue"),
    pytest.param({"prefill_tp": 4}, {"length_spread_frac": 0.3}, id="lengths differ"),
    pytest.param({"prefill_replicas": 2, "prefill_tp": 2}, {}, id="two prefill engines"),
    pytest.param({"prefill_tp": 2, "prefill_pp": 2, "kv_transfer": "mooncake"}, {"concurrency": 8}, id="stages"),
]


@pytest.mark.parametrize(("fields", "traffic"), POOLED)
def test_means_behind_a_prefill_pool_are_those_of_the_analytic_model(
    fields: dict[str, object], traffic: dict[str, object]
) -> None:
    plan = ParallelismPlan.model_validate({"phase": "serving", "tp": 4, "prefill_replicas": 1} | fields)
    workload = serving(**traffic)
    analytic = project(plan, workload, MODEL, CLUSTER, CHIP, stack=PROMPT_ENGINE)
    found = simulated(workload, plan=plan, stack=PROMPT_ENGINE)
    assert found.tpot is not None
    assert found.tpot.mean_s == pytest.approx(analytic.tpot_s, rel=0.05)
    assert found.request_latency.mean_s == pytest.approx(analytic.request_latency_s, rel=0.05)
    assert found.ttft.mean_s == pytest.approx(analytic.ttft_s, rel=0.05)
    assert found.mixed_step_frac == 0


def test_a_prefill_pool_keeps_prompts_from_holding_up_tokens() -> None:
    plan = ParallelismPlan(phase="serving", tp=4, prefill_replicas=1, prefill_tp=4)
    together = ParallelismPlan(phase="serving", tp=4, dp=2)
    apart, mixed = (simulated(SPREAD, plan=one, requests=500) for one in (plan, together))
    assert apart.itl is not None
    assert mixed.itl is not None
    assert apart.itl.p99_s < mixed.itl.p99_s / 3
    # both open loops bear the rate
    assert not apart.saturated
    assert not mixed.saturated


def test_the_engine_a_workload_names_is_simulated_and_what_is_not_used_is_said():
    plan = ParallelismPlan(phase="serving", tp=8)
    plain, named = (
        simulate(plan, serving(engine=name), MODEL, CLUSTER, CHIP, requests=50) for name in (None, "sglang")
    )
    assert named.tpot != plain.tpot
    assert any("no release of sglang is named" in one for one in named.assumptions)
    rate = simulate(plan, serving(concurrency=4, request_rate_per_s=1.0), MODEL, CLUSTER, CHIP, requests=50)
    assert any("concurrency bounds nothing" in one for one in rate.assumptions)
