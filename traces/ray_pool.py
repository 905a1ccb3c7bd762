"""The same work on many inputs on a Ray cluster. Ray is an optional extra and imported only here."""

import logging
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from projector.errors import WorkersUnavailable
from traces.pool import Finished, died

Task = TypeVar("Task")
Result = TypeVar("Result")

_LEAST_UNDER_WAY: Final = 2
_LONGEST_REASON: Final = 300
_NOT_THERE: Final = "No module named"  # Ray tells a failed import as a RuntimeError of its own


def map_on_ray(
    work: Callable[[Task], Result], tasks: Sequence[Task], address: str, title: Callable[[Task], str]
) -> Generator[Finished[Result], None, None]:
    """Results of `work` on every task, in the order they are done; as many under way as the cluster has CPUs.

    address: as of `ray.init`: "auto", "local" (a cluster of this process), or an address. The connection stays open for
    the next job; a connection the process already has is used. The nodes need this package in the same version, and
    the files under the same paths.

    Raises `WorkersUnavailable` where Ray is not installed or the cluster not there, and what `work` raises.
    """
    ray = _connected(address)
    remote = ray.remote(max_retries=0, num_cpus=1)(work)
    waiting = iter(range(len(tasks)))
    under_way: dict[Any, int] = {}
    try:
        most = max(int(ray.cluster_resources().get("CPU", 0)), _LEAST_UNDER_WAY)
        for index in islice(waiting, most):
            under_way[remote.remote(tasks[index])] = index
        while under_way:
            done = _next_done(ray, under_way)
            index = under_way.pop(done)
            following = next(waiting, None)
            if following is not None:
                under_way[remote.remote(tasks[following])] = following
            yield _taken(ray, done, index, title(tasks[index]))
    finally:
        for reference in under_way:
            ray.cancel(reference, force=True)


def _next_done(ray: Any, under_way: dict[Any, int]) -> Any:
    try:
        (done, *_), _ = ray.wait(list(under_way), num_returns=1)
    except (ray.exceptions.RayError, ConnectionError) as fault:
        raise WorkersUnavailable(
            f"the Ray cluster was lost: {str(fault)[:_LONGEST_REASON]}", hint="start it again, and read again"
        ) from fault
    return done


def _connected(address: str) -> Any:
    """The module `ray`, connected."""
    try:
        import ray
    except ImportError as fault:
        raise WorkersUnavailable(
            "a Ray cluster is to read the traces, and Ray is not installed",
            hint="pip install 'shardwise[ray]', or leave the address empty to read in local processes",
        ) from fault
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING, include_dashboard=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
            raise WorkersUnavailable(
                f"the Ray cluster {address!r} cannot be reached: {str(fault)[:_LONGEST_REASON]}",
                hint="start it, or leave the address empty to read in local processes",
            ) from fault
    return ray


def _taken(ray: Any, reference: Any, index: int, name: str) -> Finished[Any]:
    try:
        return Finished(index, ray.get(reference))
    except ray.exceptions.RayTaskError as fault:
        cause = fault.cause if isinstance(fault.cause, Exception) else fault
        if isinstance(cause, ImportError) or _NOT_THERE in str(cause):
            raise WorkersUnavailable(
                "the nodes of the Ray cluster lack this program, or have another version of it",
                hint="install the same version of shardwise on every node",
            ) from cause
        cause.add_note(f"while reading {name}")
        raise cause from None
    except ray.exceptions.RayError as fault:
        return Finished(index, None, died(name, type(fault).__name__))
