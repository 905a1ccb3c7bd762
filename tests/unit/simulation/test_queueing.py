"""Queues whose figures are known in closed form, and timelines worked out by hand."""

import numpy as np
import pytest
from simulation_examples import ran, requests, steps

from projector.simulation.request import Limits

BATCH = Limits(seats=8, chunk_tokens=100, step_tokens=0)


def poisson(rate_per_s: float, count: int, seed: int = 0) -> "np.typing.NDArray[np.float64]":
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate_per_s, count))


@pytest.mark.parametrize("utilisation", [0.3, 0.6, 0.8])
def test_poisson_arrivals_and_equal_services_wait_as_pollaczek_and_khinchine_say(utilisation: float) -> None:
    # M/D/1: W = rho S / (2 (1 - rho)), here with a service of one step of 2 s
    of = requests(poisson(utilisation / 2, 60_000), 10, 1)
    found = ran(of, steps(2.0)).queue_s.mean()
    assert found == pytest.approx(utilisation * 2 / (2 * (1 - utilisation)), rel=0.03)


@pytest.mark.parametrize("utilisation", [0.3, 0.6])
def test_exponential_outputs_wait_as_in_an_mm1_queue(utilisation: float) -> None:
    # M/M/1: W = rho S / (1 - rho); an output of n tokens takes n steps of 10 ms, 200 of them in the mean
    count = 60_000
    outputs = np.maximum(np.random.default_rng(1).exponential(200, count).round(), 1).astype(np.int64)
    found = ran(requests(poisson(utilisation / 2.0, count), 10, outputs), steps(0.01)).queue_s.mean()
    assert found == pytest.approx(utilisation * 2.0 / (1 - utilisation), rel=0.03)


def test_equal_arrivals_and_equal_services_never_wait() -> None:
    # D/D/1 below and at capacity
    for gap_s in (3.0, 2.5):
        found = ran(requests(np.arange(1000) * gap_s, 10, 5), steps(0.5))
        assert found.queue_s.max() == pytest.approx(0.0, abs=1e-9)


def test_above_capacity_the_wait_grows_with_every_request() -> None:
    found = ran(requests(np.arange(100) * 2.0, 10, 5), steps(0.5))
    assert found.queue_s == pytest.approx(np.arange(100) * 0.5)


def test_two_clients_in_a_closed_loop_by_hand() -> None:
    # Prompts of two chunks (2 s a step with prefill, 1 s without), three tokens each.
    # 0-4 A prefills (100 tokens a step: B waits for its end), first token of A at 4
    # 4-8 B prefills while A decodes its other two: A is done at 8, first token of B at 8
    # 8-12 the next request prefills (B decodes: done at 12), first token at 12, and so on in steps of 4
    of = requests(None, 200, 3, count=6)
    found = ran(of, steps(1.0, 2.0), limits=BATCH, clients=2)
    assert found.column("arrival_s").tolist() == [0, 0, 8, 12, 16, 20]
    assert found.column("first_s").tolist() == [4, 8, 12, 16, 20, 24]
    # the last one decodes alone
    assert found.column("finish_s").tolist() == [8, 12, 16, 20, 24, 26]
    # gaps: 5 requests with two of 2 s, one with two of 1 s
    assert sum(found.counts.gap_counts) == 12
    assert np.dot(found.counts.gaps_s, found.counts.gap_counts) == pytest.approx(5 * 2 * 2.0 + 2 * 1.0)


def test_a_request_that_comes_while_others_decode_waits_for_the_step_under_way() -> None:
    of = requests(np.array([0.0, 4.3]), 50, 10)
    found = ran(of, steps(1.0, 1.5), limits=BATCH)
    # 1.5 s of prefill, then steps end at 2.5, 3.5, 4.5
    assert found.column("started_s").tolist() == pytest.approx([0.0, 4.5])
    assert found.column("first_s").tolist() == pytest.approx([1.5, 6.0])
    # 3 of 9 decode steps were over, one carried the prompt, 5 follow
    assert found.column("finish_s").tolist() == pytest.approx([11.0, 15.0])


def test_what_a_request_takes_outside_the_engine_comes_before_it() -> None:
    found = ran(requests(np.array([1.0]), 50, 3), steps(1.0), request_s=0.25)
    assert (found.column("started_s")[0], found.column("finish_s")[0]) == (1.25, 4.25)


def test_a_loop_with_more_clients_than_seats_keeps_the_seats_taken() -> None:
    of = requests(None, 10, 5, count=400)
    found = ran(of, steps(0.1), limits=Limits(2, 100, 0), clients=6, warmup=40, measured=300)
    # a request holds its seat for 5 steps, 2 seats: 4 a second
    span_s = found.outcome.end_s - found.outcome.warm_s
    assert 300 / span_s == pytest.approx(4.0, rel=0.01)
    latency = found.column("finish_s") - found.column("arrival_s")
    assert latency[60:300].mean() == pytest.approx(6 / 4.0, rel=0.02)


def test_an_idle_engine_is_found_by_the_router_that_looks() -> None:
    # 4 engines, 1 s each: with 2 requests in the fleet nobody ever waits
    found = ran(requests(np.arange(100) * 0.5, 10, 10), steps(0.1), replicas=4)
    assert found.queue_s.max() == pytest.approx(0.0, abs=1e-9)
