"""The closed forms of pipelined steps against the events of the schedules themselves."""

import numpy as np
import pytest
from pipeline_simulator import Times, run_s, simulated_s, zb_h1

from projector.cost.pipeline import StageSeconds, longest_path_s
from projector.cost.pipeline_stages import Run

SIZES = [(4, 8, 1), (8, 16, 1), (4, 8, 2), (4, 16, 2), (8, 16, 4), (4, 4, 2)]


def column(value: float) -> np.ndarray:  # type: ignore[type-arg]
    return np.array([float(value)])


def seconds_of(forward_s: Times, backward_s: Times, rank: int, hop_s: float, weight_s: Times | None) -> StageSeconds:
    ahead, back = ([chunk[rank] for chunk in times] for times in (forward_s, backward_s))
    apart = weight_s[0][rank] if weight_s else 0.0
    values = (sum(ahead), sum(back), apart, ahead[0], back[0], ahead[-1], back[-1], hop_s, hop_s)
    return StageSeconds(*(column(value) for value in values))


def closed_form_s(
    forward_s: Times, backward_s: Times, micro_batches: int, hop_s: float = 0.0, weight_s: Times | None = None
) -> float:
    """Equal neighbours in one run, as plans have them."""
    stages = len(forward_s[0])
    held = [[(f[rank], b[rank]) for f, b in zip(forward_s, backward_s, strict=True)] for rank in range(stages)]
    starts = [rank for rank in range(stages) if rank == 0 or held[rank] != held[rank - 1]]
    lengths = np.diff([*starts, stages])
    runs = [Run(np.array([number]), column(length)) for number, length in enumerate(lengths)]
    kinds = [seconds_of(forward_s, backward_s, rank, hop_s, weight_s) for rank in starts]
    return float(longest_path_s(kinds, runs, column(stages), column(len(forward_s)), column(micro_batches))[0])


def doubled(times: Times) -> Times:
    return [[2 * time for time in row] for row in times]


def equal(stages: int, chunks: int) -> Times:
    return [[1.0 / chunks] * stages for _ in range(chunks)]


def equal_passes(stages: int) -> tuple[Times, Times]:
    return equal(stages, 1), doubled(equal(stages, 1))


@pytest.mark.parametrize("hop_s", [0.0, 0.02])
@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), SIZES)
def test_equal_stages_come_out_exactly(stages: int, micro_batches: int, chunks: int, hop_s: float) -> None:
    times = equal(stages, chunks)
    # plain schedules block on their sends: they stand in the passes
    hop_s = hop_s if chunks > 1 else 0.0
    found = closed_form_s(times, doubled(times), micro_batches, hop_s)
    assert found == pytest.approx(simulated_s(times, doubled(times), micro_batches, hop_s))


@pytest.mark.parametrize(("stages", "micro_batches"), [(4, 8), (8, 16), (16, 64)])
@pytest.mark.parametrize("send_s", [0.02, 0.05, 0.1])
def test_sends_that_stand_in_the_passes_are_near_those_between_them(
    stages: int, micro_batches: int, send_s: float
) -> None:
    # a stage that blocks on its sends pays each of them, one that does not all but the last stage's
    blocking = [[1.0 + send_s] * stages], [[2.0 + send_s] * stages]
    exact_s = simulated_s(*equal_passes(stages), micro_batches, hop_s=send_s)
    assert exact_s <= closed_form_s(*blocking, micro_batches) <= 1.02 * exact_s


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), SIZES)
def test_a_head_on_the_last_chunk_comes_out_exactly(stages: int, micro_batches: int, chunks: int) -> None:
    times = equal(stages, chunks)
    times[-1][-1] += 0.3
    exact_s = simulated_s(times, doubled(times), micro_batches)
    assert closed_form_s(times, doubled(times), micro_batches) == pytest.approx(exact_s)


@pytest.mark.parametrize("factor", [0.6, 1.3, 2.0])
@pytest.mark.parametrize("place", [0, 1, 4, 7])
@pytest.mark.parametrize("micro_batches", [3, 8, 40])
def test_a_stage_of_another_length_anywhere_comes_out_exactly(factor: float, place: int, micro_batches: int) -> None:
    times = equal(8, 1)
    times[0][place] *= factor
    exact_s = simulated_s(times, doubled(times), micro_batches)
    assert closed_form_s(times, doubled(times), micro_batches) == pytest.approx(exact_s)


