"""Schedules timed event by event: against published bubbles, the simulator, and the rounds they leave out."""

import numpy as np
import pytest
from pipeline_simulator import simulated_s

from projector.cost.pipeline_events import Work, dualpipe, interleaved, makespan_s


def column(value: float) -> np.ndarray:  # type: ignore[type-arg]
    return np.array([float(value)])


def two_way_s(pp: int, micro_batches: int, ahead: list[float], back: float = 1.0, weight: float = 1.0) -> float:
    """Passes back and weight times as long as the forward pass of a stage."""
    factor: dict[Work, float] = {"ahead": 1.0, "input": back, "weight": weight, "back": back + weight}
    found = makespan_s(dualpipe(pp, micro_batches), lambda work, stage: column(factor[work] * ahead[stage]), column(0))
    return float(found[0])


@pytest.mark.parametrize("pp", [2, 4, 8, 16])
@pytest.mark.parametrize("rounds", [2, 5])
def test_dualpipe_has_the_bubble_its_authors_state(pp: int, rounds: int) -> None:
    # DeepSeek-V3, table 2: (p / 2 - 1) (F&B + B - 3 W), with passes run together as long as both
    bubble_s = (pp / 2 - 1) * (3.0 + 2.0 - 3.0)
    assert two_way_s(pp, rounds * pp, [1.0] * pp) == pytest.approx(rounds * pp * 3.0 + bubble_s)


@pytest.mark.parametrize(("back", "weight"), [(1.2, 0.8), (1.5, 0.7)])
def test_dualpipe_is_near_it_where_passes_differ(back: float, weight: float) -> None:
    bubble_s = 3 * (1 + back + weight + back + weight - 3 * weight)
    exact_s = two_way_s(8, 16, [1.0] * 8, back, weight)
    assert exact_s == pytest.approx(16 * (1 + back + weight) + bubble_s, rel=0.02)


@pytest.mark.parametrize("head", [0.0, 0.4])
def test_rounds_of_dualpipe_beyond_two_go_at_the_pace_of_the_busiest_device(head: float) -> None:
    ahead = [1.0] * 7 + [1.0 + head]
    pace_s = 3 * (1.0 + head / 2)
    assert two_way_s(8, 40, ahead) == pytest.approx(two_way_s(8, 16, ahead) + 24 * pace_s, rel=0.01)


def test_two_stages_of_a_device_share_its_time() -> None:
    # the last of 8 stages is half as long again: the device that holds it and the first is a quarter longer, not half
    longer_s = two_way_s(8, 80, [1.0] * 7 + [1.5]) / two_way_s(8, 80, [1.0] * 8)
    assert 1.2 < longer_s < 1.25


def test_interleaved_chunks_of_any_length_come_out_as_simulated() -> None:
    draw = np.random.default_rng(3)
    for pp, vp, micro_batches in ((2, 2, 8), (4, 3, 4), (4, 2, 12), (8, 2, 16)):
        ahead = draw.uniform(0.5, 2.0, (vp, pp))
        found = makespan_s(
            interleaved(pp, vp, micro_batches),
            lambda work, stage, ahead=ahead: column((1 if work == "ahead" else 2) * ahead.ravel()[stage]),
            column(0.05),
        )
        exact_s = simulated_s(ahead.tolist(), (2 * ahead).tolist(), micro_batches, hop_s=0.05)
        assert found[0] == pytest.approx(exact_s)


def test_rounds_of_interleaving_beyond_four_repeat_the_last() -> None:
    ahead = np.random.default_rng(4).choice([1.0, 1.5, 2.0], (3, 4))

    def time_s(micro_batches: int) -> float:
        return simulated_s(ahead.tolist(), (2 * ahead).tolist(), micro_batches)

    assert time_s(48) == pytest.approx(time_s(16) + 8 * (time_s(16) - time_s(12)))


def test_plans_of_a_batch_are_timed_as_they_are_alone() -> None:
    lengths = np.array([1.0, 2.0, 3.5])
    together = makespan_s(dualpipe(4, 8), lambda work, stage: lengths * (1 + stage / 10), np.zeros(3))
    alone = [makespan_s(dualpipe(4, 8), lambda w, s, t=t: column(t * (1 + s / 10)), column(0))[0] for t in lengths]
    assert together.tolist() == alone
