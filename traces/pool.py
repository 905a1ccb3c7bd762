"""The same work on many inputs in a pool of processes, results as they come; a process that dies names its input.

`concurrent.futures` does not tell which input a dead process had, and waits for running work when interrupted; here
each process has a pipe of its own, so the parent knows what it was doing and may end it at any moment.
"""

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from projector.errors import TraceError, WorkersUnavailable
from traces.pool_process import SUPPORTED, Worker

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Finished(Generic[Result]):
    """What became of task number `index`: a result, or the error of a process that ended without one."""

    index: int
    result: Result | None
    error: TraceError | None = None


def map_ranks(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    ray_address: str | None = None,
    title: Callable[[Task], str] = str,
) -> Generator[Finished[Result], None, None]:
    """Results of `work` on every task, in the order they are done.

    work must be a function of a module, without effects; tasks and results must be picklable. With `ray_address` it
    runs on that Ray cluster; otherwise in `workers` processes, one for each CPU where None; with one worker or one task
    in this process. No more tasks are under way than there are workers. Processes end when the iterator is closed.

    A task whose process dies (for lack of memory, most often) comes back as `Finished.error`, which names it by
    `title`; the others go on. What `work` raises is raised here, with a note of the task.
    """
    count = min(workers or cpu_count(), len(tasks)) if SUPPORTED else 1
    if ray_address is not None:
        from traces.ray_pool import map_on_ray

        yield from map_on_ray(work, tasks, ray_address, title)
    elif count <= 1:
        for index, task in enumerate(tasks):
            yield Finished(index, work(task))
    else:
        yield from _map_in_processes(work, tasks, count, title)


def cpu_count() -> int:
    """CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def died(name: str, how: str) -> TraceError:
    """The error of a task whose process ended without an answer."""
    return TraceError(
        f"the process that read {name} ended without an answer ({how})",
        hint="most often the memory did not suffice: profile fewer steps, or read fewer files at a time",
    )


def _map_in_processes(
    work: Callable[[Task], Result], tasks: Sequence[Task], count: int, title: Callable[[Task], str]
) -> Generator[Finished[Result], None, None]:
    waiting = iter(range(len(tasks)))
    workers: dict[Connection, Worker] = {}

    def start(index: int) -> None:
        worker = Worker(work)
        workers[worker.connection] = worker
        worker.give(index, tasks[index])

    try:
        for index in islice(waiting, count):
            start(index)
        while workers:
            for connection in wait(list(workers)):
                assert isinstance(connection, Connection), "only pipes are waited for"
                worker = workers[connection]
                finished = _finished(worker, title(tasks[worker.index]))
                if finished is None:
                    continue
                following = next(waiting, None)
                if finished.error is None and following is not None:
                    worker.give(following, tasks[following])
                else:
                    workers.pop(connection).end()
                    if following is not None:
                        start(following)
                yield finished
    finally:
        for worker in workers.values():
            worker.end(now=True)


def _finished(worker: Worker, name: str) -> Finished[Any] | None:
    """What a worker has to say: its answer, its end, or nothing yet. Raises what the work raised."""
    try:
        answer = worker.answer()
    except EOFError:
        how = worker.how_it_ended()
        if not worker.ready:
            raise WorkersUnavailable(
                f"a process that reads traces could not be started ({how})", hint="read with one worker"
            ) from None
        return Finished(worker.index, None, died(name, how))
    if answer is None:
        return None
    result, fault = answer
    if fault is not None:
        fault.add_note(f"while reading {name}")
        raise fault
    return Finished(worker.index, result)
