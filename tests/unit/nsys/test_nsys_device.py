"""Kernels, copies, memsets and whole CUDA graphs of an Nsight export as device events."""

from pathlib import Path

import pytest
from nsys_builder import GRAPH, KERNEL, MEMCPY, Export, Row, names, process

from projector.errors import EmptyTrace, UnsupportedTrace
from traces.naming import By, classify
from traces.rank import rank_parts
from traces.trace import ABSENT, UNKNOWN_WORK, Category


def test_kernels_copies_and_memsets_keep_the_device_busy_to_the_nanosecond(tmp_path: Path) -> None:
    export = Export()
    export.kernel("sgemm_kernel", 100, 160)
    export.kernel("rms_norm_kernel", 150, 200, streamId=9)
    export.copy(210, 231, 1, 4096)
    export.memset(240, 241, 64)
    trace = export.trace(tmp_path)
    assert trace.category.tolist() == [Category.KERNEL, Category.KERNEL, Category.MEMCPY, Category.MEMSET]
    assert names(trace) == ["sgemm_kernel", "rms_norm_kernel", "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"]
    assert (trace.start_ns.tolist(), trace.end_ns.tolist()) == ([100, 150, 210, 240], [160, 200, 231, 241])
    assert (trace.stream.tolist(), trace.device.tolist()) == ([7, 9, 7, 7], [0, 0, 0, 0])
    assert trace.size_bytes.tolist() == [ABSENT, ABSENT, 4096, 64]
    summary = rank_parts(trace).summary
    assert (summary.window_ns, summary.compute_ns, summary.copy_ns, summary.idle_ns) == (141, 100, 22, 19)


@pytest.mark.parametrize(
    ("kind", "text", "name"),
    [
        (1, "HtoD", "Memcpy HtoD (Pageable -> Device)"),
        (2, "DtoH", "Memcpy DtoH (Pageable -> Device)"),
        (8, "DtoD", "Memcpy DtoD (Pageable -> Device)"),
        (9, "HtoH", "Memcpy HtoH (Pageable -> Device)"),
        (10, "PtoP", "Memcpy PtoP (Pageable -> Device)"),
        (11, "HtoD", "Memcpy HtoD (unified memory migration)"),
        (12, "DtoH", "Memcpy DtoH (unified memory migration)"),
        (13, "DtoD", "Memcpy DtoD (unified memory migration)"),
    ],
)
def test_the_direction_of_a_copy(tmp_path: Path, kind: int, text: str, name: str) -> None:
    export = Export()
    export.copy(0, 10, kind, 1)
    trace = export.trace(tmp_path)
    assert (trace.copy_kinds, names(trace), trace.warnings) == ({0: text}, [name], ())


def test_a_copy_between_two_devices_is_one_between_peers(tmp_path: Path) -> None:
    export = Export()
    export.copy(0, 10, 8, 1, srcDeviceId=0, dstDeviceId=1)
    export.copy(20, 30, 8, 1, srcDeviceId=0, dstDeviceId=0)
    assert export.trace(tmp_path).copy_kinds == {0: "PtoP", 1: "DtoD"}


def test_a_direction_nobody_knows_is_told(tmp_path: Path) -> None:
    export = Export()
    export.copy(0, 10, 77, 1, srcKind=None)
    trace = export.trace(tmp_path)
    assert (trace.copy_kinds, names(trace)) == ({}, ["Memcpy Unknown"])
    assert trace.warnings == ("1 copies do not state their direction, or one that is not known here",)


def test_graphs_traced_as_wholes_are_unclassified_computation(tmp_path: Path) -> None:
    export = Export()
    export.span("attention", 0, 50)
    export.call("cudaGraphLaunch_v10000", 10, 20, correlation=4)
    export.graph(3, 100, 180, correlationId=4)
    export.kernel("sgemm_kernel", 180, 200)
    trace = export.trace(tmp_path)
    assert [name for name in names(trace) if "graph" in name] == ["CUDA graph 3 (kernels not traced)"]
    assert trace.stated_kind is not None
    assert trace.stated_kind[trace.device_rows].tolist() == [UNKNOWN_WORK, ABSENT]
    assert classify(trace).by.tolist() == [By.UNCLASSIFIED, By.NAME_RULE]
    summary = rank_parts(trace).summary
    assert (summary.compute_ns, summary.unclassified_ns) == (100, 80)
    assert trace.event_counts["cuda_graph"] == 1
    assert any("1 CUDA graph launches (80 ns) were traced as wholes" in told for told in trace.warnings)


def test_kernels_of_a_graph_traced_node_by_node_are_kernels(tmp_path: Path) -> None:
    export = Export()
    for index in range(3):
        export.kernel("sgemm_kernel", index * 10, index * 10 + 5, correlationId=9, graphNodeId=1000 + index)
    export.call("cudaGraphLaunch_v10000", 0, 3, correlation=9)
    trace = export.trace(tmp_path)
    assert (len(trace.rows(Category.KERNEL)), trace.stated_kind, trace.warnings) == (3, None, ())


@pytest.mark.parametrize("suffix", ["_V2", "_V3", "_V10"])
def test_tables_with_a_version_behind_their_name(tmp_path: Path, suffix: str) -> None:
    export = Export()
    export.kernel("sgemm_kernel", 0, 10)
    export.renamed[KERNEL] = KERNEL + suffix
    assert names(export.trace(tmp_path)) == ["sgemm_kernel"]