@pytest.mark.parametrize("longer", [1, 3, 6])
def test_longer_stages_first_and_a_head_come_out_exactly(longer: int) -> None:
    # 8 stages of 3 or 4 layers, as layers that do not divide are split
    times = [[4.0] * longer + [3.0] * (8 - longer)]
    times[0][-1] += 0.7
    exact_s = simulated_s(times, doubled(times), 32)
    assert closed_form_s(times, doubled(times), 32) == pytest.approx(exact_s)


def test_passes_of_any_length_on_every_stage_are_within_three_per_cent() -> None:
    draw = np.random.default_rng(5)
    for _ in range(200):
        stages = int(draw.choice([2, 4, 8, 16]))
        ahead = [[draw.uniform(0.7, 1.4) for _ in range(stages)]]
        back = [[time * draw.uniform(1.0, 3.0) for time in ahead[0]]]
        micro_batches = int(draw.choice([stages // 2, stages, 2 * stages, 64]))
        exact_s = simulated_s(ahead, back, micro_batches)
        # every path of the closed form is one of the schedule: it is never too long
        assert 0.97 * exact_s <= closed_form_s(ahead, back, micro_batches) <= exact_s * (1 + 1e-9)


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), [size for size in SIZES if size[2] > 1])
def test_shorter_first_and_last_chunks_are_within_two_per_cent(stages: int, micro_batches: int, chunks: int) -> None:
    # embedding and head count as a layer each, of four a chunk
    times = [[4.0] * stages for _ in range(chunks)]
    times[0][0], times[-1][-1] = 3.1, 3.9
    exact_s = simulated_s(times, doubled(times), micro_batches, hop_s=0.05)
    assert closed_form_s(times, doubled(times), micro_batches, hop_s=0.05) == pytest.approx(exact_s, rel=0.02)


@pytest.mark.parametrize("slower", [1, 3, 9])
def test_chunks_that_differ_a_little_are_within_two_per_cent(slower: int) -> None:
    flat = [1.06] * slower + [1.0] * (16 - slower)
    times = [flat[:4], flat[4:8], flat[8:12], flat[12:]]
    exact_s = simulated_s(times, doubled(times), 16)
    assert closed_form_s(times, doubled(times), 16) == pytest.approx(exact_s, rel=0.02)


def zero_bubble_s(forward_s: Times, backward_s: Times, weight_s: Times, micro_batches: int, hop_s: float) -> float:
    stages = len(forward_s[0])
    queues = [zb_h1(stages, micro_batches, rank) for rank in range(stages)]
    return run_s(queues, {"F": forward_s, "B": backward_s, "W": weight_s}, hop_s)


@pytest.mark.parametrize("hop_s", [0.0, 0.05])
@pytest.mark.parametrize(("back", "weight"), [(1.0, 1.0), (1.3, 0.7), (2.0, 0.9)])
@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 8), (4, 4), (8, 16), (8, 64)])
def test_zero_bubble_of_equal_stages_comes_out_exactly(
    stages: int, micro_batches: int, back: float, weight: float, hop_s: float
) -> None:
    times = [[[each] * stages] for each in (1.0, back, weight)]
    exact_s = zero_bubble_s(*times, micro_batches, hop_s)
    # with hops and as few micro-batches as stages no single path is the longest
    closed_s = closed_form_s(times[0], times[1], micro_batches, hop_s, times[2])
    assert closed_s == pytest.approx(exact_s, rel=0.015 if hop_s else 1e-9)
    # Qi et al. 2023, section 2.3: a bubble of (p - 1) (F + B - W), and the hops there and back
    bubble_s = (stages - 1) * (1.0 + back - weight + 2 * hop_s)
    assert exact_s >= micro_batches * (1.0 + back + weight) + bubble_s - 1e-9


def test_zero_bubble_of_any_stages_is_within_three_per_cent() -> None:
    draw = np.random.default_rng(7)
    for _ in range(200):
        stages = int(draw.choice([2, 4, 8, 16]))
        ahead = [[draw.uniform(0.7, 1.4) for _ in range(stages)]]
        back, weight = ([[ratio * time for time in ahead[0]]] for ratio in (draw.uniform(1, 2), draw.uniform(0.7, 1)))
        micro_batches = int(draw.choice([stages, 2 * stages, 64]))
        exact_s = zero_bubble_s(ahead, back, weight, micro_batches, 0.0)
        closed_s = closed_form_s(ahead, back, micro_batches, 0.0, weight)
        assert 0.97 * exact_s <= closed_s <= exact_s * (1 + 1e-9)
