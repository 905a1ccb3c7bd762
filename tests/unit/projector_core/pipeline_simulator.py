"""Events of pipeline schedules, one micro-batch and device at a time: what the closed forms are measured against.

Orders as their sources state them: 1F1B and interleaved 1F1B of Megatron-LM (Narayanan et al. 2021), ZB-H1 (Qi et al.
2023, figure 3).
"""

Times = list[list[float]]
Task = tuple[str, int, int]


def one_f_one_b(stages: int, micro_batches: int, chunks: int, rank: int) -> list[Task]:
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


def zb_h1(stages: int, micro_batches: int, rank: int) -> list[Task]:
    """1F1B whose device r makes the weight gradients of a micro-batch r backward passes later, the rest at the end."""
    order: list[Task] = []
    for run, chunk, micro in one_f_one_b(stages, micro_batches, 1, rank):
        order.append((run, chunk, micro))
        if run == "B" and micro >= rank:
            order.append(("W", chunk, micro - rank))
    return order + [("W", 0, micro) for micro in range(max(micro_batches - rank, 0), micro_batches)]


def needs(task: Task, rank: int, stages: int, chunks: int) -> tuple[str, int, int, int] | None:
    """The pass of another device (or of this one) whose result a task waits for."""
    run, chunk, micro = task
    if run == "W":
        return "B", chunk, micro, rank
    if run == "F":
        if rank > 0:
            return run, chunk, micro, rank - 1
        return (run, chunk - 1, micro, stages - 1) if chunk > 0 else None
    if rank < stages - 1:
        return run, chunk, micro, rank + 1
    return (run, chunk + 1, micro, 0) if chunk < chunks - 1 else ("F", chunk, micro, rank)


def run_s(queues: list[list[Task]], seconds: dict[str, Times], hop_s: float = 0.0) -> float:
    """When the last pass ends; seconds[pass][chunk][rank], hop_s from device to device."""
    stages, chunks = len(queues), len(seconds["F"])
    queues = [list(queue) for queue in queues]
    ended: dict[tuple[str, int, int, int], float] = {}
    free_at = [0.0] * stages
    while any(queues):
        before = sum(map(len, queues))
        for rank, queue in enumerate(queues):
            while queue:
                needed = needs(queue[0], rank, stages, chunks)
                if needed is not None and needed not in ended:
                    break
                run, chunk, micro = queue.pop(0)
                ready = 0.0 if needed is None else ended[needed] + (hop_s if needed[3] != rank else 0.0)
                free_at[rank] = max(free_at[rank], ready) + seconds[run][chunk][rank]
                ended[run, chunk, micro, rank] = free_at[rank]
        assert sum(map(len, queues)) < before, "the order never ends"
    return max(free_at)


def simulated_s(forward_s: Times, backward_s: Times, micro_batches: int, hop_s: float = 0.0) -> float:
    """1F1B, interleaved with more than one chunk; forward_s[chunk][rank]."""
    chunks, stages = len(forward_s), len(forward_s[0])
    queues = [one_f_one_b(stages, micro_batches, chunks, rank) for rank in range(stages)]
    return run_s(queues, {"F": forward_s, "B": backward_s}, hop_s)
