"""Admission: what a full KV pool costs an engine, by when it lets waiting requests start."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, serving, switched_chip

from projector.breakdown import Projection
from projector.cost.admission import held_tokens, recomputed_prompts
from projector.project import project
from projector.specs.plan import ParallelismPlan
from projector.specs.serving_stack import ANY_ENGINE, ServingStack
from projector.specs.workload import WorkloadSpec

RESERVE, GREEDY = (ANY_ENGINE.model_copy(update={"admission": how}) for how in ("reserve", "greedy"))
# a pool of some 700 requests of 1,024 + 8,192 tokens
LONG_ANSWERS = serving(2000, input_len=1024, output_len=8192)


def projected(stack: ServingStack, load: WorkloadSpec, seats: int = 4096) -> Projection:
    plan = ParallelismPlan(phase="serving", max_num_seqs=seats)
    hardware = switched_chip()
    return project(plan, load, dense_model(layers=16), cluster(hardware, 1), hardware, stack=stack)


def speed(found: Projection) -> float:
    assert found.decode_tokens_per_s_per_chip is not None
    return found.decode_tokens_per_s_per_chip


def test_only_an_engine_that_keeps_room_for_whole_answers_counts_them_whole() -> None:
    assert held_tokens(1000, 500, ANY_ENGINE) == held_tokens(1000, 500, GREEDY) == 1250
    assert held_tokens(1000, 500, RESERVE) == 1500


def test_request_that_ends_lets_prompts_in_that_are_preempted_again() -> None:
    held, wanted = np.array([100.0, 100.0, 100.0, 0.0]), np.array([1000.0, 103.0, 90.0, 50.0])
    # 9 prompts of 1,024 fit what one request of 9,216 frees: eight of them in vain, unless fewer may start
    assert recomputed_prompts(1024, 8192, held, wanted, GREEDY).tolist() == [8, 3, 0, 8]
    assert recomputed_prompts(1024, 512, held, wanted, GREEDY).tolist() == [0, 0, 0, 0]
    assert recomputed_prompts(1024, 8192, held, wanted, ANY_ENGINE).tolist() == [0, 0, 0, 0]


def test_preemption_costs_throughput_and_fewer_seats_avoid_it() -> None:
    waits, preempts = (projected(stack, LONG_ANSWERS) for stack in (ANY_ENGINE, GREEDY))
    assert waits.memory is not None
    assert waits.memory.concurrency_limit == "kv_pool"
    assert speed(preempts) < speed(waits)
    assert waits.max_concurrency is not None
    capped = projected(GREEDY, LONG_ANSWERS, seats=int(waits.max_concurrency))
    assert speed(capped) > speed(preempts)


def test_reserve_runs_fewer_requests_at_once() -> None:
    whole, mean = (projected(stack, LONG_ANSWERS).max_concurrency for stack in (RESERVE, ANY_ENGINE))
    assert whole is not None
    assert mean is not None
    assert mean / whole == pytest.approx((1024 + 8192) / (1024 + 4096), rel=0.01)


def test_pool_that_is_not_full_admits_all_alike() -> None:
    load = serving(16, input_len=1024, output_len=8192)
    found = [projected(stack, load) for stack in (ANY_ENGINE, RESERVE, GREEDY)]
    assert len({(one.ttft_s, one.tpot_s, one.request_latency_s) for one in found}) == 1


def test_what_a_full_pool_does_to_requests_is_said() -> None:
    waits, preempts, room = (
        projected(stack, load).assumptions
        for stack, load in ((ANY_ENGINE, LONG_ANSWERS), (GREEDY, LONG_ANSWERS), (ANY_ENGINE, serving(8)))
    )
    assert any("none is preempted" in text for text in waits)
    assert any("computed again" in text for text in preempts)
    assert not any("KV pool is full" in text for text in room)


def test_long_answers_are_met_the_more_often_the_longer_they_run() -> None:
    # uniform from 0 to 2 x 600: E[o^2] / E[o] = 800
    assert held_tokens(1000, 600, RESERVE, 1.0) == pytest.approx(1800)
    assert held_tokens(1000, 600, ANY_ENGINE, 1.0) == pytest.approx(1400)
    spread = LONG_ANSWERS.model_copy(update={"length_spread_frac": 0.9})
    alike, varied = (projected(ANY_ENGINE, load).max_concurrency for load in (LONG_ANSWERS, spread))
    assert alike is not None
    assert varied is not None
    assert varied < 0.85 * alike
