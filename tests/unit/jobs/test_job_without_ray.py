"""What is said when Ray or its cluster is missing.

Apart from the tests with a cluster: these put a double in the place of the module `ray`, which the threads of a live
cluster would import.
"""

import sys
from types import SimpleNamespace

import pytest

from projector.errors import WorkersUnavailable
from tests.unit.jobs import pool_work
from traces.pool import map_ranks
from traces.ray_pool import _taken


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(WorkersUnavailable, match="Ray is not installed") as refused:
        list(map_ranks(pool_work.pid_and_double, [1], ray_address="auto"))
    assert "shardwise[ray]" in refused.value.hint


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ray:
        @staticmethod
        def is_initialized() -> bool:
            return False

        @staticmethod
        def init(**_how: object) -> None:
            raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setitem(sys.modules, "ray", Ray)
    with pytest.raises(
        WorkersUnavailable, match="the Ray cluster 'auto' cannot be reached: Could not find any running"
    ):
        list(map_ranks(pool_work.pid_and_double, [1], ray_address="auto"))


def test_nodes_without_this_program_are_told_as_such() -> None:
    class Fault(Exception):
        cause = RuntimeError("The remote function failed to import on the worker: No module named 'traces'")

    class Ray:
        exceptions = SimpleNamespace(RayTaskError=Fault, RayError=Fault)

        @staticmethod
        def get(_reference: object) -> None:
            raise Fault

    with pytest.raises(WorkersUnavailable, match="nodes of the Ray cluster lack this program"):
        _taken(Ray, None, 0, "rank0.json")
