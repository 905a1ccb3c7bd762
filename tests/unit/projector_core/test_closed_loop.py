"""The closed loop against hand arithmetic, limits of queueing theory and a small simulation of its own."""

import numpy as np
import pytest
from projector_examples import cluster, dense_model, serving, switched_chip

from projector.breakdown import Projection
from projector.cost.closed_loop import Loop, closed_loop, first_round, return_variability, waiting
from projector.project import project
from projector.specs.plan import ParallelismPlan
from projector.specs.serving_stack import ServingStack
from projector.specs.workload import WorkloadSpec

ONE = np.ones(1)
BARE = ServingStack(name="bare", step_s=0.0, request_s=0.0, admission_steps=0.0)


def engine(**changes: object) -> ParallelismPlan:
    return ParallelismPlan.model_validate({"phase": "serving"} | changes)


def projected(plan: ParallelismPlan, load: WorkloadSpec, stack: ServingStack = BARE) -> Projection:
    hardware = switched_chip()
    return project(plan, load, dense_model(), cluster(hardware, plan.devices), hardware, stack=stack)


def ttft_s(plan: ParallelismPlan, load: WorkloadSpec, stack: ServingStack = BARE) -> float:
    found = projected(plan, load, stack).ttft_s
    assert found is not None
    return found


def loop(customers: float, chunks: float = 1, fit: float = 1, output_len: float = 100, spread: float = 0) -> Loop:
    return closed_loop(customers * ONE, chunks * ONE, fit * ONE, output_len, spread)


def test_loop_of_one_request_has_no_interference() -> None:
    found = loop(1, chunks=4, spread=0.5)
    assert found.prefill_steps[0] == 4
    assert found.mixed_frac[0] == 0
    assert found.decoding[0] == 1


def test_requests_of_one_length_return_in_turn_and_never_wait_below_saturation() -> None:
    # 20 requests x 2 chunks = 40 steps of service in a round of 99 + 2
    assert loop(20, chunks=2).prefill_steps[0] == 2
    # 100 x 2 = 200 steps of service: a round cannot be shorter, so 200 - 99 of it is prefill
    assert loop(100, chunks=2).prefill_steps[0] == pytest.approx(200 - 99)


def test_saturated_prefill_puts_a_chunk_into_every_step() -> None:
    assert loop(512, chunks=4, output_len=64).mixed_frac[0] == pytest.approx(1, rel=0.01)


def test_prompts_that_share_a_step_do_not_queue_for_it() -> None:
    # 256 requests in 129 steps: two a step, where eight fit
    found = loop(256, fit=8, output_len=128)
    assert found.prefill_steps[0] == 1
    assert found.prompts[0] == pytest.approx(2)


def test_waiting_of_many_light_customers_is_that_of_poisson_arrivals() -> None:
    # M/D/1: W = rho S / (2 (1 - rho)), within 3 %
    customers, service = 10_000.0, 1.0
    for rho in (0.2, 0.5, 0.8):
        away = customers * service / rho
        found = waiting(customers * ONE, service * ONE, service * ONE, away * ONE, away * ONE)
        assert found[0] == pytest.approx(rho * service / (2 * (1 - rho)), rel=0.03)


def test_waiting_saturates_at_the_backlog() -> None:
    assert waiting(1000 * ONE, 2 * ONE, 2 * ONE, 10 * ONE, 5 * ONE)[0] == pytest.approx(1988, rel=0.01)


@pytest.mark.parametrize(("customers", "chunks", "spread"), [(8, 8, 0.2), (20, 3, 0.3), (40, 1, 0.5), (30, 4, 0.2)])
def test_waiting_agrees_with_a_simulation_in_steps(customers: int, chunks: int, spread: float) -> None:
    found = loop(customers, chunks=chunks, output_len=100, spread=spread).prefill_steps[0]
    assert found == pytest.approx(simulated_prefill_steps(customers, chunks, 100, spread), rel=0.12)


