"""The open loop against closed forms of queueing theory and hand arithmetic."""

import numpy as np
import pytest

from projector.cost.open_loop import StepTimes, Stream, mean_step_s, seat_wait_s

ONE = np.ones(1)


def stream(rate_per_s: float, *, chunks: float = 1, fit: float = 1, output_len: float = 100, random: bool) -> Stream:
    return Stream(rate_per_s * ONE, np.inf * ONE, chunks * ONE, fit * ONE, output_len, random)


def first_s(found: Stream, pure_s: float, mixed_s: float, admission_steps: float = 0.0) -> float:
    """Steps of pure_s, of mixed_s with a prompt, no cheaper where prompts share them."""
    steps = StepTimes(pure_s * ONE, 0 * ONE, (mixed_s - pure_s) * ONE)
    return float(found.first_token_s(found.loop(pure_s * ONE), steps, admission_steps)[0])


def test_requests_decoding_follow_littles_law() -> None:
    # two a second for 99 steps of 50 ms: 9.9 of them decode at any time, and a tenth of a prompt comes a step
    loop = stream(2.0, random=True).loop(0.05 * ONE)
    assert loop.beside_prefill[0] == pytest.approx(2.0 * 99 * 0.05)
    assert loop.mixed_frac[0] == pytest.approx(0.1, rel=0.06)  # two prompts of one step follow each other


def test_evenly_spaced_request_is_alone_where_it_is_done_before_the_next() -> None:
    # one a second, done in 100 steps of 5 ms
    loop = stream(1.0, random=False).loop(0.005 * ONE)
    assert loop.beside_prefill[0] == 0
    assert loop.mixed_frac[0] == 0
    assert loop.decoding[0] == 1


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_queue_of_an_engine_that_only_prefills_is_that_of_poisson_arrivals_and_equal_prompts(load: float) -> None:
    # M/D/1: W = rho s / (2 (1 - rho)); an output of one token leaves nobody decoding
    prefill_s = 0.2
    found = stream(load / prefill_s, output_len=1, random=True)
    wait_s = first_s(found, 0.01, prefill_s) - prefill_s
    assert wait_s == pytest.approx(load * prefill_s / (2 * (1 - load)), rel=0.03)


def test_evenly_spaced_prompts_do_not_queue() -> None:
    found = stream(4.5, output_len=1, random=False)
    assert first_s(found, 0.01, 0.2) == pytest.approx(0.2)


def test_arrival_at_a_decoding_engine_waits_for_half_a_step() -> None:
    found = stream(0.01, output_len=100_000, random=True)
    step_s = 0.02
    wait_s = first_s(found, step_s, 0.021, admission_steps=0.0) - 0.021
    assert wait_s == pytest.approx(step_s / 2, rel=0.02)


def test_prefill_that_cannot_keep_up_waits_for_ever() -> None:
    found = stream(6.0, random=True)
    assert first_s(found, 0.01, 0.2) == np.inf


def test_wait_for_the_only_seat_is_that_of_one_server() -> None:
    # Sakasegawa's formula is exact for one server: M/D/1 with v = 1 / 2, M/M/1 with v = 1
    for load in (0.3, 0.8):
        assert seat_wait_s(ONE, load * ONE, 2 * ONE, 0.5)[0] == pytest.approx(load * 2 / (2 * (1 - load)))
        assert seat_wait_s(ONE, load * ONE, 2 * ONE, 1.0)[0] == pytest.approx(load * 2 / (1 - load))
    assert seat_wait_s(ONE, ONE, 2 * ONE, 0.5)[0] == np.inf


def test_wait_for_one_of_many_seats_is_near_erlangs() -> None:
    # M/M/10 at 80 %: Erlang C gives 0.4092 of arrivals a mean wait of service / (10 - 8)
    assert seat_wait_s(10 * ONE, 0.8 * ONE, ONE, 1.0)[0] == pytest.approx(0.4092 / 2, rel=0.1)


def test_mean_step_is_the_fixed_point_of_every_column() -> None:
    # t = a + b t / (1 - t / c) has the smaller root of a quadratic
    a, b, c = np.array([0.01, 0.01, 0.02]), np.array([0.1, 0.5, 0.0]), np.array([1.0, 0.2, 1.0])
    found, converged = mean_step_s(lambda t: a + b * t / np.maximum(1 - t / c, 1e-9), 0.4 * c)
    half = (c * (1 - b) + a) / 2
    assert found == pytest.approx(half - np.sqrt(half**2 - a * c), rel=1e-3)
    assert converged.all()


def test_mean_step_that_no_bound_holds_is_not_found() -> None:
    found, converged = mean_step_s(lambda t: np.array([2.0]) * t + 0.1, np.array([1.0]))
    assert not converged[0]
    assert found[0] == 1.0