def test_of_several_versions_of_a_table_the_newest_with_rows_is_read_aloud(tmp_path: Path) -> None:
    export = Export()
    export.kernel("old_gemm", 0, 10)
    for version, count in (("_V2", 1), ("_V10", 2), ("_V11", 0)):
        export.statements.append(f"CREATE TABLE {KERNEL}{version} AS SELECT * FROM {KERNEL} LIMIT 0")  # noqa: S608
        export.statements += [f"INSERT INTO {KERNEL}{version} SELECT * FROM {KERNEL}"] * count  # noqa: S608
    trace = export.trace(tmp_path)
    assert len(trace) == 2
    assert f"tables {KERNEL}_V10, {KERNEL}_V2, {KERNEL} all hold rows; {KERNEL}_V10 was read" in trace.warnings[0]


def test_a_name_the_file_lacks_is_told(tmp_path: Path) -> None:
    export = Export()
    export.kernel("sgemm_kernel", 0, 10)
    export.kernel("", 20, 30, demangledName=5, shortName=6)
    trace = export.trace(tmp_path)
    assert names(trace) == ["sgemm_kernel", "(no name, string 5)"]
    assert trace.warnings == ("the names of 1 kernels are not in the file (StringIds lacks them)",)


def test_the_short_name_stands_in_for_a_full_one_that_is_missing(tmp_path: Path) -> None:
    export = Export()
    export.kernel("short_gemm", 0, 10, demangledName=5)
    export.kernel("other_gemm", 20, 30)
    export.without(KERNEL, "graphNodeId")
    assert names(export.trace(tmp_path)) == ["short_gemm", "other_gemm"]


def test_columns_that_are_not_there_are_not_stated(tmp_path: Path) -> None:
    export = Export()
    export.kernel("sgemm_kernel", 0, 10)
    export.copy(20, 30, 1, 64)
    export.without(KERNEL, "globalPid", "correlationId", "streamId", "deviceId", "demangledName", "graphNodeId")
    export.without(MEMCPY, "globalPid", "bytes", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "deviceId")
    trace = export.trace(tmp_path)
    assert names(trace) == ["sgemm_kernel", "Memcpy HtoD"]
    assert (trace.stream.tolist(), trace.device.tolist()) == ([ABSENT, 7], [ABSENT, ABSENT])
    assert trace.size_bytes.tolist() == [ABSENT, ABSENT]


def test_a_table_without_times_is_refused_by_name(tmp_path: Path) -> None:
    export = Export()
    export.kernel("sgemm_kernel", 0, 10)
    export.without(KERNEL, "end")
    with pytest.raises(UnsupportedTrace, match=f"{KERNEL} of export.sqlite has no column end"):
        export.read(tmp_path)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"start": None}, "have no usable start or end"),
        ({"start": "soon"}, "have no usable start or end"),
        ({"end": 1.5}, "have no usable start or end"),
        ({"end": 2**63 - 1}, "have no usable start or end"),
        ({"start": -(2**63), "end": 2**62 - 1}, "have no usable start or end"),
        ({"start": 90, "end": 80}, "end before they start"),
        ({"end": 10**14}, "last longer than a day"),
        ({"start": 10**15, "end": 10**15}, "start more than a day away from the others"),
    ],
)
def test_impossible_times_are_dropped_aloud(tmp_path: Path, row: Row, why: str) -> None:
    export = Export()
    for start in (0, 20, 40):
        export.kernel("sgemm_kernel", start, start + 10)
    export.kernel("broken", 60, 70)
    export.rows[KERNEL][-1] |= row
    trace = export.trace(tmp_path)
    assert (len(trace), trace.warnings) == (3, (f"1 events on the devices {why} and were dropped",))


def test_activities_that_are_not_known_are_told(tmp_path: Path) -> None:
    export = Export()
    export.kernel("sgemm_kernel", 0, 10)
    export.statements += [
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY2 (start INT, end INT)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY2 VALUES (1, 2)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_EMPTY (start INT, end INT)",
    ]
    assert export.trace(tmp_path).warnings == ("tables of activities that are not known here were left out: MEMCPY2",)


def test_what_the_profiler_says_of_lost_events_is_told(tmp_path: Path) -> None:
    export = Export()
    export.kernel("sgemm_kernel", 0, 10)
    for severity, text in (
        (1, "Profiling has started."),
        (2, "Not all NVTX events\nmight have been collected."),
        (2, "Not all NVTX events might have been collected."),
        (2, "No NVTX events collected."),
        (3, "CUDA could not be traced."),
        (4, "A step was taken."),
    ):
        export.add("DIAGNOSTIC_EVENT", severity=severity, text=text)
    assert export.trace(tmp_path).warnings == (
        "the profiler said: 'Not all NVTX events might have been collected.'",
        "the profiler said: 'CUDA could not be traced.'",
    )


def test_tables_without_rows_are_no_tables(tmp_path: Path) -> None:
    export = Export(rows={KERNEL: [], GRAPH: [], MEMCPY: []})
    with pytest.raises(EmptyTrace, match="neither device events nor operators") as empty:
        export.read(tmp_path)
    assert "--trace=cuda,nvtx" in empty.value.hint


def test_process_ids_are_data(tmp_path: Path) -> None:
    export = Export()
    export.kernel("sgemm_kernel", 0, 10, globalPid=-144115188075855872)
    export.kernel("sgemm_kernel", 0, 10, globalPid=process(2**24 - 1))
    assert len(export.read(tmp_path)) == 2
