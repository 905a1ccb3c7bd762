"""The closed form of a pipelined step against the events of the schedules themselves."""

import numpy as np
import pytest

from projector.cost.pipeline import pipeline_time

Times = list[list[float]]
Task = tuple[str, int, int]


def schedule(stages: int, micro_batches: int, chunks: int, rank: int) -> list[Task]:
    """(pass, chunk, micro-batch) in the order a device runs them: Megatron-LM's 1F1B, plain or interleaved."""
    count = micro_batches * chunks
    ahead = stages - rank - 1 if chunks == 1 else 2 * (stages - rank - 1) + (chunks - 1) * stages
    ahead = min(ahead, count)

    def task(number: int, run: str) -> Task:
        group, inside = divmod(number, stages * chunks)
        chunk = inside // stages
        return run, chunk if run == "F" else chunks - 1 - chunk, group * stages + inside % stages

    steady = [task(number - shift, run) for number in range(ahead, count) for run, shift in (("F", 0), ("B", ahead))]
    fill = [task(number, "F") for number in range(ahead)]
    return fill + steady + [task(number, "B") for number in range(count - ahead, count)]


def needs(task: Task, rank: int, stages: int, chunks: int) -> tuple[str, int, int, int] | None:
    """The pass of another device (or of this one) whose result a task waits for."""
    run, chunk, micro = task
    if run == "F":
        if rank > 0:
            return run, chunk, micro, rank - 1
        return (run, chunk - 1, micro, stages - 1) if chunk > 0 else None
    if rank < stages - 1:
        return run, chunk, micro, rank + 1
    return (run, chunk + 1, micro, 0) if chunk < chunks - 1 else ("F", chunk, micro, rank)


def simulated_s(forward_s: Times, micro_batches: int) -> float:
    """When the last pass ends; forward_s[chunk][rank], backward twice as long."""
    chunks, stages = len(forward_s), len(forward_s[0])
    queues = [schedule(stages, micro_batches, chunks, rank) for rank in range(stages)]
    ended: dict[tuple[str, int, int, int], float] = {}
    free_at = [0.0] * stages
    while any(queues):
        for rank, queue in enumerate(queues):
            while queue:
                needed = needs(queue[0], rank, stages, chunks)
                if needed is not None and needed not in ended:
                    break
                run, chunk, micro = queue.pop(0)
                start = max(free_at[rank], ended[needed] if needed is not None else 0.0)
                free_at[rank] = start + forward_s[chunk][rank] * (1 if run == "F" else 2)
                ended[run, chunk, micro, rank] = free_at[rank]
    return max(free_at)


def closed_form_s(forward_s: Times, micro_batches: int) -> float:
    stages_s = 3 * np.sum(forward_s, axis=0)
    columns = (stages_s[:-1].max(), stages_s[-1], stages_s.sum(), float(micro_batches), float(len(forward_s)))
    return float(pipeline_time(*(np.array([value]) for value in columns)).total_s[0])


SIZES = [(4, 8, 1), (8, 16, 1), (4, 8, 2), (4, 16, 2), (8, 16, 4)]


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), SIZES)
def test_equal_stages_come_out_exactly(stages: int, micro_batches: int, chunks: int) -> None:
    times = [[1.0 / chunks] * stages for _ in range(chunks)]
    assert closed_form_s(times, micro_batches) == pytest.approx(simulated_s(times, micro_batches))


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), SIZES)
def test_a_head_on_the_last_chunk_comes_out_exactly(stages: int, micro_batches: int, chunks: int) -> None:
    times = [[1.0 / chunks] * stages for _ in range(chunks)]
    times[-1][-1] += 0.3
    assert closed_form_s(times, micro_batches) == pytest.approx(simulated_s(times, micro_batches))


@pytest.mark.parametrize("short", [0, 3])
@pytest.mark.parametrize(("micro_batches", "chunks"), [(8, 1), (16, 2)])
def test_a_stage_with_fewer_layers_hardly_matters(short: int, micro_batches: int, chunks: int) -> None:
    times = [[0.75 if rank == short else 1.0 for rank in range(4)] for _ in range(chunks)]
    assert closed_form_s(times, micro_batches) == pytest.approx(simulated_s(times, micro_batches), rel=0.04)


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), SIZES)
@pytest.mark.parametrize("place", [0, 1])
def test_an_early_slow_stage_is_bounded(stages: int, micro_batches: int, chunks: int, place: int) -> None:
    times = [[1.3 if rank == place else 1.0 for rank in range(stages)] for _ in range(chunks)]
    exact_s, closed_s = simulated_s(times, micro_batches), closed_form_s(times, micro_batches)
    assert exact_s * (1 - 1e-9) <= closed_s <= exact_s * 1.125
