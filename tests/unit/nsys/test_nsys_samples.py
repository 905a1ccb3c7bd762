"""Real Nsight exports, checked against plain SQL over the same file."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from nsys_builder import names, read_file

from traces.linking import NONE, link
from traces.rank import rank_parts
from traces.trace import Category, Trace

BUNDLED = Path(__file__).parents[2] / "data" / "traces" / "nsys" / "rtx3060_graphs.sqlite.gz"
SHARED = Path(os.environ.get("SHARDWISE_SHARED", Path(__file__).parents[4] / "shared")) / "traces" / "nsys"
needs_samples = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no samples at {SHARED}; set SHARDWISE_SHARED")

DEVICE_TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")


def test_an_export_with_graphs_traced_as_wholes() -> None:
    (trace,) = read_file(BUNDLED)
    assert [name for row, name in enumerate(names(trace)) if row in trace.device_rows] == [
        "Memcpy HtoD (Pageable -> Device)",
        *["add_one(const float *, float *, int)"] * 3,
        *["CUDA graph 1 (kernels not traced)"] * 2,
    ]
    assert [(one.name, one.compute_units, one.memory_bytes) for one in trace.metadata.devices] == [
        ("NVIDIA GeForce RTX 3060", 28, 12_488_343_552)
    ]
    assert (trace.metadata.rank, trace.metadata.base_time_ns) == (None, 1_785_620_044_423_518_993)
    summary = rank_parts(trace).summary
    assert (summary.window_ns, summary.idle_ns) == (186_815, 186_815 - 864 - 1_440 - 1_344 - 1_056 - 3_104)
    assert summary.compute_ns + summary.exposed_communication_ns + summary.exposed_copy_ns + summary.idle_ns == (
        summary.window_ns
    )
    assert len(trace.warnings) == 1


def intervals(path: Path, device: int) -> list[tuple[int, int]]:
    """Start and end of everything on one device, by SQL."""
    found = []
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        stored = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for kind in DEVICE_TABLES:
            table = f"CUPTI_ACTIVITY_KIND_{kind}"
            if table in stored:
                query = f"SELECT start, end FROM {table} WHERE deviceId = ?"  # noqa: S608
                found += database.execute(query, (device,)).fetchall()
    return found


def covered_ns(found: list[tuple[int, int]]) -> int:
    """Length of the union, one interval after the other."""
    total, reach = 0, -(2**63)
    for start, end in sorted(found):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


def check_against_sql(path: Path, trace: Trace) -> None:
    assert trace.device_index is not None
    found = intervals(path, trace.device_index)
    assert len(trace.device_rows) == len(found)
    summary = rank_parts(trace).summary
    assert summary.window_ns == max(end for _, end in found) - min(start for start, _ in found)
    assert summary.window_ns - summary.idle_ns == covered_ns(found)
    assert summary.compute_ns + summary.exposed_communication_ns + summary.exposed_copy_ns + summary.idle_ns == (
        summary.window_ns
    )


def launched(path: Path, device: int) -> int:
    """Events on one device whose launch the same process recorded, by SQL."""
    found = 0
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        for kind in ("KERNEL", "MEMCPY", "MEMSET"):
            query = (
                f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_{kind} AS event WHERE deviceId = ? AND EXISTS ("  # noqa: S608
                "SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME AS call WHERE call.correlationId = event.correlationId "
                "AND call.globalTid >> 24 = event.globalPid >> 24)"
            )
            found += database.execute(query, (device,)).fetchone()[0]
    return found


@pytest.mark.shared
@needs_samples
@pytest.mark.parametrize("name", ["h100_2gpu_1s.sqlite", "nsight-2025.5.2.sqlite"])
def test_busy_time_of_each_device_is_the_union_of_its_events(name: str) -> None:
    for trace in read_file(SHARED / name):
        check_against_sql(SHARED / name, trace)


@pytest.mark.shared
@needs_samples
def test_two_processes_with_a_device_each() -> None:
    path = SHARED / "h100_2gpu_1s.sqlite"
    traces = read_file(path)
    assert [(trace.device_index, len(trace.device_rows), trace.metadata.rank) for trace in traces] == [
        (0, 2184, None),
        (1, 2184, None),
    ]
    for trace in traces:
        assert len(trace.rows(Category.RUNTIME)) == 2898
        links = link(trace)
        assert trace.device_index is not None
        assert int((links.launch != NONE).sum()) == launched(path, trace.device_index)
        operators = {trace.name(row) for row in trace.rows(Category.CPU_OP)}
        assert {"aten::addmm", "aten::mm", "aten::view"} & operators
        assert not any("op_id" in name for name in operators)
        assert trace.copy_kinds[int(trace.rows(Category.MEMCPY)[0])] == "DtoD"