def simulated_prefill_steps(customers: int, chunks: int, output_len: int, spread: float, rounds: int = 200) -> float:
    """Mean steps from a request's return to its first token: one server, first come, first served."""
    rng = np.random.default_rng(7)
    returns, free, total = [rng.uniform(0, output_len) for _ in range(customers)], 0.0, 0.0
    for _ in range(rounds * customers):
        first = int(np.argmin(returns))
        free = max(free, np.ceil(returns[first])) + chunks
        total += free - np.ceil(returns[first])
        returns[first] = free + np.round(rng.uniform(1 - spread, 1 + spread) * (output_len - 1))
    return total / rounds / customers


def test_variability_of_returns_grows_from_none_to_random() -> None:
    found = [return_variability(16 * ONE, ONE, 100 * ONE, spread * ONE)[0] for spread in (0, 1, 5, 50)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == 1


def test_first_round_is_the_mean_of_turns() -> None:
    # four prompts, two together, one second a step: 1, 1, 2, 2; five: 1, 1, 2, 2, 3
    assert first_round(4 * ONE, 2 * ONE, ONE, ONE)[0] == pytest.approx(1.5)
    assert first_round(5 * ONE, 2 * ONE, ONE, ONE)[0] == pytest.approx(9 / 5)
    # two chunks each, alone: 2, 4, 6
    assert first_round(3 * ONE, ONE, ONE, 2 * ONE)[0] == pytest.approx(4)


def test_lone_request_is_prefilled_at_once() -> None:
    plan, load = engine(chunked_prefill_tokens=0), serving(1, input_len=4096)
    bare = ttft_s(plan, load)
    slow = BARE.model_copy(update={"request_s": 0.25, "admission_steps": 8.0})
    assert ttft_s(plan, load, slow) == pytest.approx(bare + 0.25)  # nobody is there to be waited for
    # two prompts of half the length make the lone one's two chunks
    halves = ttft_s(engine(chunked_prefill_tokens=2048), load)
    assert bare < halves < 1.2 * bare


def test_busy_engine_looks_at_a_request_after_its_admission_steps() -> None:
    plan, load = engine(), serving(16)
    step_s = projected(plan, load).tpot_s
    assert step_s is not None
    waited_s = ttft_s(plan, load, looking_after(3.0)) - ttft_s(plan, load)
    assert waited_s == pytest.approx(3 * step_s)


def looking_after(admission_steps: float) -> ServingStack:
    return BARE.model_copy(update={"admission_steps": admission_steps})


def test_more_requests_in_flight_never_lower_ttft() -> None:
    for spread in (None, 0.1, 0.9):
        found = [
            ttft_s(engine(max_num_seqs=4096), serving(c).model_copy(update={"length_spread_frac": spread}))
            for c in (1, 2, 4, 16, 64, 128, 256)
        ]
        assert found == sorted(found)


def test_smaller_chunks_raise_ttft_and_lower_the_worst_step() -> None:
    load = serving(8, input_len=8192)
    by_chunk = [ttft_s(engine(chunked_prefill_tokens=chunk), load) for chunk in (8192, 4096, 2048, 1024)]
    assert by_chunk == sorted(by_chunk)


def test_start_of_a_run_weighs_by_the_rounds_it_has() -> None:
    plan, load = engine(), serving(32, input_len=2048)
    steady = ttft_s(plan, load)
    runs = [
        ttft_s(plan, load.model_copy(update={"requests_per_slot": rounds})) - steady for rounds in (1.0, 10.0, 100.0)
    ]
    # 32 prompts one after the other: the mean one waits for about 16
    assert runs[0] == pytest.approx(15.5 * steady, rel=0.15)
    assert runs[1] == pytest.approx(runs[0] / 10)
    assert runs[2] == pytest.approx(runs[0] / 100)


def test_start_of_a_lone_request_is_its_steady_state() -> None:
    plan, load = engine(), serving(1)
    assert ttft_s(plan, load.model_copy(update={"requests_per_slot": 1.0})) == pytest.approx(ttft_s(plan, load))


def test_length_spread_of_nothing_changes_nothing() -> None:
    plan, load = engine(), serving(64)
    assert projected(plan, load.model_copy(update={"length_spread_frac": 0.0})) == projected(plan, load)
